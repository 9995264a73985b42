package encode

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
	"edge.svc/caddy/internal/edgetest"
)

// Where all encoders of a coding are at work an answer gets the next one that its client takes, and none where there is
// no other.
func TestBeyondTheBoundComesTheNextCoding(t *testing.T) {
	node := core.New(core.Options{StateDir: t.TempDir()})
	coding := &configv1.CodingSettings{Enabled: true, Level: 3, MinLength: 1, Types: []string{"text/plain"}}
	if failed := edgetest.Change(t, node, []*configv1.Entry{
		edgetest.Entry("site", "a", edgetest.Site(0, "a.com")),
		edgetest.Entry(kind, "a", &configv1.SiteCompression{Gzip: coding, Brotli: coding, Zstd: coding}),
	}); len(failed) > 0 {
		t.Fatal(failed)
	}
	e, respond := component.Of(node), Response(node)
	for _, c := range []struct {
		accepts string
		full    []exchange.Coding
		want    string
	}{
		{"zstd, br, gzip", nil, "zstd"},
		{"zstd, br, gzip", []exchange.Coding{exchange.Zstd}, "br"},
		{"zstd, br, gzip", []exchange.Coding{exchange.Zstd, exchange.Brotli}, "gzip"},
		{"zstd, br, gzip", []exchange.Coding{exchange.Zstd, exchange.Brotli, exchange.Gzip}, ""},
		{"zstd, gzip", []exchange.Coding{exchange.Zstd}, "gzip"},
		{"br", []exchange.Coding{exchange.Brotli}, ""},
		{"gzip, br;q=0.1", []exchange.Coding{exchange.Gzip}, "br"},
	} {
		for _, coding := range c.full {
			e.lines[coding].active.Add(e.lines[coding].most)
		}
		x := new(exchange.Exchange)
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("Accept-Encoding", c.accepts)
		x.Begin(httptest.NewRecorder(), r)
		x.Tables = node.Tables()
		x.Plan = core.PlanOfHost(x.Tables, "a.com")
		a := x.Respond(http.StatusOK)
		a.Header["Content-Type"] = []string{"text/plain"}
		a.Body = &pieces{list: [][]byte{[]byte("an answer")}}
		respond(x, a)
		if got := a.Header.Get("Content-Encoding"); got != c.want || a.Header.Get("Vary") != "Accept-Encoding" {
			t.Errorf("%s with %v full: %q, %v", c.accepts, c.full, got, a.Header)
		}
		a.Body.Close()
		for _, coding := range c.full {
			e.lines[coding].active.Add(-e.lines[coding].most)
		}
		for coding := range e.lines {
			if n := e.lines[coding].active.Load(); n != 0 {
				t.Fatalf("%d of coding %d are still reserved", n, coding)
			}
		}
	}
}
