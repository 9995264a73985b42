package edge

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"edge.svc/caddy/exchange"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
	"edge.svc/caddy/internal/edgetest"
)

// The site's charset is named where the site itself responds, before rules and compression; pages of the edge have theirs.
func TestCharsetOfASite(t *testing.T) {
	text := strings.Repeat("text ", 200)
	c := startCompressing(t, 1, func(w http.ResponseWriter, r *http.Request) {
		w.Header()["Content-Type"] = r.Header["X-Type"]
		if r.URL.Path == "/unchanged" {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		_, _ = io.WriteString(w, text)
	}, func(x *exchange.Exchange) {
		if x.In.Target.Path == "/denied" {
			x.Defer(func(x *exchange.Exchange) *exchange.Answer {
				a := x.Respond(403)
				a.Header["Content-Type"] = []string{"text/html"}
				return a
			})
		}
	})
	set := func(charset string, force bool) {
		c.change(t, edgetest.Entry("site-content", "a", &configv1.SiteContent{Charset: charset, ForceCharset: force}))
	}
	want := func(path, sent, received string) {
		t.Helper()
		var fields []string
		if sent != "" {
			fields = []string{"X-Type: " + sent}
		}
		if response, _ := c.get("GET", path, fields...); response.Header.Get("Content-Type") != received {
			t.Errorf("%s %s: %q", path, sent, response.Header.Get("Content-Type"))
		}
	}
	want("/", "text/html", "text/html")
	set("utf-8", false)
	want("/", "text/html", "text/html; charset=utf-8")
	want("/", "text/html; charset=gbk", "text/html; charset=gbk")
	want("/", "image/png", "image/png")
	want("/", "", "")
	want("/unchanged", "", "")
	want("/denied", "", "text/html")
	set("UTF-8", true)
	want("/", "text/html; charset=gbk", "text/html; charset=UTF-8")
	response, body := c.get("GET", "/", "X-Type: text/html", "Accept-Encoding: gzip")
	if response.Header.Get("Content-Encoding") != "gzip" || response.Header.Get("Content-Type") != "text/html; charset=UTF-8" || body != text {
		t.Errorf("compressed: %v", response.Header)
	}
	set("", true)
	want("/", "text/html", "text/html")
}

// The limit of a body is exact to the byte, announced or chunked.
func TestBodyLimitIsExact(t *testing.T) {
	const limit = 70_000
	overEachGathering(t, func(t *testing.T, g *gathering) {
		for _, stream := range []bool{false, true} {
			g.h.change(t, edgetest.Entry("site-requests", "a", &configv1.SiteRequests{StreamBodies: stream}))
			for _, c := range []struct {
				limit   uint64
				length  int
				chunked bool
				status  int
			}{
				{limit, limit, false, 200}, {limit, limit + 1, false, 413}, {limit, limit, true, 200}, {limit, limit + 1, true, 413},
				{limit, limit * 3, true, 413}, {1, 1, true, 200}, {1, 2, true, 413}, {0, limit * 3, true, 200}, {0, limit * 3, false, 200},
			} {
				g.site.RequestBodyLimit = c.limit
				g.h.change(t, edgetest.Entry("site", "a", g.site))
				var body io.Reader = bytes.NewReader(make([]byte, c.length))
				if c.chunked {
					body = struct{ io.Reader }{body}
				}
				r, err := http.NewRequest("POST", g.url, body)
				if err != nil {
					t.Fatal(err)
				}
				r.Host = "a.com"
				response, err := g.client(t, "a.com").Do(r)
				if err != nil {
					t.Fatalf("%+v, streamed %t: %v", c, stream, err)
				}
				got, _ := io.ReadAll(response.Body)
				response.Body.Close()
				if response.StatusCode != c.status || c.status == 200 && !strings.Contains(string(got), fmt.Sprintf(" %d ", c.length)) {
					t.Errorf("%+v, streamed %t: %d %.60q", c, stream, response.StatusCode, got)
				}
			}
		}
	})
}
