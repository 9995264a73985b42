package edge_test

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quic-go/quic-go/http3"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	configv1 "edge.svc/caddy/gen/svc/config/v1"
	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
	"edge.svc/caddy/internal/edgetest"
	"edge.svc/caddy/internal/ruletest"
	"edge.svc/caddy/program/live"
)

// wayIn is how a client reaches a site.
type wayIn struct {
	name, url, version string
	transport          http.RoundTripper
}

// waysInto are all of them: in plain, and over TLS by each version.
func waysInto(e *live.Edge, host string) []wayIn {
	first := live.OverTLS(e.T, host)
	first.ForceAttemptHTTP2 = false
	third := &http3.Transport{TLSClientConfig: &tls.Config{RootCAs: live.Certificate().Roots, ServerName: host}}
	e.T.Cleanup(func() { third.Close() })
	plain := new(http.Transport)
	e.T.Cleanup(plain.CloseIdleConnections)
	e.UntilHTTP3(host)
	return []wayIn{
		{"plain HTTP/1.1", "http://" + e.Addr, "HTTP/1.1", plain},
		{"HTTP/1.1 over TLS", "https://" + e.TLSAddr, "HTTP/1.1", first},
		{"HTTP/2", "https://" + e.TLSAddr, "HTTP/2.0", live.OverTLS(e.T, host)},
		{"HTTP/3", "https://" + e.TLSAddr, "HTTP/3.0", third},
	}
}

func (w *wayIn) overTLS() bool { return strings.HasPrefix(w.url, "https:") }

func (w *wayIn) ask(t *testing.T, host, path string, header http.Header) (*http.Response, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Host = host
	if header != nil {
		request.Header = header
	}
	client := http.Client{Transport: w.transport, Timeout: live.Wait, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(body)
}

func secureEdge(t *testing.T, origin uint32, more ...*configv1.Entry) *live.Edge {
	entries := append([]*configv1.Entry{
		live.OriginPolicy(), edgetest.Entry("site", "site-a", edgetest.Site(origin, "a.test")),
		live.Certificate().HTTPS("site-a", func(m *configv1.SiteHttps) {
			m.Http3 = true
			m.ForceHttps = &configv1.HttpsRedirect{Status: 308, Port: 443}
		}),
	}, more...)
	return live.Start(t, nil, []*edgev1.JournalRecord{edgetest.Header("node-1"), edgetest.Config(1, entries)}, nil)
}

// What rules read of the way on which a request came, and what origins are told of it.
func TestRulesAndOriginsAreToldTheWay(t *testing.T) {
	no, at := false, func(path string) ruletest.Node { return ruletest.Eq("http.request.uri.path", path) }
	told := func(name, field string) *configv1.Rule {
		return ruletest.Rule(&configv1.HeaderAction{Name: name, Value: ruletest.Computed(ruletest.Field(field))})
	}
	ssl := func(path string, want bool) *configv1.Rule {
		return ruletest.When(ruletest.And(at(path), ruletest.Eq("ssl", want)), &configv1.BlockAction{Status: 451})
	}
	e := secureEdge(t, live.StartOrigin(t), edgetest.Entry("site-rules", "site-a", ruletest.Site(
		told("x-version", "http.request.version"), told("x-scheme", "http.request.scheme"), told("x-ja4", "tls.ja4"),
		// So that plain requests come to their origin.
		ruletest.When(ruletest.Not(at("/forced")), &configv1.ConfigAction{ForceHttps: &no}),
		ssl("/with", true), ssl("/without", false),
		ruletest.When(ruletest.And(at("/ja4"), ruletest.Eq("tls.ja4", "")), &configv1.BlockAction{Status: 451}),
		ruletest.When(at("/blocked"), &configv1.BlockAction{Status: 403}),
	)))
	for _, way := range waysInto(e, "a.test") {
		t.Run(way.name, func(t *testing.T) {
			scheme, ja4 := "http", "\r\n"
			if way.overTLS() {
				scheme, ja4 = "https", "t13d"
			}
			if way.version == "HTTP/3.0" {
				ja4 = "q13d"
			}
			// Clients name a scheme of their own in vain.
			_, body := way.ask(t, "a.test", "/", http.Header{"X-Forwarded-Proto": {"gopher"}})
			for _, want := range []string{
				"X-Version: " + way.version + "\r\n", "X-Scheme: " + scheme + "\r\n", "X-Forwarded-Proto: " + scheme + "\r\n", "X-Ja4: " + ja4,
			} {
				if !strings.Contains(body, want) {
					t.Errorf("no %q in\n%s", want, body)
				}
			}
			for _, c := range []struct {
				path      string
				plain     int
				encrypted int
			}{
				{"/with", 200, 451},
				{"/without", 451, 200},
				{"/ja4", 451, 200},
				{"/forced", 308, 200},
				{"/blocked", 403, 403},
			} {
				want := c.plain
				if way.overTLS() {
					want = c.encrypted
				}
				response, _ := way.ask(t, "a.test", c.path, nil)
				if response.StatusCode != want {
					t.Errorf("%s: %d, not %d", c.path, response.StatusCode, want)
				}
				if want == 308 && response.Header.Get("Location") != "https://a.test/forced" {
					t.Errorf("%v", response.Header)
				}
			}
		})
	}
}

// Each rule beside force HTTPS: which of both answers a plain request, and that over TLS nothing is redirected.
func TestForceHTTPSBesideRules(t *testing.T) {
	yes := true
	for _, c := range []struct {
		name      string
		rule      *configv1.Rule
		plain     string
		encrypted int
	}{
		{"nothing", ruletest.Rule(&configv1.LogAction{}), "308 https://a.test/x?y", 200},
		{"a block comes first", ruletest.Rule(&configv1.BlockAction{Status: 451}), "451 ", 451},
		{"a redirect comes first", ruletest.Rule(&configv1.RedirectAction{Target: ruletest.Text("/z"), Status: 302}), "302 /z", 302},
		{"what is allowed is redirected all the same", ruletest.Rule(&configv1.AllowAction{}), "308 https://a.test/x?y", 200},
		{"what was rewritten is redirected as it was asked", ruletest.Rule(&configv1.RewriteAction{Target: ruletest.Text("/w")}), "308 https://a.test/x?y", 200},
		{"a rule that says the same", ruletest.Rule(&configv1.ConfigAction{ForceHttps: &yes}), "308 https://a.test/x?y", 200},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := secureEdge(t, live.StartOrigin(t), edgetest.Entry("site-rules", "site-a", ruletest.Site(c.rule)))
			for _, way := range waysInto(e, "a.test") {
				response, _ := way.ask(t, "a.test", "/x?y", nil)
				got := fmt.Sprint(response.StatusCode, " ", response.Header.Get("Location"))
				if !way.overTLS() && got != c.plain || way.overTLS() && response.StatusCode != c.encrypted {
					t.Errorf("%s: %s", way.name, got)
				}
			}
		})
	}
}

// WebSocket goes through over HTTP/1.1 with TLS as without. Over HTTP/2 the edge does not offer it (RFC 8441): clients then
// take HTTP/1.1, and one that tries all the same is refused while its connection goes on.
func TestWebSocketOverTLS(t *testing.T) {
	echo := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") == "" {
			return
		}
		conn, both, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		_, _ = io.Copy(conn, both)
	}))
	defer echo.Close()
	e := secureEdge(t, uint32(echo.Listener.Addr().(*net.TCPAddr).Port))
	dial := func(protocol string) net.Conn {
		config := &tls.Config{RootCAs: live.Certificate().Roots, ServerName: "a.test", NextProtos: []string{protocol}}
		conn, err := tls.DialWithDialer(&net.Dialer{Timeout: live.Wait}, "tcp", e.TLSAddr, config)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		_ = conn.SetDeadline(time.Now().Add(live.Wait))
		return conn
	}
	first := dial("http/1.1")
	_, _ = io.WriteString(first, "GET / HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
	reader := bufio.NewReader(first)
	if response, err := http.ReadResponse(reader, nil); err != nil || response.StatusCode != http.StatusSwitchingProtocols {
		t.Fatal(response, err)
	}
	_, _ = io.WriteString(first, "over TLS")
	heard := make([]byte, len("over TLS"))
	if _, err := io.ReadFull(reader, heard); err != nil || string(heard) != "over TLS" {
		t.Fatalf("%q %v", heard, err)
	}

	conn := dial("h2")
	framer := http2.NewFramer(conn, bufio.NewReader(conn))
	framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	if err := framer.WriteSettings(); err != nil {
		t.Fatal(err)
	}
	say := func(stream uint32, end bool, fields ...string) {
		var block strings.Builder
		encoder := hpack.NewEncoder(&block)
		for i := 0; i < len(fields); i += 2 {
			if err := encoder.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]}); err != nil {
				t.Fatal(err)
			}
		}
		if err := framer.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: []byte(block.String()), EndHeaders: true, EndStream: end}); err != nil {
			t.Fatal(err)
		}
	}
	say(1, false, ":method", "CONNECT", ":protocol", "websocket", ":scheme", "https", ":path", "/", ":authority", "a.test",
		"sec-websocket-version", "13")
	say(3, true, ":method", "GET", ":scheme", "https", ":path", "/", ":authority", "a.test")
	refused, served := "", ""
	for refused == "" || served == "" {
		frame, err := framer.ReadFrame()
		if err != nil {
			t.Fatalf("%v after %q and %q", err, refused, served)
		}
		switch f := frame.(type) {
		case *http2.SettingsFrame:
			if v, offered := f.Value(http2.SettingEnableConnectProtocol); offered && v != 0 {
				t.Error("the edge offers what it does not do")
			}
		case *http2.RSTStreamFrame:
			if f.StreamID == 1 {
				refused = f.ErrCode.String()
			}
		case *http2.MetaHeadersFrame:
			if f.StreamID == 1 {
				refused = f.PseudoValue("status")
			} else {
				served = f.PseudoValue("status")
			}
		}
	}
	if refused != "PROTOCOL_ERROR" && refused != "405" || served != "200" {
		t.Errorf("refused with %s, and then served with %s", refused, served)
	}
}

// A client that asks too often is banned by the same request over each version, whether requests share connections or not.
func TestTheSameRequestIsOneTooManyOverEachVersion(t *testing.T) {
	const allowed, later = 60, 20
	for _, version := range []string{"HTTP/1.1 over TLS", "HTTP/2", "HTTP/3"} {
		t.Run(version, func(t *testing.T) {
			e := secureEdge(t, live.StartOrigin(t), live.HeaderMode(), edgetest.Entry("protection", "site-a", &configv1.SiteProtection{
				Cc: &configv1.CcPolicy{Thresholds: &configv1.CcThresholds{
					MaxLevel: 1, WindowSeconds: 60, IpQps: 1, IpBanSeconds: 600, OriginErrorPercent: 50, EscalateAfterSeconds: 10, CooldownSeconds: 60,
				}},
			}))
			ways := waysInto(e, "a.test")
			way := ways[slices.IndexFunc(ways, func(w wayIn) bool { return w.name == version })]
			client := http.Header{"X-Demo-Client-Ip": {"203.0.113.9"}}
			codes := map[string]int{}
			for range allowed {
				response, _ := way.ask(t, "a.test", "/", client.Clone())
				codes[fmt.Sprint(response.StatusCode, response.Header.Get("X-Svc-Error"))]++
			}
			if codes["200"] != allowed {
				t.Errorf("within the limit: %v", codes)
			}
			// The one too many hears it, and so does every later one at once.
			for range later {
				response, _ := way.ask(t, "a.test", "/", client.Clone())
				if code := response.Header.Get("X-Svc-Error"); response.StatusCode != http.StatusForbidden || code != "ip-banned" {
					t.Fatalf("beyond the limit: %d %s", response.StatusCode, code)
				}
			}
			if response, _ := way.ask(t, "a.test", "/", http.Header{"X-Demo-Client-Ip": {"203.0.113.10"}}); response.StatusCode != http.StatusOK {
				t.Errorf("another client: %d", response.StatusCode)
			}
		})
	}
}
