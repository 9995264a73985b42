package edge_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	configv1 "edge.svc/caddy/gen/svc/config/v1"
	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
	"edge.svc/caddy/internal/edgetest"
	"edge.svc/caddy/internal/ruletest"
	"edge.svc/caddy/program/live"
)

// grpcOrigin echoes each message as it comes, and its status in trailers that nobody announced. /error is an error without a
// message. Requests of other kinds learn their protocol.
func grpcOrigin(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/events" {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "first ")
		_ = http.NewResponseController(w).Flush()
		time.Sleep(2 * writeIdle)
		fmt.Fprint(w, "second")
		return
	}
	if !strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc") {
		fmt.Fprint(w, r.Proto)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "application/grpc")
	if r.URL.Path == "/error" {
		h.Set("Grpc-Status", "5")
		h.Set("Grpc-Message", "no such thing")
		return
	}
	h.Set("X-Te", r.Header.Get("Te"))
	h.Set("X-Timeout", r.Header.Get("Grpc-Timeout"))
	control := http.NewResponseController(w)
	_ = control.EnableFullDuplex()
	_ = control.Flush()
	if r.URL.Path == "/silent" {
		<-r.Context().Done()
		return
	}
	buffer := make([]byte, 64<<10)
	for {
		n, err := r.Body.Read(buffer)
		_, _ = w.Write(buffer[:n])
		_ = control.Flush()
		if err != nil {
			break
		}
	}
	h.Set(http.TrailerPrefix+"Grpc-Status", "0")
	h.Set(http.TrailerPrefix+"X-Last", "word")
}

func h2cPort(t *testing.T) uint32 {
	s := httptest.NewUnstartedServer(http.HandlerFunc(grpcOrigin))
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Start()
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return uint32(s.Listener.Addr().(*net.TCPAddr).Port)
}

// unencrypted is a client that speaks HTTP/2 without TLS at once.
func unencrypted(t *testing.T) *http.Transport {
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetUnencryptedHTTP2(true)
	t.Cleanup(transport.CloseIdleConnections)
	return transport
}

func grpcSite(port uint32, domain string) *configv1.Site {
	site := edgetest.Site(port, domain)
	site.Pool.Http2, site.Pool.Grpc = true, true
	return site
}

// grpcWay is how a client of gRPC reaches the edge.
type grpcWay struct {
	t         *testing.T
	url       string
	transport http.RoundTripper
}

func (w *grpcWay) start(ctx context.Context, host, path, contentType string, body io.Reader) *http.Response {
	w.t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url+path, body)
	if err != nil {
		w.t.Fatal(err)
	}
	request.Host = host
	request.Header = http.Header{"Content-Type": {contentType}, "Te": {"trailers"}, "Accept-Encoding": {"gzip"}}
	if timeout, ok := ctx.Value(timeoutKey{}).(string); ok {
		request.Header["Grpc-Timeout"] = []string{timeout}
	}
	response, err := w.transport.RoundTrip(request)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { response.Body.Close() })
	return response
}

type timeoutKey struct{}

// writeIdle is how long clients of other requests may not read.
const writeIdle = 500 * time.Millisecond

func TestGRPC(t *testing.T) {
	const large = 3 << 20
	ctx, cancel := context.WithTimeout(t.Context(), live.Wait)
	defer cancel()
	limited := grpcSite(h2cPort(t), "a.test")
	limited.RequestBodyLimit = 1 << 20
	dead := grpcSite(9, "b.test")
	dead.Pool.Tries = 1
	plain := edgetest.Site(live.StartOrigin(t), "c.test")
	entries := []*configv1.Entry{
		live.OriginPolicy(), edgetest.Entry("site", "site-a", limited), edgetest.Entry("site", "site-b", dead), edgetest.Entry("site", "site-c", plain),
		live.Certificate().HTTPS("site-a"), live.Certificate().HTTPS("site-b"),
		edgetest.Entry("site-waf", "site-a", &configv1.SiteWaf{Mode: configv1.WafMode_WAF_MODE_BLOCK, ParanoiaLevel: 1, AnomalyThreshold: 5, RequestBodyLimit: 1 << 20}),
		edgetest.Entry("site-rules", "site-a", ruletest.Site(
			ruletest.When(ruletest.Eq("http.request.uri.path", "/blocked"), &configv1.BlockAction{Status: 403}),
		)),
	}
	settings := map[string]any{"write_idle_timeout": writeIdle.String()}
	e := live.StartWith(t, settings, nil, []*edgev1.JournalRecord{edgetest.Header("node-1"), edgetest.Config(1, entries)}, nil)
	for name, way := range map[string]*grpcWay{
		"TLS": {url: "https://" + e.TLSAddr, transport: &http.Transport{
			ForceAttemptHTTP2: true, DisableCompression: true, TLSClientConfig: &tls.Config{RootCAs: live.Certificate().Roots, ServerName: "a.test"},
		}},
		"h2c": {url: "http://" + e.Addr, transport: unencrypted(t)},
	} {
		t.Run(name, func(t *testing.T) {
			way.t = t
			converse(t, way, ctx)
			if response := way.start(ctx, "a.test", "/error", "application/grpc", strings.NewReader("x")); response.Header.Get("Grpc-Status") != "5" ||
				response.Header.Get("Grpc-Message") != "no such thing" || response.StatusCode != 200 {
				t.Errorf("%d %v", response.StatusCode, response.Header)
			}
			// Neither the limit of bodies nor the WAF concerns a stream.
			attack := bytes.Repeat([]byte("?id=1' OR '1'='1 UNION SELECT password FROM users -- "), large/50)
			response := way.start(ctx, "a.test", "/x", "application/grpc", bytes.NewReader(attack))
			if all, err := io.ReadAll(response.Body); err != nil || !bytes.Equal(all, attack) || response.Trailer.Get("Grpc-Status") != "0" {
				t.Errorf("%d of %d bytes came: %v %v", len(all), len(attack), err, response.Trailer)
			}
			deadline := context.WithValue(ctx, timeoutKey{}, "300m")
			silent := way.start(deadline, "a.test", "/silent", "application/grpc", strings.NewReader("x"))
			if _, err := io.ReadAll(silent.Body); err == nil {
				t.Error("the origin is waited for beyond the deadline")
			}
			errors := map[string]string{"a.test/blocked": "7 edge: policy-denied"}
			if name == "h2c" {
				errors["b.test/x"] = "14 edge: origin-unreachable"
			}
			for at, want := range errors {
				host, path, _ := strings.Cut(at, "/")
				response := way.start(ctx, host, "/"+path, "application/grpc", strings.NewReader("x"))
				h := response.Header
				body, _ := io.ReadAll(response.Body)
				if got := h.Get("Grpc-Status") + " " + h.Get("Grpc-Message"); got != want || response.StatusCode != 200 || h.Get("Content-Type") != "application/grpc" ||
					!strings.HasSuffix(want, h.Get("X-Svc-Error")) || h.Get("X-Svc-Error") == "" || len(body) > 0 {
					t.Errorf("%s: %d %v %q", at, response.StatusCode, h, body)
				}
			}
			// Silence of the origin does not end other responses, either.
			events := way.start(ctx, "a.test", "/events", "application/x-www-form-urlencoded", strings.NewReader("x=y"))
			if body, err := io.ReadAll(events.Body); err != nil || string(body) != "first second" {
				t.Errorf("%q %v", body, err)
			}
			// Other requests of the site are as any: the WAF does not know this type.
			web := way.start(ctx, "a.test", "/x", "application/grpc-web", strings.NewReader("x"))
			if web.StatusCode != 403 || web.Header.Get("X-Svc-Error") != "waf-blocked" {
				t.Errorf("%d %v", web.StatusCode, web.Header)
			}
		})
	}
	// HTTP/2 without TLS is there for sites with gRPC alone, and HTTP/1.1 beside it.
	h2c := &grpcWay{t, "http://" + e.Addr, unencrypted(t)}
	if response := h2c.start(ctx, "c.test", "/x", "application/grpc", strings.NewReader("x")); response.StatusCode != 421 {
		t.Errorf("another site: %d", response.StatusCode)
	}
	if answer := e.Raw("GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n"); !strings.HasPrefix(answer, "HTTP/1.1 200") || !strings.HasSuffix(answer, "HTTP/2.0") {
		t.Errorf("HTTP/1.1: %s", answer)
	}
	if answer := e.Raw("PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n"); answer != "" {
		t.Errorf("another preface: %q", answer)
	}
}

// converse sends a message after each that came: neither side waits for the end of the other, and both may be silent.
func converse(t *testing.T, way *grpcWay, ctx context.Context) {
	t.Helper()
	read, write := io.Pipe()
	response := way.start(ctx, "a.test", "/x", "application/grpc+proto", read)
	if h := response.Header; response.StatusCode != 200 || h.Get("Content-Type") != "application/grpc" || h.Get("X-Te") != "trailers" || h.Get("Content-Encoding") != "" {
		t.Fatalf("%d %v", response.StatusCode, h)
	}
	for _, message := range []string{"first", "second", "after silence"} {
		if message == "after silence" {
			time.Sleep(2 * writeIdle)
		}
		_, _ = io.WriteString(write, message)
		came := make([]byte, len(message))
		if _, err := io.ReadFull(response.Body, came); err != nil || string(came) != message {
			t.Fatalf("%q came: %v", came, err)
		}
	}
	write.Close()
	if rest, err := io.ReadAll(response.Body); err != nil || len(rest) > 0 {
		t.Errorf("%q %v", rest, err)
	}
	if response.Trailer.Get("Grpc-Status") != "0" || response.Trailer.Get("X-Last") != "word" {
		t.Errorf("%v", response.Trailer)
	}
}
