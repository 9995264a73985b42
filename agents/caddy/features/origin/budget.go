package origin

import (
	"fmt"
	"io"
	"sync/atomic"
	"time"
)

// budget bounds the further tries of a site, so that a site whose origins fail does not get several times its requests on
// them. Over the last seconds of its window they are at most a share of the requests, and a few more.
//
// It is counted without a lock: at the turn of a second, requests beside each other may be missed.
type budget struct {
	slots [budgetSeconds]budgetSlot
}

type budgetSlot struct {
	second            atomic.Int64
	requests, retries atomic.Uint32
}

const (
	budgetSeconds = 10
	// A further try for every five requests.
	requestsPerRetry = 5
	// Beside that share, for sites with few requests and the moment in which an origin of many goes down.
	freeRetries = 10 * budgetSeconds
)

var processStart = time.Now()

// secondOf counts seconds by the monotonic clock.
func secondOf(t time.Time) int64 { return int64(t.Sub(processStart) / time.Second) }

func (b *budget) slot(second int64) *budgetSlot {
	s := &b.slots[uint64(second)%budgetSeconds]
	if was := s.second.Load(); was < second && s.second.CompareAndSwap(was, second) {
		s.requests.Store(0)
		s.retries.Store(0)
	}
	return s
}

// ask counts a request.
func (b *budget) ask(second int64) { b.slot(second).requests.Add(1) }

// retry reports whether there may be one further try, and counts it.
func (b *budget) retry(second int64) bool {
	now := b.slot(second)
	var requests, retries uint32
	for i := range b.slots {
		if s := &b.slots[i]; s.second.Load() > second-budgetSeconds {
			requests += s.requests.Load()
			retries += s.retries.Load()
		}
	}
	if retries >= requests/requestsPerRetry+freeRetries {
		return false
	}
	now.retries.Add(1)
	return true
}

// retries counts further tries of all sites.
type retries struct{ made, refused atomic.Uint64 }

func (r *retries) writeMetrics(w io.Writer) {
	fmt.Fprintf(w, "# HELP svc_edge_origin_retries_total Further tries of requests after an origin failed.\n"+
		"# TYPE svc_edge_origin_retries_total counter\nsvc_edge_origin_retries_total %d\n", r.made.Load())
	fmt.Fprintf(w, "# HELP svc_edge_origin_retries_refused_total Requests that were not tried further because the budget of their site was used up.\n"+
		"# TYPE svc_edge_origin_retries_refused_total counter\nsvc_edge_origin_retries_refused_total %d\n", r.refused.Load())
}

// mayGoOn reports whether a request that failed at an origin may go on to the one after it.
func (t *fetch) mayGoOn(i int, key string) bool {
	if !t.candidate(i+1, key) {
		return false
	}
	if b := t.Pool.budget; b != nil && !b.retry(secondOf(time.Now())) {
		t.Transports.retries.refused.Add(1)
		return false
	}
	t.Transports.retries.made.Add(1)
	return true
}
