package edge

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"slices"
	"strings"
	"testing"
	"time"

	configv1 "edge.svc/caddy/gen/svc/config/v1"
	"edge.svc/caddy/internal/edgetest"
)

// hinting is an edge before an origin that sends informational responses before every final one.
func hinting(t *testing.T, interim string) *edge {
	t.Helper()
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, interim+"HTTP/1.1 200 OK\r\nX-Final: 1\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok")
	}))
	t.Cleanup(origin.Close)
	return newHandler(t,
		edgetest.Entry("origin-policy", "", &configv1.OriginPolicy{AllowedCidrs: []string{"127.0.0.0/8"}}),
		edgetest.Entry("site", "a", edgetest.Site(uint32(origin.Listener.Addr().(*net.TCPAddr).Port), "a.com")))
}

const hints = "HTTP/1.1 100 Continue\r\nX-Never: 1\r\n\r\n" +
	"HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\nConnection: X-Hop\r\nX-Hop: 1\r\nX-Svc-Error: no\r\nServer: x\r\n" +
	"Set-Cookie: __ew_pass=no\r\nKeep-Alive: timeout=5\r\nTransfer-Encoding: chunked\r\nAlt-Svc: h3\r\n\r\n" +
	"HTTP/1.1 102 Processing\r\n\r\n" +
	"HTTP/1.1 103 Early Hints\r\nLink: </b.css>\r\nLink: </c.css>\r\n\r\n"

var forwarded = []string{
	"103 map[Link:[</a.css>; rel=preload]]", "102 map[]", "103 map[Link:[</b.css> </c.css>]]",
}

func TestInformationalResponsesReachTheClientOverEachProtocol(t *testing.T) {
	for _, protocol := range []int{1, 2, 3} {
		for _, method := range []string{"GET", "HEAD", "POST"} {
			t.Run(fmt.Sprint(method, " over HTTP ", protocol), func(t *testing.T) {
				h := hinting(t, hints)
				e := serveProtocol(t, h, protocol, func(next http.Handler) http.Handler { return next })
				var got []string
				trace := &httptrace.ClientTrace{Got1xxResponse: func(code int, header textproto.MIMEHeader) error {
					got = append(got, fmt.Sprint(code, " ", header))
					return nil
				}}
				var body io.Reader
				if method == "POST" {
					// Without a length it streams.
					body = io.MultiReader(strings.NewReader("body"))
				}
				request, err := http.NewRequestWithContext(httptrace.WithClientTrace(t.Context(), trace), method, e.url, body)
				if err != nil {
					t.Fatal(err)
				}
				request.Host = "a.com"
				response, err := e.client(t, "a.com").Do(request)
				if err != nil {
					t.Fatal(err)
				}
				defer response.Body.Close()
				content, err := io.ReadAll(response.Body)
				want := "ok"
				if method == "HEAD" {
					want = ""
				}
				if err != nil || response.StatusCode != 200 || string(content) != want || response.Header.Get("Link") != "" || response.Header.Get("X-Final") != "1" {
					t.Errorf("%d %v %q %v", response.StatusCode, response.Header, content, err)
				}
				if !slices.Equal(got, forwarded) {
					t.Errorf("%q", got)
				}
			})
		}
	}
}

// Informational responses are for clients that know how to skip them, and never mix with the edge's own 100.
func TestWhoGetsInformationalResponsesOverHTTP1(t *testing.T) {
	const webSocket = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
	for _, c := range []struct{ name, request, statuses string }{
		{"HTTP/1.1", "GET / HTTP/1.1\r\nHost: a.com\r\n\r\n", "103 102 103 200"},
		{"HTTP/1.0", "GET / HTTP/1.0\r\nHost: a.com\r\n\r\n", "200"},
		{"HTTP/1.0, kept", "GET / HTTP/1.0\r\nHost: a.com\r\nConnection: keep-alive\r\n\r\n", "200"},
		{"a WebSocket", "GET / HTTP/1.1\r\nHost: a.com\r\n" + webSocket + "\r\n", "200"},
		{"a small body that waits for 100", "POST / HTTP/1.1\r\nHost: a.com\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nab", "100 103 102 103 200"},
		{"chunks that wait for 100", "POST / HTTP/1.1\r\nHost: a.com\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "100 103 102 103 200"},
		{"a stream that waits for 100", "POST / HTTP/1.1\r\nHost: a.com\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "100 200"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := hinting(t, hints)
			if strings.HasPrefix(c.name, "a stream") {
				h.change(t, streamsBodies())
			}
			e := serveProtocol(t, h, 1, func(next http.Handler) http.Handler { return next })
			conn, err := net.Dial("tcp", strings.TrimPrefix(e.url, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			_ = conn.SetDeadline(time.Now().Add(time.Minute))
			if _, err := io.WriteString(conn, c.request); err != nil {
				t.Fatal(err)
			}
			var got []string
			for r := bufio.NewReader(conn); ; {
				response, err := http.ReadResponse(r, nil)
				if err != nil {
					t.Fatal(err, got)
				}
				if got = append(got, fmt.Sprint(response.StatusCode)); response.StatusCode >= 200 {
					break
				}
			}
			if told := strings.Join(got, " "); told != c.statuses {
				t.Errorf("got %s, not %s", told, c.statuses)
			}
		})
	}
}
