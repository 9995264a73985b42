package program_test

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	configv1 "edge.svc/caddy/gen/svc/config/v1"
	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
	"edge.svc/caddy/internal/edgetest"
	"edge.svc/caddy/internal/inflight"
	"edge.svc/caddy/program/live"
)

// Bodies that never end take no more memory than their network may hold, over however many connections they come, and a
// client of another network is served meanwhile. Where all networks together hold too much, the heaviest gives way.
func TestBodiesThatNeverEnd(t *testing.T) {
	const (
		total, perNetwork = 16 << 20, 4 << 20
		posts             = 100
	)
	e := live.Start(t, map[string]any{"max_request_mib": total >> 20, "max_request_mib_per_network": perNetwork >> 20}, []*edgev1.JournalRecord{
		edgetest.Header("node-1"),
		edgetest.Config(1, []*configv1.Entry{
			live.OriginPolicy(), live.HeaderMode(), edgetest.Entry("site", "site-a", edgetest.Site(live.StartOrigin(t), "a.test")), live.Certificate().HTTPS("site-a"),
		}),
	}, nil)
	held := func() int { return e.Metric(`svc_edge_request_memory_bytes{of="held"}`) }
	served := func(client string) {
		t.Helper()
		e.Expect(http.MethodPost, "a.test", "/", http.StatusOK, "", "X-Demo-Client-Ip", client)
	}

	const connections = 4
	var attack []*endlessBodies
	answered := func() (n int) {
		for _, a := range attack {
			n += int(a.answered.Load())
		}
		return n
	}
	for i := range connections {
		attack = append(attack, sendEndlessBodies(e, fmt.Sprintf("198.18.0.%d", i+1), posts))
	}
	refused := func() int { return e.Metric(`svc_edge_requests_refused_total{limit="network"}`) }
	e.Until("all but what the network may hold are refused", func() bool {
		return refused() >= connections*posts-perNetwork/inflight.RequestBytes
	})
	e.Until("the network holds bodies", func() bool { return held() > perNetwork/2 })
	if bytes := held(); bytes > perNetwork {
		t.Errorf("one network holds %d bytes", bytes)
	}
	e.Until("refused requests get responses", func() bool { return answered() > 0 })
	if e.Metric(`svc_edge_answers_total{stage="gather",code="edge-busy"}`) <= 0 {
		t.Error("no body was refused with the code")
	}
	served("198.18.1.1")

	for i := range 6 {
		attack = append(attack, sendEndlessBodies(e, fmt.Sprintf("198.19.%d.1", i), posts))
	}
	e.Until("networks lose requests to one another", func() bool { return e.Metric("svc_edge_requests_evicted_total") > 0 })
	for i := range 20 {
		served(fmt.Sprintf("203.0.113.%d", i))
	}
	if bytes := held(); bytes > total {
		t.Errorf("all networks hold %d bytes", bytes)
	}
	for _, a := range attack {
		a.conn.Close()
	}
	e.Until("nothing is held after it", func() bool { return held() == 0 && e.Metric("svc_edge_requests_in_progress") == 0 })
	served("198.18.0.1")
}

// A connection whose requests find no room again and again ends, where it comes from the network that holds too much
// itself. Those of a trusted proxy go on, for its other clients.
func TestAConnectionOfRefusedRequestsEnds(t *testing.T) {
	const perNetwork = 1 << 20
	closed := `svc_edge_http2_errors_total{kind="conn_ENHANCE_YOUR_CALM_refused_requests"}`
	for _, proxied := range []bool{false, true} {
		entries := []*configv1.Entry{live.OriginPolicy(), edgetest.Entry("site", "site-a", edgetest.Site(live.StartOrigin(t), "a.test")), live.Certificate().HTTPS("site-a")}
		client := "127.0.0.1"
		if proxied {
			entries, client = append(entries, live.HeaderMode()), "198.18.0.1"
		}
		e := live.Start(t, map[string]any{"max_request_mib": 64, "max_request_mib_per_network": perNetwork >> 20},
			[]*edgev1.JournalRecord{edgetest.Header("node-1"), edgetest.Config(1, entries)}, nil)
		holding := sendEndlessBodies(e, client, perNetwork/inflight.RequestBytes/2)
		e.Until("the network holds bodies", func() bool { return e.Metric(`svc_edge_request_memory_bytes{of="held"}`) > perNetwork/2 })
		refused := sendEndlessBodies(e, client, 100)
		if proxied {
			e.Until("all are refused", func() bool { return e.Metric(`svc_edge_requests_refused_total{limit="network"}`) >= 100 })
			if n := e.Metric(closed); n > 0 {
				t.Errorf("%d connections of a proxy were closed", n)
			}
			continue
		}
		e.Until("the connection is closed", func() bool { return refused.over() })
		if n := e.Metric(closed); n != 1 {
			t.Errorf("%d connections were closed", n)
		}
		if holding.over() {
			t.Error("a connection whose requests found room was closed")
		}
	}
}

// A response over HTTP/2 counts as a request in progress until its client takes it, also where the server holds all of it.
func TestResponsesThatNobodyTakesCount(t *testing.T) {
	e := live.Start(t, map[string]any{"max_request_mib": 64, "max_request_mib_per_network": 1}, []*edgev1.JournalRecord{
		edgetest.Header("node-1"),
		edgetest.Config(1, []*configv1.Entry{live.OriginPolicy(), edgetest.Entry("site", "site-a", edgetest.Site(live.StartOrigin(t), "a.test")), live.Certificate().HTTPS("site-a")}),
	}, nil)
	const gets = 20
	c := connectHTTP2(e, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
	go c.read()
	for i := range gets {
		if err := c.ask(uint32(2*i+1), http.MethodGet, true); err != nil {
			t.Fatal(err)
		}
	}
	inProgress := func() int { return e.Metric("svc_edge_requests_in_progress") }
	e.Until("responses begin", func() bool { return c.answered.Load() == gets })
	if n := inProgress(); n != gets {
		t.Errorf("%d of %d requests count", n, gets)
	}
	for i := range gets {
		if err := c.framer.WriteWindowUpdate(uint32(2*i+1), 1<<20); err != nil {
			t.Fatal(err)
		}
	}
	e.Until("nothing counts that was taken", func() bool { return inProgress() == 0 })
	// Of a client that takes what comes, none counts after its response.
	client := http.Client{Transport: live.OverTLS(t, "a.test")}
	for range gets {
		response, err := client.Get("https://" + e.TLSAddr)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, response.Body)
		response.Body.Close()
	}
	e.Until("no request is left", func() bool { return inProgress() == 0 })
}

// endlessBodies is a connection of HTTP/2 with requests whose bodies lack their last byte.
type endlessBodies struct {
	conn     *tls.Conn
	framer   *http2.Framer
	fields   bytes.Buffer
	hpack    *hpack.Encoder
	answered atomic.Int64

	mu sync.Mutex
	// What the server takes by now.
	window int
	more   sync.Cond
	ended  bool
}

// sendEndlessBodies sends so many at once for a client.
func sendEndlessBodies(e *live.Edge, client string, posts int) *endlessBodies {
	e.T.Helper()
	a := connectHTTP2(e)
	go a.read()
	go a.send(client, posts)
	return a
}

// connectHTTP2 begins a connection of HTTP/2.
func connectHTTP2(e *live.Edge, settings ...http2.Setting) *endlessBodies {
	e.T.Helper()
	dialer := &net.Dialer{Timeout: live.Wait}
	conn, err := tls.DialWithDialer(dialer, "tcp", e.TLSAddr, &tls.Config{RootCAs: live.Certificate().Roots, ServerName: "a.test", NextProtos: []string{"h2"}})
	if err != nil {
		e.T.Fatal(err)
	}
	e.T.Cleanup(func() { conn.Close() })
	a := &endlessBodies{conn: conn, framer: http2.NewFramer(conn, conn), window: 65_535}
	a.more.L = &a.mu
	a.hpack = hpack.NewEncoder(&a.fields)
	if _, err = io.WriteString(conn, http2.ClientPreface); err == nil {
		err = a.framer.WriteSettings(settings...)
	}
	if err != nil {
		e.T.Fatal(err)
	}
	return a
}

const bodyBytes, frameBytes = 64 << 10, 16 << 10

// ask begins a request, whole or with a body; headers come in pairs.
func (a *endlessBodies) ask(stream uint32, method string, whole bool, headers ...string) error {
	a.fields.Reset()
	all := append([]string{":method", method, ":scheme", "https", ":authority", "a.test", ":path", "/"}, headers...)
	for i := 0; i < len(all); i += 2 {
		_ = a.hpack.WriteField(hpack.HeaderField{Name: all[i], Value: all[i+1]})
	}
	return a.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: a.fields.Bytes(), EndHeaders: true, EndStream: whole})
}

func (a *endlessBodies) send(client string, posts int) {
	for i := range posts {
		stream := uint32(2*i + 1)
		if a.ask(stream, http.MethodPost, false, "content-length", strconv.Itoa(bodyBytes), "x-demo-client-ip", client) != nil {
			return
		}
		for left := bodyBytes - 1; left > 0; {
			n := a.take(min(left, frameBytes))
			if n == 0 || a.framer.WriteData(stream, false, make([]byte, n)) != nil {
				return
			}
			left -= n
		}
	}
}

// over reports whether the server ended the connection.
func (a *endlessBodies) over() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.ended
}

// take waits until the server takes bytes, and returns how many; 0 once the connection is over.
func (a *endlessBodies) take(most int) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	for a.window == 0 && !a.ended {
		a.more.Wait()
	}
	if a.ended {
		return 0
	}
	n := min(most, a.window)
	a.window -= n
	return n
}

func (a *endlessBodies) read() {
	defer func() {
		a.mu.Lock()
		a.ended = true
		a.mu.Unlock()
		a.more.Broadcast()
	}()
	for {
		_ = a.conn.SetReadDeadline(time.Now().Add(10 * live.Wait))
		frame, err := a.framer.ReadFrame()
		if err != nil {
			return
		}
		switch f := frame.(type) {
		case *http2.HeadersFrame:
			a.answered.Add(1)
		case *http2.WindowUpdateFrame:
			if f.StreamID == 0 {
				a.mu.Lock()
				a.window += int(f.Increment)
				a.mu.Unlock()
				a.more.Broadcast()
			}
		}
	}
}
