package listen

import (
	"bytes"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	configv1 "edge.svc/caddy/gen/svc/config/v1"
)

// attacked is a server of HTTP/2 whose handlers last until they are released.
type attacked struct {
	registry      *Registry
	server        *httptest.Server
	running, most atomic.Int64
	release       chan struct{}
}

func attack(t *testing.T) *attacked {
	t.Helper()
	return attackBare(t, func(*http.Server) {})
}

// attackBare is attack with another server than Caddy's.
func attackBare(t *testing.T, change func(*http.Server)) *attacked {
	t.Helper()
	a := &attacked{registry: NewRegistry(), release: make(chan struct{})}
	a.server = httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		FromContext(r.Context())
		if r.URL.Path != "/held" {
			return
		}
		now := a.running.Add(1)
		defer a.running.Add(-1)
		for most := a.most.Load(); now > most && !a.most.CompareAndSwap(most, now); most = a.most.Load() {
		}
		<-a.release
	}))
	a.server.Config.MaxHeaderBytes = maxHeaderBlock
	// The server that Caddy takes.
	if err := http2.ConfigureServer(a.server.Config, nil); err != nil {
		t.Fatal(err)
	}
	change(a.server.Config)
	a.server.EnableHTTP2 = true
	w := New(newCore(t, &configv1.ClientIp{}), a.registry)
	w.Serve(a.server.Config)
	a.server.Listener = w.WrapListener(a.server.Listener)
	a.server.StartTLS()
	t.Cleanup(a.server.Close)
	t.Cleanup(func() { close(a.release) })
	return a
}

// attacker is a client that says what it likes.
type attacker struct {
	net.Conn
	*http2.Framer
	heads bytes.Buffer
	hpack *hpack.Encoder
}

func (a *attacked) connect(t *testing.T) net.Conn {
	t.Helper()
	conn, err := tls.Dial("tcp", a.server.Listener.Addr().String(), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func (a *attacked) dial(t *testing.T) *attacker {
	t.Helper()
	conn := a.connect(t)
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	c := &attacker{Conn: conn, Framer: http2.NewFramer(conn, conn)}
	c.hpack = hpack.NewEncoder(&c.heads)
	if err := c.WriteSettings(); err != nil {
		t.Fatal(err)
	}
	return c
}

// ask begins a request that its handler holds.
func (c *attacker) ask(stream uint32) error { return c.begin(stream, true) }

// upload begins one with a body.
func (c *attacker) upload(stream uint32) error { return c.begin(stream, false) }

func (c *attacker) begin(stream uint32, whole bool) error {
	c.heads.Reset()
	for _, f := range [][2]string{{":method", "GET"}, {":scheme", "https"}, {":authority", "a.com"}, {":path", "/held"}} {
		// A buffer takes everything.
		_ = c.hpack.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]})
	}
	return c.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: c.heads.Bytes(), EndStream: whole, EndHeaders: true})
}

// untilClosed has the client do something until its connection is closed, reading what comes.
func (c *attacker) untilClosed(t *testing.T, what string, do func(turn uint32) error) {
	t.Helper()
	go func() { _, _ = io.Copy(io.Discard, c.Conn) }()
	deadline := time.Now().Add(60 * time.Second)
	if err := c.SetWriteDeadline(deadline); err != nil {
		t.Fatal(err)
	}
	for turn := uint32(0); ; turn++ {
		if err := do(turn); err != nil {
			if isTimeout(err) {
				t.Errorf("%s goes on", what)
			}
			return
		}
	}
}

// serves fails where another client gets no answer.
func (a *attacked) serves(t *testing.T) {
	t.Helper()
	client := *a.server.Client()
	client.Timeout = 30 * time.Second
	response, err := client.Get(a.server.URL)
	if err != nil || response.ProtoMajor != 2 || response.StatusCode != http.StatusOK {
		t.Errorf("another client: %v %v", response, err)
	}
}

const streamsAtATime = 250

func TestStreamsOfHTTP2AreBounded(t *testing.T) {
	a := attack(t)
	c := a.dial(t)
	refused := make(chan struct{}, 100)
	go func() {
		for {
			frame, err := c.ReadFrame()
			if err != nil {
				return
			}
			if _, reset := frame.(*http2.RSTStreamFrame); reset {
				refused <- struct{}{}
			}
		}
	}()
	for i := range uint32(streamsAtATime + 10) {
		if err := c.ask(2*i + 1); err != nil {
			t.Fatal(err)
		}
	}
	for range 10 {
		<-refused
	}
	if n := a.running.Load(); n > streamsAtATime {
		t.Errorf("%d requests run", n)
	}
	counted := uint64(0)
	for name, n := range a.registry.Counters().HTTP2Errors {
		if strings.Contains(name, "over_max_streams") {
			counted += n
		}
	}
	if counted != 10 {
		t.Errorf("%v", a.registry.Counters().HTTP2Errors)
	}
	a.serves(t)
}

// Requests that are reset at once: no more of them run than streams are allowed, and not many wait.
func TestResetsOfHTTP2AreBounded(t *testing.T) {
	a := attack(t)
	c := a.dial(t)
	c.untilClosed(t, "resetting", func(turn uint32) error {
		if err := c.ask(2*turn + 1); err != nil {
			return err
		}
		return c.WriteRSTStream(2*turn+1, http2.ErrCodeCancel)
	})
	if most := a.most.Load(); most > streamsAtATime {
		t.Errorf("%d requests ran at a time", most)
	}
	if n := a.registry.Counters().HTTP2Errors["conn_ENHANCE_YOUR_CALM_resets"]; n != 1 {
		t.Errorf("%v", a.registry.Counters().HTTP2Errors)
	}
	a.serves(t)
}

func TestHeadsOfHTTP2WithoutAnEndAreBounded(t *testing.T) {
	a := attack(t)
	c := a.dial(t)
	field := new(bytes.Buffer)
	if err := hpack.NewEncoder(field).WriteField(hpack.HeaderField{Name: "x", Value: strings.Repeat("~", 8000), Sensitive: true}); err != nil {
		t.Fatal(err)
	}
	sent := 0
	c.untilClosed(t, "the head", func(turn uint32) error {
		sent += field.Len()
		if turn == 0 {
			return c.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: field.Bytes()})
		}
		return c.WriteContinuation(1, false, field.Bytes())
	})
	// What the systems hold between the two counts, too.
	if sent > 32<<20 {
		t.Errorf("%d bytes of a head were taken", sent)
	}
	if n := a.registry.Counters().HTTP2Errors[largeHead]; n != 1 {
		t.Errorf("%v", a.registry.Counters().HTTP2Errors)
	}
	a.serves(t)
}

// Who pings and reads no answers. What was sent and not read may keep the client from hearing of the end, so the connection
// is looked at from the other side.
func TestUnreadAnswersToPingsOfHTTP2AreBounded(t *testing.T) {
	a := attack(t)
	// The system gives what is not read some room, and no more while nobody reads: it is not made smaller here, because a
	// window that shrinks may have the system drop acknowledgements, too, and then nobody hears of anything.
	client := a.dial(t)
	var batch bytes.Buffer
	many := http2.NewFramer(&batch, nil)
	for range 2000 {
		if err := many.WritePing(false, [8]byte{}); err != nil {
			t.Fatal(err)
		}
	}
	go func() {
		for {
			if _, err := client.Conn.Write(batch.Bytes()); err != nil {
				return
			}
		}
	}()
	until(t, "the connection is ended", func() bool {
		now := a.registry.Counters()
		return now.Accepted == 1 && now.Open == 0
	})
	a.serves(t)
}
