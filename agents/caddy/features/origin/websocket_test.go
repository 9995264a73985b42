package origin

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	configv1 "edge.svc/caddy/gen/svc/config/v1"
)

const (
	handshake = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
	accepted  = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\nServer: x\r\n\r\n"
)

// echoing agrees to every WebSocket and sends back what it gets.
func echoing(t *testing.T, answer string) (*rawOrigin, chan string) {
	seen := make(chan string, 10)
	return newRawOrigin(t, func(c net.Conn, _ int64) {
		r := bufio.NewReader(c)
		head, _, err := readRequest(r)
		if err != nil {
			return
		}
		seen <- head
		io.WriteString(c, answer)
		if strings.Contains(answer, " 101 ") {
			io.Copy(c, r)
		}
	}), seen
}

func open(t *testing.T, e *edge, request string) (net.Conn, *bufio.Reader, *http.Response) {
	t.Helper()
	c, err := net.Dial("tcp", e.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(30 * time.Second))
	io.WriteString(c, request)
	r := bufio.NewReader(c)
	res, err := http.ReadResponse(r, &http.Request{Method: "GET"})
	if err != nil {
		t.Fatal(err)
	}
	return c, r, res
}

func TestWebSocketCarriesBytesBothWays(t *testing.T) {
	o, seen := echoing(t, accepted)
	e := newEdge(t, settings(), originAt("a", o.Addr().String()))
	// The first bytes come with the handshake.
	c, r, res := open(t, e, "GET /chat?x HTTP/1.1\r\nHost: a\r\n"+handshake+"\r\nearly")
	if res.StatusCode != 101 || res.Header.Get("Upgrade") != "websocket" || res.Header.Get("Connection") != "Upgrade" ||
		res.Header.Get("Sec-Websocket-Accept") == "" || res.Header.Get("Server") != "" {
		t.Fatalf("got %d %v", res.StatusCode, res.Header)
	}
	head := <-seen
	for _, line := range []string{"GET /chat?x HTTP/1.1", "Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Version: 13", "X-Real-IP: 192.0.2.77"} {
		if !strings.Contains(head, line+"\r\n") {
			t.Errorf("%q is missing in %q", line, head)
		}
	}
	early := make([]byte, 5)
	if _, err := io.ReadFull(r, early); err != nil || string(early) != "early" {
		t.Fatalf("got %q %v", early, err)
	}
	big := strings.Repeat("0123456789", 100_000)
	go io.WriteString(c, big)
	back := make([]byte, len(big))
	if _, err := io.ReadFull(r, back); err != nil || string(back) != big {
		t.Fatalf("got %d bytes, %v", len(back), err)
	}
	c.(*net.TCPConn).CloseWrite()
	if rest, err := io.ReadAll(r); err != nil || len(rest) != 0 {
		t.Fatalf("got %q %v", rest, err)
	}
}

func TestWhatIsNoWebSocketIsNotUpgraded(t *testing.T) {
	for name, request := range map[string]string{
		"other method":    "POST / HTTP/1.1\r\nHost: a\r\n" + handshake,
		"HTTP/1.0":        "GET / HTTP/1.0\r\nHost: a\r\n" + handshake,
		"with a body":     "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n" + handshake,
		"h2c":             "GET / HTTP/1.1\r\nHost: a\r\nUpgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n",
		"not connected":   "GET / HTTP/1.1\r\nHost: a\r\n" + strings.Replace(handshake, "Connection: Upgrade", "Connection: keep-alive", 1),
		"no key":          "GET / HTTP/1.1\r\nHost: a\r\n" + strings.Replace(handshake, "Sec-WebSocket-Key", "X-Key", 1),
		"two keys":        "GET / HTTP/1.1\r\nHost: a\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n" + handshake,
		"short key":       "GET / HTTP/1.1\r\nHost: a\r\n" + strings.Replace(handshake, "dGhlIHNhbXBsZSBub25jZQ==", "c2hvcnQ=", 1),
		"key not base 64": "GET / HTTP/1.1\r\nHost: a\r\n" + strings.Replace(handshake, "dGhlIHNhbXBsZSBub25jZQ==", "****************", 1),
		"old version":     "GET / HTTP/1.1\r\nHost: a\r\n" + strings.Replace(handshake, ": 13", ": 8", 1),
		"no version":      "GET / HTTP/1.1\r\nHost: a\r\n" + strings.Replace(handshake, "Sec-WebSocket-Version", "X-Version", 1),
	} {
		for _, on := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, allowed %v", name, on), func(t *testing.T) {
				o, seen := answering(t, okAnswer)
				e := newEdge(t, settings(func(p *configv1.OriginPool) { p.Websocket = on }), originAt("a", o.Addr().String()))
				body := ""
				if strings.Contains(request, "Content-Length") {
					body = "x"
				}
				_, _, res := open(t, e, request+"\r\n"+body)
				if res.StatusCode != 200 {
					t.Fatalf("got %d", res.StatusCode)
				}
				head := <-seen
				if strings.Contains(head, "Upgrade") || strings.Contains(head, "Connection") || strings.Contains(strings.ToLower(head), "http2-settings") {
					t.Fatalf("got %q", head)
				}
			})
		}
	}
}

func TestWebSocketIsRefusedWhereItIsOff(t *testing.T) {
	o, seen := echoing(t, accepted)
	e := newEdge(t, settings(func(p *configv1.OriginPool) { p.Websocket = false }), originAt("a", o.Addr().String()))
	_, _, res := open(t, e, "GET / HTTP/1.1\r\nHost: a\r\n"+handshake+"\r\n")
	if res.StatusCode != 403 || res.Header.Get("X-Svc-Error") != "websocket-disabled" || len(seen) != 0 {
		t.Fatalf("got %d %v", res.StatusCode, res.Header)
	}
}

func TestOnlyAWebSocketIsAcceptedBack(t *testing.T) {
	for name, c := range map[string]struct {
		answer string
		status int
	}{
		"h2c":           {strings.Replace(accepted, "Upgrade: websocket", "Upgrade: h2c", 1), 502},
		"nothing named": {strings.Replace(accepted, "Upgrade: websocket\r\n", "", 1), 502},
		"two protocols": {strings.Replace(accepted, "Upgrade: websocket", "Upgrade: websocket, h2c", 1), 502},
		"not connected": {strings.Replace(accepted, "Connection: Upgrade\r\n", "", 1), 502},
		"refused":       {"HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n", 401},
		"ignored":       {okAnswer, 200},
		"interim first": {"HTTP/1.1 100 Continue\r\n\r\n" + accepted, 101},
	} {
		t.Run(name, func(t *testing.T) {
			o, _ := echoing(t, c.answer)
			e := newEdge(t, settings(), originAt("a", o.Addr().String()))
			if _, _, res := open(t, e, "GET / HTTP/1.1\r\nHost: a\r\n"+handshake+"\r\n"); res.StatusCode != c.status {
				t.Fatalf("got %d", res.StatusCode)
			}
		})
	}
}

func TestWebSocketGoesOnToAnOriginThatAnswers(t *testing.T) {
	o, _ := echoing(t, accepted)
	e := newEdge(t, settings(), originAt("a", dead), originAt("b", o.Addr().String()))
	if _, _, res := open(t, e, "GET / HTTP/1.1\r\nHost: a\r\n"+handshake+"\r\n"); res.StatusCode != 101 {
		t.Fatalf("got %d", res.StatusCode)
	}
}

// Setting the wall clock ends no WebSocket: times without a monotonic reading would follow it.
func TestWebSocketsDoNotFollowTheWallClock(t *testing.T) {
	tunnel := tunnel{begun: time.Now()}
	tunnel.touch()
	wall := func(at time.Time) bool { return !strings.Contains(at.String(), " m=") }
	if wall(tunnel.deadline()) {
		t.Error("the end of an idle tunnel")
	}
	tunnel.end.Store(1)
	if wall(tunnel.deadline()) {
		t.Error("the end of a tunnel that is ending")
	}
}

func TestCancelledWebSocketEndsAtOnce(t *testing.T) {
	o, _ := echoing(t, accepted)
	e := newEdge(t, settings(), originAt("a", o.Addr().String()))
	cancels := make(chan context.CancelFunc, 1)
	inner := e.Config.Handler
	e.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithCancel(r.Context())
		cancels <- cancel
		inner.ServeHTTP(w, r.WithContext(ctx))
	})
	c, r, res := open(t, e, "GET / HTTP/1.1\r\nHost: a\r\n"+handshake+"\r\n")
	if res.StatusCode != 101 {
		t.Fatalf("got %d", res.StatusCode)
	}
	io.WriteString(c, "x")
	r.ReadByte()
	(<-cancels)()
	if rest, _ := io.ReadAll(r); len(rest) != 0 {
		t.Fatalf("got %q", rest)
	}
}

// Some servers and clients compare these names with case.
func TestWebSocketNamesAreSpelledAsTheirStandardHasThem(t *testing.T) {
	refusal := func(status string) string {
		return "HTTP/1.1 " + status + "\r\nSec-WebSocket-Version: 13, 8\r\nContent-Length: 0\r\n\r\n"
	}
	for name, c := range map[string]struct {
		answer string
		lines  []string
	}{
		"agreed": {strings.Replace(accepted, "Server: x", "sec-websocket-protocol: chat\r\nSEC-WEBSOCKET-EXTENSIONS: permessage-deflate", 1),
			[]string{"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=", "Sec-WebSocket-Protocol: chat", "Sec-WebSocket-Extensions: permessage-deflate"}},
		"upgrade required": {refusal("426 Upgrade Required"), []string{"Sec-WebSocket-Version: 13, 8"}},
		"bad request":      {refusal("400 Bad Request"), []string{"Sec-WebSocket-Version: 13, 8"}},
	} {
		o, _ := echoing(t, c.answer)
		e := newEdge(t, settings(), originAt("a", o.Addr().String()))
		conn, err := net.Dial("tcp", e.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		conn.SetDeadline(time.Now().Add(30 * time.Second))
		io.WriteString(conn, "GET / HTTP/1.1\r\nHost: a\r\n"+handshake+"\r\n")
		head, _, err := readRequest(bufio.NewReader(conn))
		conn.Close()
		for _, line := range c.lines {
			if err != nil || !strings.Contains(head, "\r\n"+line+"\r\n") {
				t.Errorf("%s: %q is missing in %q, %v", name, line, head, err)
			}
		}
	}
}

func TestWebSocketIsTakenFromAListOfProtocols(t *testing.T) {
	for _, list := range []string{"Upgrade: foo, websocket", "Upgrade: websocket, h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__", "Upgrade: h2c\r\nUpgrade: WebSocket"} {
		o, seen := echoing(t, accepted)
		e := newEdge(t, settings(), originAt("a", o.Addr().String()))
		_, _, res := open(t, e, "GET / HTTP/1.1\r\nHost: a\r\n"+strings.Replace(handshake, "Upgrade: websocket", list, 1)+"\r\n")
		head := <-seen
		if res.StatusCode != 101 || !strings.Contains(head, "\r\nUpgrade: websocket\r\n") || strings.Contains(head, "h2c") || strings.Contains(head, "foo") || strings.Contains(head, "HTTP2") {
			t.Errorf("%s: got %d, the origin %q", list, res.StatusCode, head)
		}
	}
}

// An origin that is kept for one request hears of both.
func TestTrailersAreWelcomeOnConnectionsThatAreNotKept(t *testing.T) {
	o, seen := answering(t, okAnswer)
	e := newEdge(t, settings(func(p *configv1.OriginPool) { p.Keepalive = false }), originAt("a", o.Addr().String()))
	e.raw("GET / HTTP/1.1\r\nHost: a\r\nTE: trailers\r\nConnection: TE, close\r\n\r\n")
	if head := <-seen; !strings.Contains(head, "\r\nTE: trailers\r\nConnection: close, TE\r\n") {
		t.Errorf("got %q", head)
	}
}
