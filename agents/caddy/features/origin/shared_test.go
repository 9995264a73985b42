package origin

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	configv1 "edge.svc/caddy/gen/svc/config/v1"
)

// h2cOrigin is an origin that speaks HTTP/2 without TLS and nothing else.
func h2cOrigin(t testing.TB, h http.HandlerFunc) *httptest.Server {
	s := httptest.NewUnstartedServer(h)
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Start()
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

// newSharedEdge is an edge whose fetcher has net/http's client behind it.
func newSharedEdge(t testing.TB, pool *configv1.OriginPool, origins ...*configv1.Origin) *edge {
	e := newEdge(t, pool, origins...)
	e.shared = NewShared(e.transports)
	t.Cleanup(e.shared.CloseIdle)
	return e
}

// Two clients to origins stand behind the same Fetcher; the second one speaks HTTP/2.
func TestSecondClientSpeaksHTTP2(t *testing.T) {
	o := h2cOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Trailer", "X-After")
		w.Header().Set("Server", "hidden")
		w.Header().Set("Alt-Svc", "h3=\":1\"")
		w.Header().Set("Set-Cookie", "__ew_pass=x")
		fmt.Fprintf(w, "%s %s %s %s %s %s %q %v", r.Proto, r.Method, r.Host, r.RequestURI, r.Header.Get("X-Real-Ip"), r.Header.Get("X-Svc-Site")+r.Header.Get("X-Mine"), body, r.Trailer)
		w.Header().Set("X-After", "last")
	})
	e := newSharedEdge(t, settings(), originAt("a", addressOf(o)))
	answer := e.raw("POST /%7Ea//b?x=%zz HTTP/1.1\r\nHost: Site.TEST:80\r\nX-Svc-Site: forged\r\nX-Mine: 1\r\nTE: trailers\r\nConnection: close, X-Mine\r\n" +
		"Trailer: X-Sum, X-Svc-Sum\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX-Sum: 7\r\nX-Svc-Sum: 8\r\n\r\n")
	for _, want := range []string{"HTTP/1.1 200 OK", `HTTP/2.0 POST site.test:80 /%7Ea//b?x=%zz 192.0.2.77  "abc" map[X-Sum:[7]]`, "X-After: last"} {
		if !strings.Contains(answer, want) {
			t.Errorf("no %s in %s", want, answer)
		}
	}
	for _, hidden := range []string{"Server:", "Alt-Svc", "__ew_", "X-Svc-Sum"} {
		if strings.Contains(answer, hidden) {
			t.Errorf("%s in %s", hidden, answer)
		}
	}
}

func TestSecondClientSharesAConnection(t *testing.T) {
	var peers sync.Map
	release := make(chan struct{})
	o := h2cOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		peers.Store(r.RemoteAddr, true)
		if r.URL.Path == "/wait" {
			<-release
		}
		io.WriteString(w, "ok")
	})
	e := newSharedEdge(t, settings(), originAt("a", addressOf(o)))
	e.wantGet("/", 200, "ok")
	waiting := make(chan struct{})
	go func() {
		defer close(waiting)
		e.get("/wait")
	}()
	for range 10 {
		e.wantGet("/", 200, "ok")
	}
	close(release)
	<-waiting
	connections := 0
	peers.Range(func(any, any) bool { connections++; return true })
	if connections != 1 {
		t.Errorf("%d connections", connections)
	}
}

func TestSecondClientFailsAsTheFirst(t *testing.T) {
	slow := h2cOrigin(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	good := h2cOrigin(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok") })
	failing := h2cOrigin(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) })
	quick := settings(func(p *configv1.OriginPool) { p.ReadTimeoutMs = 100 })
	newSharedEdge(t, quick, originAt("a", addressOf(slow))).wantGet("/", 504, "edge: origin-timeout")
	newSharedEdge(t, settings(), originAt("a", dead)).wantGet("/", 502, "edge: origin-unreachable")
	newSharedEdge(t, settings(), originAt("a", dead), originAt("b", addressOf(good))).wantGet("/", 200, "ok")
	newSharedEdge(t, settings(), originAt("a", addressOf(failing)), originAt("b", addressOf(good))).wantGet("/", 200, "ok")
	own, _ := answering(t, okAnswer)
	newSharedEdge(t, settings(), originAt("a", own.Addr().String())).wantGet("/", 502, "edge: origin-unreachable")
	forbidden := newSharedEdge(t, settings(), originAt("a", addressOf(good)))
	refusing, err := CompilePolicy(&configv1.OriginPolicy{})
	if err != nil {
		t.Fatal(err)
	}
	forbidden.shared = NewShared(NewTransportSet(func() *AddressPolicy { return refusing }))
	forbidden.wantGet("/", 502, "edge: no-origin")
}

// What comes in pieces leaves in pieces, and an end that comes too early is no end.
func TestSecondClientStreams(t *testing.T) {
	next := make(chan struct{})
	o := h2cOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "first")
		_ = http.NewResponseController(w).Flush()
		<-next
		if r.URL.Path == "/broken" {
			panic(http.ErrAbortHandler)
		}
		io.WriteString(w, "second")
	})
	e := newSharedEdge(t, settings(), originAt("a", addressOf(o)))
	for path, whole := range map[string]bool{"/": true, "/broken": false} {
		res, err := http.Get(e.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		first := make([]byte, 5)
		if _, err := io.ReadFull(res.Body, first); err != nil || string(first) != "first" {
			t.Fatalf("%q %v", first, err)
		}
		next <- struct{}{}
		if rest, err := io.ReadAll(res.Body); (err == nil) != whole || whole && string(rest) != "second" {
			t.Errorf("%s: %q %v", path, rest, err)
		}
		res.Body.Close()
	}
}

// An origin that answers before it has the whole body ends the upload with the exchange, and nothing reads on after it.
func TestSecondClientEndsUploads(t *testing.T) {
	o := h2cOrigin(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(401) })
	e := newSharedEdge(t, settings(), originAt("a", addressOf(o)))
	for range 20 {
		c, err := net.Dial("tcp", e.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_ = c.SetDeadline(time.Now().Add(30 * time.Second))
		io.WriteString(c, "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000000\r\n\r\nfirst bytes")
		res, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil || res.StatusCode != 401 {
			t.Fatalf("%v %v", res, err)
		}
		c.Close()
	}
}
