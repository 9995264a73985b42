package program_test

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	configv1 "edge.svc/caddy/gen/svc/config/v1"
	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
	nodev1 "edge.svc/caddy/gen/svc/node/v1"
	"edge.svc/caddy/internal/edgetest"
	"edge.svc/caddy/program/live"
)

func TestEdgeServesFromItsJournals(t *testing.T) {
	port := live.StartOrigin(t)
	disabled := edgetest.Site(port, "off.test")
	disabled.Disabled = true
	limited := edgetest.Site(port, "limited.test")
	limited.RequestBodyLimit = 10
	noSocket := edgetest.Site(port, "nosocket.test")
	noSocket.Pool.Websocket = false
	e := live.Start(t, nil, []*edgev1.JournalRecord{
		edgetest.Header("node-1"),
		edgetest.Config(1, []*configv1.Entry{
			live.OriginPolicy(), live.HeaderMode(),
			edgetest.Entry("site", "site-a", edgetest.Site(port, "a.test", "*.a.test")),
			edgetest.Entry("site", "site-off", disabled),
			edgetest.Entry("site", "site-limited", limited),
			edgetest.Entry("site", "site-nosocket", noSocket),
			edgetest.Entry("ip-list", "bad", &configv1.IpList{ListKind: configv1.IpListKind_IP_LIST_KIND_BLOCK, EntryCount: 1}),
			edgetest.Entry("ip-list-chunk", "bad/0", &configv1.IpListChunk{ListId: "bad", Cidrs: []string{"198.51.100.0/24"}}),
			edgetest.Entry("ip-list", "good", &configv1.IpList{ListKind: configv1.IpListKind_IP_LIST_KIND_ALLOW, EntryCount: 2}),
			edgetest.Entry("ip-list-chunk", "good/0", &configv1.IpListChunk{ListId: "good", Cidrs: []string{"198.51.100.5/32", "203.0.113.9/32"}}),
		}),
	}, []*edgev1.JournalRecord{
		edgetest.Header("node-1"),
		edgetest.Bans(1, []*nodev1.Ban{live.Ban("b1", "", "203.0.113.0/24"), live.Ban("b2", "site-a", "192.0.2.1/32"), live.Ban("b3", "", "127.0.0.1/32")}),
	})

	t.Run("the status names what was read", func(t *testing.T) {
		status := e.Status()
		if status.GetSites() != 4 || status.GetConfig().GetRevision() != 1 || status.GetBans().GetEntries() != 3 ||
			len(status.GetWarnings()) != 0 || len(status.GetFailed()) != 0 {
			t.Fatalf("%v", status)
		}
	})
	t.Run("a site answers through its origin with clean headers", func(t *testing.T) {
		_, body := e.Expect("GET", "A.test:80", "/x%2fy;z?a=%zz;b", 200, "",
			"X-Svc-Site", "forged", "X-Forwarded-For", "9.9.9.9", "X-Demo-Client-Ip", "9.8.7.6", "CDN-Loop", "other", "Connection", "CDN-Loop")
		for _, want := range []string{
			"Host: a.test\n", "Target: /x%2fy;z?a=%zz;b\n", "X-Real-Ip: 9.8.7.6\r\n", "X-Forwarded-For: 9.9.9.9, 127.0.0.1\r\n",
			"X-Forwarded-Proto: http\r\n", "Cdn-Loop: other, svc-", "X-Request-Id: ",
		} {
			if !strings.Contains(body, want) {
				t.Errorf("the origin did not get %q:\n%s", want, body)
			}
		}
		if strings.Contains(body, "X-Svc-") {
			t.Errorf("an internal header passed:\n%s", body)
		}
	})
	t.Run("a well-formed request id is kept, another replaced", func(t *testing.T) {
		response, _ := e.Expect("GET", "a.test", "/", 200, "", "X-Request-Id", "client-id.1:2_3")
		if got := response.Header.Get("X-Request-Id"); got != "client-id.1:2_3" {
			t.Errorf("got %q", got)
		}
		response, _ = e.Expect("GET", "a.test", "/", 200, "", "X-Request-Id", "<script>")
		if got := response.Header.Get("X-Request-Id"); len(got) != 32 {
			t.Errorf("got %q", got)
		}
	})
	t.Run("every stage has its answer", func(t *testing.T) {
		loop := "svc-" + nodeToken("node-1")
		for _, c := range []struct {
			method, host, target string
			status               int
			code                 string
			headers              []string
		}{
			{"GET", "sub.a.test", "/", 200, "", nil},
			{"GET", "x.sub.a.test", "/", 404, "unknown-host", nil},
			{"GET", "unknown.test", "/.svc/x", 404, "unknown-host", nil},
			{"GET", "127.0.0.1", "/", 404, "unknown-host", nil},
			{"GET", "off.test", "/", 503, "site-disabled", nil},
			{"GET", "a.test", "/", 508, "loop-detected", []string{"CDN-Loop", "x, " + strings.ToUpper(loop) + ";v=1"}},
			{"GET", "a.test", "/", 403, "ip-banned", []string{"X-Demo-Client-Ip", "203.0.113.7"}},
			{"GET", "a.test", "/.svc/x", 403, "ip-banned", []string{"X-Demo-Client-Ip", "::ffff:203.0.113.7"}},
			{"GET", "a.test", "/", 200, "", []string{"X-Demo-Client-Ip", "203.0.113.9"}},
			{"GET", "a.test", "/", 403, "ip-banned", []string{"X-Demo-Client-Ip", "192.0.2.1"}},
			{"GET", "limited.test", "/", 200, "", []string{"X-Demo-Client-Ip", "192.0.2.1"}},
			{"GET", "a.test", "/", 200, "", nil},
			{"GET", "a.test", "/.svc/challenge/none", 404, "not-found", nil},
			{"GET", "a.test", "/x/%2e%2e/%2Esvc/y", 404, "not-found", nil},
			{"GET", "a.test", "/.svc/x", 404, "not-found", []string{"X-Demo-Client-Ip", "198.51.100.6"}},
			{"GET", "a.test", "/", 403, "policy-denied", []string{"X-Demo-Client-Ip", "198.51.100.6"}},
			{"GET", "a.test", "/", 200, "", []string{"X-Demo-Client-Ip", "198.51.100.5"}},
			{"TRACE", "a.test", "/", 405, "method-not-allowed", nil},
			{"HEAD", "unknown.test", "/", 404, "unknown-host", nil},
		} {
			e.Expect(c.method, c.host, c.target, c.status, c.code, c.headers...)
		}
	})
	t.Run("the answer to a banned client is small and ends the connection", func(t *testing.T) {
		answer := e.Raw("GET / HTTP/1.1\r\nHost: a.test\r\nX-Demo-Client-Ip: 203.0.113.7\r\n\r\n")
		if len(answer) > 1024 || !strings.Contains(answer, "Connection: close\r\n") {
			t.Errorf("%d bytes:\n%s", len(answer), answer)
		}
	})
	t.Run("health responds on hosts that mean the node", func(t *testing.T) {
		for _, host := range []string{"192.0.2.9", "192.0.2.9:80", "[2001:db8::1]:80", "health.svc.invalid", "HEALTH.svc.invalid:80"} {
			response, body := e.Get("GET", host, "/.svc/health")
			if response.StatusCode != 200 || body != "ok" || response.Header.Get("Cache-Control") != "no-store" {
				t.Errorf("%s: %d %q", host, response.StatusCode, body)
			}
		}
		if answer := e.Raw("GET /.svc/health HTTP/1.0\r\n\r\n"); !strings.HasPrefix(answer, "HTTP/1.0 200 ") || !strings.HasSuffix(answer, "ok") {
			t.Errorf("without a Host: %q", answer)
		}
		e.Expect("POST", "192.0.2.9", "/.svc/health", 404, "unknown-host")
		e.Expect("GET", "a.test", "/.svc/health", 404, "not-found")
		e.Expect("GET", "whatever.test", "/.svc/health", 404, "unknown-host")
	})
	t.Run("requests about the server are refused", func(t *testing.T) {
		for _, line := range []string{"OPTIONS * HTTP/1.1", "CONNECT a.test:443 HTTP/1.1"} {
			answer := e.Raw(line + "\r\nHost: a.test\r\nConnection: close\r\n\r\n")
			if !strings.HasPrefix(answer, "HTTP/1.1 405 ") || !strings.Contains(answer, "X-Svc-Error: method-not-allowed\r\n") {
				t.Errorf("%s: %s", line, answer)
			}
		}
	})
	t.Run("what Caddy refuses has the form of every other answer", func(t *testing.T) {
		answer := e.Raw("GET / HTTP/1.1\r\nHost: a..test/x\r\nConnection: close\r\n\r\n")
		if strings.Contains(answer, "Caddy") {
			t.Errorf("%s", answer)
		}
		answer = e.Raw("GET / HTTP/1.1\r\nHost: ...\r\nConnection: close\r\n\r\n")
		if !strings.HasPrefix(answer, "HTTP/1.1 400 ") || !strings.Contains(answer, "X-Svc-Error: bad-request\r\n") {
			t.Errorf("%s", answer)
		}
	})
	t.Run("a body over the limit is refused, announced or counted", func(t *testing.T) {
		for name, body := range map[string]io.Reader{"announced": strings.NewReader("12345678901"), "counted": io.MultiReader(strings.NewReader("12345678901"))} {
			request, err := http.NewRequest("POST", "http://"+e.Addr+"/", body)
			if err != nil {
				t.Fatal(err)
			}
			request.Host = "limited.test"
			if response, _ := e.Send(request); response.StatusCode != 413 || response.Header.Get("X-Svc-Error") != "body-too-large" {
				t.Errorf("%s: %d %q", name, response.StatusCode, response.Header.Get("X-Svc-Error"))
			}
		}
	})
	t.Run("a client that is still sending reads why it was refused", func(t *testing.T) {
		conn, err := net.Dial("tcp", e.Addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(live.Wait))
		const size = 8 << 20
		go func() {
			_, _ = fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: limited.test\r\nContent-Length: %d\r\n\r\n", size)
			_, _ = conn.Write(make([]byte, size))
		}()
		response, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		if err != nil || response.StatusCode != 413 || len(body) == 0 {
			t.Errorf("%d %v", response.StatusCode, err)
		}
	})
	t.Run("an upgrade to WebSocket is refused where the site has none, any other is taken out", func(t *testing.T) {
		e.Expect("GET", "nosocket.test", "/", 403, "websocket-disabled", "Connection", "Upgrade", "Upgrade", "websocket",
			"Sec-WebSocket-Version", "13", "Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")
		_, body := e.Expect("GET", "nosocket.test", "/", 200, "", "Connection", "Upgrade, HTTP2-Settings", "Upgrade", "h2c", "HTTP2-Settings", "AAMAAABkAAQAoAAAAAIAAAAA")
		if strings.Contains(body, "Upgrade") || strings.Contains(body, "Http2") {
			t.Errorf("%s", body)
		}
	})
}

func nodeToken(nodeID string) string {
	sum := sha256.Sum256([]byte(nodeID))
	return hex.EncodeToString(sum[:8])
}
