package edge_test

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	configv1 "edge.svc/caddy/gen/svc/config/v1"
	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
	"edge.svc/caddy/internal/edgetest"
	"edge.svc/caddy/program/live"
)

// What differs between two answers to the same request.
var changing = regexp.MustCompile(`(?mi)^(Date|X-Request-Id|Cdn-Loop|X-Forwarded-Port): .*\n|[0-9a-f]{32}`)

// Whether a request skips the chain of Caddy's server makes no difference to its answer, nor to what its origin gets.
func TestPlainRequestsSkipTheChain(t *testing.T) {
	config := []*edgev1.JournalRecord{
		edgetest.Header("node-1"),
		edgetest.Config(1, []*configv1.Entry{live.OriginPolicy(), edgetest.Entry("site", "site-a", edgetest.Site(live.StartOrigin(t), "a.test"))}),
	}
	direct := live.Start(t, nil, config, nil)
	chain := live.StartWith(t, map[string]any{"routes": live.RouteTo(map[string]any{"handler": "svc_edge"})}, nil, config, nil)
	for _, c := range []struct{ name, request, status string }{
		{"a page", "GET /x?y HTTP/1.1\r\nHost: a.test\r\n", "200"},
		{"HTTP/1.0", "GET / HTTP/1.0\r\nHost: a.test\r\n", "200"},
		{"HTTP/1.0 without a host", "GET / HTTP/1.0\r\n", "404"},
		{"no host", "GET / HTTP/1.1\r\n", "400"},
		{"an empty host", "GET / HTTP/1.1\r\nHost:\r\n", "400"},
		{"a host of dots", "GET / HTTP/1.1\r\nHost: ...\r\n", "400"},
		{"a host with a path", "GET / HTTP/1.1\r\nHost: a.test/x\r\n", "400"},
		{"two hosts", "GET / HTTP/1.1\r\nHost: a.test\r\nHost: b.test\r\n", "400"},
		{"the absolute form", "GET http://a.test/x HTTP/1.1\r\nHost: b.test\r\n", "200"},
		{"the absolute form of another host", "GET http://b.test/x HTTP/1.1\r\nHost: a.test\r\n", "404"},
		{"a long method", strings.Repeat("A", 33) + " / HTTP/1.1\r\nHost: a.test\r\n", "405"},
		{"a method of the longest length", strings.Repeat("A", 32) + " / HTTP/1.1\r\nHost: a.test\r\n", "200"},
		{"CONNECT", "CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n", "405"},
		{"OPTIONS of the server", "OPTIONS * HTTP/1.1\r\nHost: a.test\r\n", "405"},
		{"a target without a host that has one in its query", "GET x:/.well-known/acme-challenge/t?://a.test/admin HTTP/1.1\r\nHost: a.test\r\n", "400"},
		{"a target that is no path", "GET x:y HTTP/1.1\r\nHost: a.test\r\n", "400"},
		{"an asterisk", "GET * HTTP/1.1\r\nHost: a.test\r\n", "400"},
		{"the preface of HTTP/2", "PRI * HTTP/2.0\r\n", "400"},
		{"a host that ends with a dot", "GET / HTTP/1.1\r\nHost: A.test.:80\r\n", "200"},
		{"names that others could be read from", "GET / HTTP/1.1\r\nHost: a.test\r\nX_Real_IP: 1\r\nX.Real.IP: 2\r\nX-Kept: 3\r\nX_a.b: 4\r\n", "200"},
		{"a body", "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 3\r\n", "200"},
		{"an unknown host", "GET / HTTP/1.1\r\nHost: b.test\r\n", "404"},
		{"the reserved prefix", "GET /.svc/x HTTP/1.1\r\nHost: a.test\r\n", "404"},
	} {
		request := c.request + "Connection: close\r\n\r\nabc"
		got, want := changing.ReplaceAllString(direct.Raw(request), ""), changing.ReplaceAllString(chain.Raw(request), "")
		if got != want {
			t.Errorf("%s:\n%s\nthrough the chain:\n%s", c.name, got, want)
		}
		if !strings.HasPrefix(got, "HTTP/1.1 "+c.status+" ") && !strings.HasPrefix(got, "HTTP/1.0 "+c.status+" ") || strings.Contains(got, "Caddy") {
			t.Errorf("%s: %s", c.name, got)
		}
	}
}

// Challenge pages come whole, one after the other, on a connection that asks for several at once.
func TestPagesOfPipelinedRequests(t *testing.T) {
	e := live.Start(t, nil, []*edgev1.JournalRecord{
		edgetest.Header("node-1"),
		edgetest.Config(1, []*configv1.Entry{
			edgetest.Entry("site", "site-a", edgetest.Site(9, "a.test")),
			edgetest.Entry("protection", "site-a", &configv1.SiteProtection{UnderAttack: true, UnderAttackChallenge: configv1.ChallengeType_CHALLENGE_TYPE_POW}),
		}),
	}, nil)
	e.SetKeys()
	conn, err := net.Dial("tcp", e.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(live.Wait))
	const requests = 20
	if _, err := io.WriteString(conn, strings.Repeat("GET / HTTP/1.1\r\nHost: a.test\r\n\r\nHEAD / HTTP/1.1\r\nHost: a.test\r\n\r\n", requests/2)); err != nil {
		t.Fatal(err)
	}
	reader := bufio.NewReader(conn)
	for i := range requests {
		method := []string{"GET", "HEAD"}[i%2]
		response, err := http.ReadResponse(reader, &http.Request{Method: method})
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		if err != nil || response.StatusCode != 403 || method == "GET" != strings.HasSuffix(string(body), "</html>") {
			t.Fatalf("%s: %d %v\n%s", method, response.StatusCode, err, body)
		}
	}
}

// A limit on writes ends who does not read, and nothing else: what waits between two writes, or became a WebSocket, goes on.
func TestLimitOnWrites(t *testing.T) {
	const idle = 300 * time.Millisecond
	gaveUp := make(chan struct{})
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/much":
			defer close(gaveUp)
			for part := make([]byte, 1<<20); ; {
				if _, err := w.Write(part); err != nil {
					return
				}
			}
		case "/pause":
			_, _ = io.WriteString(w, "first")
			_ = http.NewResponseController(w).Flush()
			// What is tested is a limit on time.
			time.Sleep(2 * idle)
			_, _ = io.WriteString(w, " second")
		case "/socket":
			w.Header().Set("Connection", "Upgrade")
			w.Header().Set("Upgrade", "websocket")
			w.WriteHeader(http.StatusSwitchingProtocols)
			conn, both, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			_, _ = io.Copy(conn, both)
		}
	}))
	defer origin.Close()
	port, _ := strconv.Atoi(origin.URL[strings.LastIndexByte(origin.URL, ':')+1:])
	site := edgetest.Site(uint32(port), "a.test")
	site.Pool.Websocket = true
	e := live.StartWith(t, map[string]any{"write_idle_timeout": idle.String()}, nil, []*edgev1.JournalRecord{
		edgetest.Header("node-1"),
		edgetest.Config(1, []*configv1.Entry{live.OriginPolicy(), edgetest.Entry("site", "site-a", site)}),
	}, nil)

	if _, body := e.Expect("GET", "a.test", "/pause", 200, ""); body != "first second" {
		t.Errorf("%q", body)
	}
	connect := func(request string) (net.Conn, *bufio.Reader) {
		conn, err := net.Dial("tcp", e.Addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		_ = conn.SetDeadline(time.Now().Add(live.Wait))
		_, _ = io.WriteString(conn, request)
		return conn, bufio.NewReader(conn)
	}
	conn, reader := connect("GET /socket HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
	response, err := http.ReadResponse(reader, nil)
	if err != nil || response.StatusCode != http.StatusSwitchingProtocols {
		t.Fatal(response, err)
	}
	for _, said := range []string{"one", "two"} {
		time.Sleep(2 * idle)
		_, _ = io.WriteString(conn, said)
		heard := make([]byte, len(said))
		if _, err := io.ReadFull(reader, heard); err != nil || string(heard) != said {
			t.Fatalf("%q %v", heard, err)
		}
	}
	// A connection on which nothing was asked for longer than a write may take answers on, by whatever way.
	conn, reader = connect("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n")
	answered := func(method string, want int) {
		t.Helper()
		response, err := http.ReadResponse(reader, &http.Request{Method: method})
		if err != nil || response.StatusCode != want {
			t.Fatal(response, err)
		}
		_, _ = io.Copy(io.Discard, response.Body)
	}
	answered("GET", 200)
	for _, c := range []struct {
		request  string
		statuses []int
	}{
		{"HEAD /.svc/health HTTP/1.1\r\nHost: 192.0.2.9\r\n\r\n", []int{200}},
		{"HEAD /.svc/challenge/worker.js HTTP/1.1\r\nHost: a.test\r\n\r\n", []int{200}},
		{"POST / HTTP/1.1\r\nHost: a.test\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\nx", []int{100, 200}},
		{"GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n", []int{200}},
	} {
		time.Sleep(2 * idle)
		_, _ = io.WriteString(conn, c.request)
		for _, status := range c.statuses {
			answered(c.request[:strings.IndexByte(c.request, ' ')], status)
		}
	}
	connect("GET /much HTTP/1.1\r\nHost: a.test\r\n\r\n")
	select {
	case <-gaveUp:
	case <-time.After(live.Wait):
		t.Error("who does not read is waited for without end")
	}
}

// The server asks for a body only when there is an origin for it, however long finding one takes.
func TestUploadThatWaitsForItsOrigin(t *testing.T) {
	const idle = 300 * time.Millisecond
	origin := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, strconv.FormatInt(n, 10))
	}))
	origin.TLS = &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		// What is tested is a limit on time.
		time.Sleep(2 * idle)
		return nil, nil
	}}
	origin.StartTLS()
	defer origin.Close()
	port, _ := strconv.Atoi(origin.URL[strings.LastIndexByte(origin.URL, ':')+1:])
	site := edgetest.Site(uint32(port), "a.test")
	site.Origins[0].Https, site.Pool.TlsVerify = true, false
	e := live.StartWith(t, map[string]any{"write_idle_timeout": idle.String()}, nil, []*edgev1.JournalRecord{
		edgetest.Header("node-1"),
		edgetest.Config(1, []*configv1.Entry{live.OriginPolicy(), edgetest.Entry("site", "site-a", site)}),
	}, nil)
	answer := e.Raw("POST / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n")
	if !strings.HasPrefix(answer, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n") || !strings.HasSuffix(answer, "\r\n\r\n3") {
		t.Errorf("%q", answer)
	}
}

// What follows a request whose end others may find elsewhere is never read as another one.
func TestConnectionsEndAfterRequestsOfTwoEnds(t *testing.T) {
	config := []*edgev1.JournalRecord{
		edgetest.Header("node-1"),
		edgetest.Config(1, []*configv1.Entry{live.OriginPolicy(), edgetest.Entry("site", "site-a", edgetest.Site(live.StartOrigin(t), "a.test"))}),
	}
	direct := live.Start(t, nil, config, nil)
	chain := live.StartWith(t, map[string]any{"routes": live.RouteTo(map[string]any{"handler": "svc_edge"})}, nil, config, nil)
	for name, request := range map[string]string{
		"HTTP/1.0":              "GET / HTTP/1.0\r\nHost: a.test\r\nConnection: keep-alive\r\n\r\n",
		"HTTP/1.0 with chunks":  "POST / HTTP/1.0\r\nHost: a.test\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"chunks and a length":   "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"chunks":                "POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"chunks Caddy refuses":  "POST / HTTP/1.1\r\nHost: ...\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"chunks to nobody":      "POST / HTTP/1.1\r\nHost: b.test\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"chunks for the health": "GET /.svc/health HTTP/1.1\r\nHost: 192.0.2.9\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	} {
		for _, e := range []*live.Edge{direct, chain} {
			answers := e.Raw(request + "GET /second HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n")
			if strings.Count(answers, "HTTP/1.") != 1 || !strings.Contains(answers, "\nConnection: close\r\n") {
				t.Errorf("%s:\n%s", name, answers)
			}
		}
	}
	// HTTP/2 without TLS is spoken with nobody: its first words are a request that is refused, and SETTINGS after them are none.
	for _, e := range []*live.Edge{direct, chain} {
		if answer := e.Raw("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"); !strings.HasPrefix(answer, "HTTP/1.1 400 ") || strings.Count(answer, "HTTP/1.") != 1 {
			t.Errorf("the preface of HTTP/2:\n%q", answer)
		}
	}
}
