package h2

import (
	"bytes"
	"io"
	"net"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// long is a time that no test waits for.
const long = time.Minute

// peer is the side of an origin of a connection, as a script.
type peer struct {
	*http2.Framer
	t    *testing.T
	conn net.Conn
}

// pipe is both ends of a connection.
func pipe(t *testing.T) (near, far net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	near, err = net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	far, err = l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { far.Close() })
	return near, far
}

// begin makes a connection whose ticks are far away.
func begin(t *testing.T, settings ...http2.Setting) (*Conn, *peer) {
	return beginWith(t, long, settings...)
}

func beginWith(t *testing.T, tick time.Duration, settings ...http2.Setting) (*Conn, *peer) {
	t.Helper()
	near, far := pipe(t)
	_ = far.SetDeadline(time.Now().Add(long))
	c := newConn(near, tick)
	p := &peer{http2.NewFramer(far, far), t, far}
	t.Cleanup(c.Close)
	if _, err := io.ReadFull(far, make([]byte, len(preface))); err != nil {
		t.Fatal(err)
	}
	p.AllowIllegalWrites = true
	_ = p.WriteSettings(settings...)
	<-c.Ready()
	return c, p
}

// open sends a request.
func open(t *testing.T, c *Conn, change ...func(*Request)) *Stream {
	t.Helper()
	r := Request{Block: AppendRequest(nil, []byte("GET"), []byte("http"), []byte("a.test"), []byte("/"))}
	for _, f := range change {
		f(&r)
	}
	if !c.Reserve() {
		t.Fatal("the connection has no room")
	}
	s, rest, err := c.Open(r)
	if err != nil || len(rest) > 0 {
		t.Fatal(err, len(rest))
	}
	return s
}

func streamed(r *Request) { r.Streamed = true }

// next reads the next frame of one of the kinds.
func (p *peer) next(kinds ...http2.FrameType) http2.Frame {
	p.t.Helper()
	for {
		f, err := p.ReadFrame()
		if err != nil {
			p.t.Fatalf("no frame of %v: %v", kinds, err)
		}
		for _, kind := range kinds {
			if f.Header().Type == kind {
				return f
			}
		}
	}
}

// request reads the beginning of a request and returns its stream.
func (p *peer) request() uint32 {
	p.t.Helper()
	return p.next(http2.FrameHeaders).Header().StreamID
}

func block(fields ...string) []byte {
	var b bytes.Buffer
	e := hpack.NewEncoder(&b)
	for i := 0; i < len(fields); i += 2 {
		_ = e.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]})
	}
	return b.Bytes()
}

func (p *peer) headers(id uint32, end bool, fields ...string) {
	_ = p.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block(fields...), EndHeaders: true, EndStream: end})
}

func (p *peer) respond(id uint32, body string) {
	p.headers(id, false, ":status", "200")
	_ = p.WriteData(id, true, []byte(body))
}

// readAll reads a response from its header to its end.
func readAll(t testing.TB, s *Stream) (status int, body string, err error) {
	t.Helper()
	h, err := s.Header(t.Context(), long)
	if err != nil {
		return 0, "", err
	}
	var all []byte
	for {
		p, _, err := s.Read(t.Context(), long)
		if err == io.EOF {
			return h.Status, string(all), nil
		}
		if err != nil {
			return h.Status, string(all), err
		}
		all = append(all, p...)
	}
}

func wantBody(t *testing.T, s *Stream, want string) {
	t.Helper()
	if status, body, err := readAll(t, s); status != 200 || body != want || err != nil {
		t.Fatalf("%d %q %v, want %q", status, body, err, want)
	}
}

// until waits for a condition.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(long); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("never: " + what)
		}
	}
}
