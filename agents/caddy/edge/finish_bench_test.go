package edge

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync/atomic"
	"testing"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
	"edge.svc/caddy/features/count"
	"edge.svc/caddy/internal/edgetest"
)

// What counting costs a request: its site, its answer and its end, with what visitors send. The ends of the lists are
// heavy and light: few paths and clients come often, and many now and then.
func BenchmarkFinish(b *testing.B) {
	h := newHandler(b, edgetest.Entry("site", "a", edgetest.Site(0, "a.com")))
	stage, answered, finish := count.Stage(h.core), count.Answered(h.core), count.Finish(h.core)
	var begun atomic.Int64
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		x := &exchange.Exchange{}
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("User-Agent", "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36")
		r.Header.Set("Referer", "https://news.example.com/articles/2026/11/a-long-title?utm_source=mail")
		x.Begin(w, r)
		x.Tables = h.core.Tables()
		x.Plan = core.PlanOfHost(x.Tables, "a.com")
		answer := &exchange.Answer{Status: 200}
		var meter exchange.Meter
		meter.Init(count.Of(h.core).NodeAccount())
		x.Meter = &meter
		var paths [1024]string
		var clients [1024]netip.Addr
		for i := range paths {
			paths[i] = fmt.Sprintf("/shop/products/%d/details.html?session=%d", i, i)
			clients[i] = netip.AddrFrom4([4]byte{198, 51, byte(i >> 8), byte(i)})
		}
		for i := int(begun.Add(1)); pb.Next(); i++ {
			// Seven of eight are among 32.
			at := i % 32
			if i%8 == 7 {
				at = i / 8 % 1024
			}
			x.In.Target.Raw, x.In.Client = paths[at], clients[at]
			meter.Begin(0, false)
			stage(x)
			answered(x, answer)
			finish(x)
			meter.End()
		}
	})
}
