//go:build svcdebug

package program_test

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"github.com/quic-go/quic-go/http3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	configv1 "edge.svc/caddy/gen/svc/config/v1"
	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
	"edge.svc/caddy/internal/edgetest"
	"edge.svc/caddy/internal/edgetest/hello"
	"edge.svc/caddy/internal/ruletest"
	"edge.svc/caddy/program/live"
)

// fingerprint is what the edge has of the client that came from a port.
func fingerprint(e *live.Edge, port uint16) string {
	e.T.Helper()
	plain := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", e.Socket)
	}}}
	call := connect.NewClient[wrapperspb.UInt32Value, wrapperspb.StringValue](plain, "http://edge/debug/fingerprint")
	told, err := call.CallUnary(e.T.Context(), connect.NewRequest(wrapperspb.UInt32(uint32(port))))
	if err != nil {
		e.T.Fatal(err)
	}
	return told.Msg.GetValue()
}

// told is the fingerprint in what an origin echoes of a request.
var told = regexp.MustCompile(`X-Fingerprint: (\S+)`)

// Whoever says hello has the fingerprint that the published algorithm makes of the very bytes: programs that people use,
// over TLS 1.2 and 1.3 and QUIC, with and without a name and protocols, resumed, and refused. Rules read the same.
func TestFingerprintsOfRealClients(t *testing.T) {
	e := live.Start(t, nil, []*edgev1.JournalRecord{
		edgetest.Header("node-1"),
		edgetest.Config(1, []*configv1.Entry{
			live.OriginPolicy(), edgetest.Entry("site", "site-a", edgetest.Site(live.StartOrigin(t), "a.test")),
			live.Certificate().HTTPS("site-a", func(m *configv1.SiteHttps) { m.Http3 = true }),
			edgetest.Entry("site-rules", "site-a", ruletest.Site(ruletest.Rule(&configv1.HeaderAction{
				Name: "x-fingerprint", Value: ruletest.Computed(ruletest.Field("tls.ja4")),
			}))),
		}),
	}, nil)
	relay := hello.NewRelay(t, e.TLSAddr)
	_, port, err := net.SplitHostPort(relay.Address)
	if err != nil {
		t.Fatal(err)
	}
	program := func(name string, args ...string) func(*testing.T) string {
		return func(t *testing.T) string {
			ctx, cancel := context.WithTimeout(t.Context(), 3*live.Wait)
			defer cancel()
			// Some of them fail, as they should; what counts is what they said.
			output, _ := exec.CommandContext(ctx, name, args...).CombinedOutput()
			return string(output)
		}
	}
	openssl := func(args ...string) func(*testing.T) string {
		return program("openssl", append([]string{"s_client", "-connect", relay.Address}, args...)...)
	}
	curl := func(args ...string) func(*testing.T) string {
		return program("curl", append([]string{"-ksS", "--resolve", "a.test:" + port + ":127.0.0.1", "https://a.test:" + port + "/"}, args...)...)
	}
	chromium := func(more ...string) func(*testing.T) string {
		return func(t *testing.T) string {
			args := append([]string{"--headless", "--no-sandbox", "--disable-gpu", "--ignore-certificate-errors", "--user-data-dir=" + t.TempDir(),
				"--host-resolver-rules=MAP a.test 127.0.0.1", "--dump-dom"}, more...)
			return program(browser(t), append(args, "https://a.test:"+port+"/")...)(t)
		}
	}
	get := func(t *testing.T, transport http.RoundTripper) string {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+relay.Address+"/", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Host = "a.test"
		client := http.Client{Transport: transport, Timeout: live.Wait}
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(body)
	}
	config := func() *tls.Config { return &tls.Config{RootCAs: live.Certificate().Roots, ServerName: "a.test"} }
	sessions := tls.NewLRUClientSessionCache(1)
	resumed := func(t *testing.T) string {
		transport := &http.Transport{TLSClientConfig: config(), DisableKeepAlives: true}
		transport.TLSClientConfig.ClientSessionCache = sessions
		return get(t, transport)
	}
	for _, c := range []struct {
		name string
		run  func(*testing.T) string
		// How the fingerprint begins, and whether a request reaches an origin.
		begins  string
		reaches bool
	}{
		{"openssl over TLS 1.3", openssl("-servername", "a.test"), "t13d", false},
		{"openssl over TLS 1.2", openssl("-servername", "a.test", "-tls1_2", "-alpn", "http/1.1"), "t12d", false},
		{"openssl without a name", openssl("-noservername", "-alpn", "h2,http/1.1"), "t13i", false},
		{"openssl with a protocol that is no text", openssl("-servername", "a.test", "-alpn", "\xab\xcd"), "t13d", false},
		{"openssl over a version that is refused", openssl("-servername", "a.test", "-tls1_1", "-cipher", "ALL:@SECLEVEL=0"), "t11d", false},
		{"openssl for a site that is not there", openssl("-servername", "nobody.test"), "t13d", false},
		{"curl over HTTP/2", curl(), "t13d", true},
		{"curl over HTTP/1.1 and TLS 1.2", curl("--http1.1", "--tls-max", "1.2"), "t12d", true},
		{"net/http over HTTP/1.1", func(t *testing.T) string {
			return get(t, &http.Transport{TLSClientConfig: config(), DisableKeepAlives: true})
		}, "t13d", true},
		{"net/http over HTTP/2", func(t *testing.T) string {
			transport := live.OverTLS(t, "a.test")
			return get(t, transport)
		}, "t13d", true},
		{"the first of a session", resumed, "t13d", true},
		{"resumed", resumed, "t13d", true},
		{"quic-go", func(t *testing.T) string {
			transport := &http3.Transport{TLSClientConfig: config()}
			t.Cleanup(func() { transport.Close() })
			return get(t, transport)
		}, "q13d", true},
		{"Chromium over HTTP/2", chromium(), "t13d", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.begins[0] == 'q' {
				e.UntilHTTP3("a.test")
			}
			said := c.run(t)
			clients := relay.Take()
			if len(clients) == 0 || !strings.HasPrefix(clients[0].JA4, c.begins) {
				t.Fatalf("%v: none of them begins with %s\n%s", clients, c.begins, said)
			}
			read := told.FindStringSubmatch(said)
			known := read == nil
			for _, client := range clients {
				if got := fingerprint(e, client.Port); got != client.JA4 {
					t.Errorf("%q, and the client said %s", got, client.JA4)
				}
				known = known || read[1] == client.JA4
			}
			if (read != nil) != c.reaches || !known {
				t.Errorf("rules read %q of %v\n%s", read, clients, said)
			}
		})
	}
}

// browser is a program that opens pages without a screen.
func browser(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium-headless-shell", "chromium"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Fatal("there is no Chromium")
	return ""
}
