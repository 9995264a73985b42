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
	e.Until("all but what the network may hold are refused", func() bool {
		return answered() >= connections*posts-perNetwork/inflight.RequestBytes
	})
	e.Until("the network holds bodies", func() bool { return held() > perNetwork/2 })
	if bytes := held(); bytes > perNetwork {
		t.Errorf("one network holds %d bytes", bytes)
	}
	if n := e.Metric(`svc_edge_requests_refused_total{limit="network"}`); n < connections*posts-perNetwork/inflight.RequestBytes {
		t.Errorf("%d requests were refused", n)
	}
	if e.Metric(`svc_edge_answers_total{stage="fetch",code="edge-busy"}`) <= 0 {
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

// endlessBodies is a connection of HTTP/2 with requests whose bodies lack their last byte.
type endlessBodies struct {
	conn     *tls.Conn
	framer   *http2.Framer
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
	dialer := &net.Dialer{Timeout: live.Wait}
	conn, err := tls.DialWithDialer(dialer, "tcp", e.TLSAddr, &tls.Config{RootCAs: live.Certificate().Roots, ServerName: "a.test", NextProtos: []string{"h2"}})
	if err != nil {
		e.T.Fatal(err)
	}
	e.T.Cleanup(func() { conn.Close() })
	a := &endlessBodies{conn: conn, framer: http2.NewFramer(conn, conn), window: 65_535}
	a.more.L = &a.mu
	if _, err = io.WriteString(conn, http2.ClientPreface); err == nil {
		err = a.framer.WriteSettings()
	}
	if err != nil {
		e.T.Fatal(err)
	}
	go a.read()
	go a.send(client, posts)
	return a
}

const bodyBytes, frameBytes = 64 << 10, 16 << 10

func (a *endlessBodies) send(client string, posts int) {
	var fields bytes.Buffer
	encoder := hpack.NewEncoder(&fields)
	for i := range posts {
		fields.Reset()
		for _, f := range [][2]string{
			{":method", "POST"}, {":scheme", "https"}, {":authority", "a.test"}, {":path", "/"},
			{"content-length", strconv.Itoa(bodyBytes)}, {"x-demo-client-ip", client},
		} {
			_ = encoder.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]})
		}
		stream := uint32(2*i + 1)
		if a.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: fields.Bytes(), EndHeaders: true}) != nil {
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
