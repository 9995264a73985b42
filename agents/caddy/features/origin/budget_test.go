package origin

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	configv1 "edge.svc/caddy/gen/svc/config/v1"
)

func TestFurtherTriesAreAShareOfRequests(t *testing.T) {
	var b budget
	take := func(second int64) (n int) {
		for b.retry(second) {
			n++
		}
		return n
	}
	ask := func(second int64, requests int) {
		for range requests {
			b.ask(second)
		}
	}
	if n := take(50); n != freeRetries {
		t.Errorf("%d without requests", n)
	}
	ask(50, 1000)
	if n := take(50); n != 200 {
		t.Errorf("%d of 1000 requests", n)
	}
	ask(51, 1000)
	if n := take(59); n != 200 {
		t.Errorf("%d of 1000 further requests", n)
	}
	// The first second leaves the window with its requests and its tries.
	if n := take(60); n != freeRetries {
		t.Errorf("%d after the first second", n)
	}
	if n := take(69); n != 0 {
		t.Errorf("%d while the tries of the last seconds count", n)
	}
	if n := take(500); n != freeRetries {
		t.Errorf("%d after a pause", n)
	}
}

// Where all origins fail, they get little more than the requests; beyond the budget the first failure is the response.
func TestOriginsThatFailAreNotFlooded(t *testing.T) {
	var asked atomic.Int64
	busyOrigin := func() string {
		return addressOf(httpOrigin(t, func(w http.ResponseWriter, _ *http.Request) {
			asked.Add(1)
			w.WriteHeader(http.StatusServiceUnavailable)
		}))
	}
	e := newEdge(t, settings(func(p *configv1.OriginPool) { p.Tries = 5 }), originAt("a", busyOrigin()), originAt("b", busyOrigin()), originAt("c", busyOrigin()))
	const requests = 1500
	begun := time.Now()
	for range requests {
		if status, body := e.get("/"); status != 503 || body != "" {
			t.Fatalf("got %d %q", status, body)
		}
	}
	windows := int64(time.Since(begun)/(budgetSeconds*time.Second)) + 1
	most := int64(requests + requests/requestsPerRetry + freeRetries*(windows+1))
	if n := asked.Load(); n > most || n <= requests {
		t.Errorf("origins got %d requests for %d; at most %d", n, requests, most)
	}
	var text strings.Builder
	e.transports.WriteMetrics(&text)
	made, refused := e.transports.retries.made.Load(), e.transports.retries.refused.Load()
	if made != uint64(asked.Load()-requests) || refused == 0 || !strings.Contains(text.String(), "svc_edge_origin_retries_refused_total ") {
		t.Errorf("%d made, %d refused; origins got %d", made, refused, asked.Load())
	}
}
