package edge

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
	"edge.svc/caddy/features/cache"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
	"edge.svc/caddy/internal/edgetest"
)

// aside runs the two stages of the cache for a site, and returns what X-Cache says.
func aside(tb testing.TB, h *edge) func() string {
	tb.Helper()
	stage, response := cache.Stage(h.core), cache.Response(h.core)
	x := &exchange.Exchange{}
	w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/x", nil)
	r.Host = "a.com"
	return func() (word string) {
		x.Begin(w, r)
		x.Tables, x.In.Host = h.core.Tables(), "a.com"
		x.Plan = core.PlanOfHost(x.Tables, "a.com")
		// As the stage that prepares compression leaves it.
		x.Out.Identity = true
		a := stage(x)
		if a == nil {
			a = x.RespondFrom(exchange.FromOrigin, 200)
		}
		response(x, a)
		if values := a.Header["X-Cache"]; values != nil {
			word = values[0]
		}
		x.Reset()
		return word
	}
}

func TestASiteWithoutACachePaysNothingForIt(t *testing.T) {
	h := newHandler(t, edgetest.Entry("site", "a", edgetest.Site(0, "a.com")))
	with := aside(t, h)
	x := &exchange.Exchange{}
	w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/x", nil)
	without := func() {
		x.Begin(w, r)
		x.RespondFrom(exchange.FromOrigin, 200)
		x.Reset()
	}
	if a, b := testing.AllocsPerRun(100, func() { with() }), testing.AllocsPerRun(100, without); a > b {
		t.Errorf("%v allocations with the stages, %v without", a, b)
	}
	if with() != "" {
		t.Error("a site without a cache has X-Cache")
	}
}

func BenchmarkCacheAside(b *testing.B) {
	run := aside(b, newHandler(b, edgetest.Entry("site", "a", edgetest.Site(0, "a.com"))))
	b.ReportAllocs()
	for b.Loop() {
		run()
	}
}

func BenchmarkCacheHit(b *testing.B) {
	e := newCachingEdge(b, func(*configv1.SiteCache) {})
	e.respond(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Control", "max-age=3600")
		w.Header()["Date"] = nil
		_, _ = io.WriteString(w, string(make([]byte, 1024)))
	})
	e.stored("/x")
	run := aside(b, e.edge)
	b.ReportAllocs()
	for b.Loop() {
		if word := run(); word != "HIT" {
			b.Fatal(word)
		}
	}
}
