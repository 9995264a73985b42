package count

import (
	"fmt"
	"net/http"
	"testing"

	"edge.svc/caddy/exchange"
)

// What each second costs while so many sites are asked, each once.
func BenchmarkSettle(b *testing.B) {
	const sites = 10_000
	stats := statsIn(b, b.TempDir(), &fakeClock{start})
	all := make([]*counter, sites)
	for i := range all {
		all[i] = stats.counter(fmt.Sprintf("01900000-0000-7000-8000-%012x", i))
	}
	in := &exchange.Inbound{Major: 1, Minor: 1, Header: http.Header{}}
	for b.Loop() {
		b.StopTimer()
		for _, c := range all {
			c.tallyVisitor(in)
			c.tally(firstOriginLatency + 3)
			c.latency[3].Add(1)
			c.request(1024, 200)
		}
		b.StartTimer()
		stats.Settle()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/sites, "ns/site")
}
