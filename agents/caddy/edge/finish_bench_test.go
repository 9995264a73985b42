package edge

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
	"edge.svc/caddy/features/count"
	"edge.svc/caddy/internal/edgetest"
)

// What counting costs a request: its site, its answer and its end.
func BenchmarkFinish(b *testing.B) {
	h := newHandler(b, edgetest.Entry("site", "a", edgetest.Site(0, "a.com")))
	stage, answered, finish := count.Stage(h.core), count.Answered(h.core), count.Finish(h.core)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		x := &exchange.Exchange{}
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil)
		x.Begin(w, r)
		x.Tables = h.core.Tables()
		x.Plan = core.PlanOfHost(x.Tables, "a.com")
		answer := &exchange.Answer{Status: 200}
		var meter exchange.Meter
		meter.Init(count.Of(h.core).NodeAccount())
		x.Meter = &meter
		for pb.Next() {
			meter.Begin(0, false)
			stage(x)
			answered(x, answer)
			finish(x)
			meter.End()
		}
	})
}
