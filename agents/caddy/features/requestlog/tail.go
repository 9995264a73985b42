package requestlog

import (
	"sync"
	"sync/atomic"
	"time"

	"edge.svc/caddy/exchange"
	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
	nodev1 "edge.svc/caddy/gen/svc/node/v1"
)

const (
	// The agent calls several times a second. When it stops, so does the watch.
	tailLease   = 3 * time.Second
	maxWatches  = 64
	maxTailRate = 200
	// Rows of a site that wait for the agent.
	maxTailBytes = 256 << 10
	maxTailCall  = 1 << 20
)

// tails are the sites that are watched now; immutable but for their rows.
type tails struct {
	sites map[string]*tail
	until atomic.Int64
}

// tail has the rows of a watched site until the agent takes them, and counts those that found no room.
type tail struct {
	mu      sync.Mutex
	filters []tailFilter
	perSec  int
	second  int64
	taken   int
	rows    [][]byte
	bytes   int
	dropped uint64
}

// Tail replaces what is watched, and returns what watched requests left since the call before.
func (l *Log) Tail(r *edgev1.TailLogsRequest) *edgev1.TailLogsResponse {
	response := &edgev1.TailLogsResponse{}
	if offset := r.GetClockOffsetMs(); offset != 0 {
		l.offsetMs.Store(offset)
	}
	watches := r.GetWatches()
	if len(watches) > maxWatches {
		watches = watches[:maxWatches]
	}
	before := l.tails.Load()
	if len(watches) == 0 {
		l.tails.Store(nil)
		return response
	}
	next := &tails{sites: make(map[string]*tail, len(watches))}
	next.until.Store(l.now().Add(tailLease).UnixNano())
	bytes := 0
	for _, watch := range watches {
		site := watch.GetSiteId()
		t := &tail{}
		if before != nil && before.sites[site] != nil {
			t = before.sites[site]
		}
		next.sites[site] = t
		rows, dropped := t.take(watch)
		for _, row := range rows {
			if bytes += len(row); bytes > maxTailCall {
				dropped++
				continue
			}
			response.Rows = append(response.Rows, row)
		}
		if dropped > 0 {
			response.Dropped = append(response.Dropped, &nodev1.LogLoss{SiteId: site, Rows: dropped})
		}
	}
	l.tails.Store(next)
	return response
}

// take takes the rows out, and goes on with what the watch says.
func (t *tail) take(watch *nodev1.LogTailWatch) (rows [][]byte, dropped uint64) {
	filters := filtersOf(watch)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.filters = filters
	t.perSec = int(min(max(watch.GetRowsPerSecond(), 1), maxTailRate))
	rows, dropped = t.rows, t.dropped
	t.rows, t.bytes, t.dropped = nil, 0, 0
	return rows, dropped
}

// tailOf returns the watch of a site; nil for nearly every request.
func (l *Log) tailOf(site string) *tail {
	watched := l.tails.Load()
	if watched == nil {
		return nil
	}
	if l.now().UnixNano() > watched.until.Load() {
		l.tails.CompareAndSwap(watched, nil)
		return nil
	}
	return watched.sites[site]
}

// show keeps the row of a request for those who watch.
func (l *Log) show(t *tail, x *exchange.Exchange, s *settings) {
	why := refusalOf(x)
	now := l.now()
	if !t.admit(x, l, why, now) {
		return
	}
	row := l.appendRow(nil, x, s, exchange.SampleParts, why, now)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.bytes+len(row) > maxTailBytes {
		t.dropped++
		return
	}
	t.rows, t.bytes = append(t.rows, row), t.bytes+len(row)
}

// admit reports whether somebody looks for the request and the second has room for it.
func (t *tail) admit(x *exchange.Exchange, l *Log, why refusal, now time.Time) bool {
	t.mu.Lock()
	filters := t.filters
	t.mu.Unlock()
	if !matches(filters, x, l, why, now) {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if second := now.Unix(); second != t.second {
		t.second, t.taken = second, 0
	}
	if t.taken >= t.perSec {
		t.dropped++
		return false
	}
	t.taken++
	return true
}
