package origin

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"edge.svc/caddy/exchange"
	nodev1 "edge.svc/caddy/gen/svc/node/v1"
)

const (
	// maxReportedTraffic is how many origins are told.
	maxReportedTraffic = 200
	// maxTraffic is how many origins are counted at a time; further ones are not, until others are quiet.
	maxTraffic = 5000
	// The last minute is counted in parts, each of which ends with the first report after it.
	trafficPart  = 10 * time.Second
	trafficParts = 6
)

// classes of failures in a figure, in the order in which they are told.
var classes = [...]failure{failConnect, failTimeout, failStatus, failDNS, failForbidden, failTLS, failFull}

func classIndex(class failure) int { return max(slices.Index(classes[:], class), 0) }

// figures are how requests to an origin fared since the last report, and in the minute before it. A response costs one
// addition. The pools of a site, old and new, share the figures of an origin.
type figures struct {
	// No report has them any more: the origin was quiet. Who has them looks again.
	gone    atomic.Bool
	counted [tallied]atomic.Uint32
	// What follows belongs to the one who reports.
	minute *[trafficParts]tally
}

// tally counts responses by their time, then requests without a response by the class of their failure, then failures of
// requests that have a response.
type tally [tallied]uint32

const (
	talliedFailures = exchange.LatencyBuckets
	talliedBroken   = talliedFailures + len(classes)
	tallied         = talliedBroken + len(classes)
)

// respond counts a response. No failure is counted where it is below 500.
func (f *figures) respond(took time.Duration, status int) {
	if f == nil {
		return
	}
	f.counted[exchange.LatencyBucket(took)].Add(1)
	if status >= 500 {
		f.breakOff(failStatus)
	}
}

// fail counts a request that got no response.
func (f *figures) fail(class failure) {
	if f != nil {
		f.counted[talliedFailures+classIndex(class)].Add(1)
	}
}

// breakOff counts a failure of a request whose response is counted.
func (f *figures) breakOff(class failure) {
	if f != nil {
		f.counted[talliedBroken+classIndex(class)].Add(1)
	}
}

// traffic has the figures of the origins that were asked in the last minute.
type traffic struct {
	mu      sync.Mutex
	origins map[originKey]*figures
	count   atomic.Int64
	// The number of the newest part.
	part int64
}

// figuresOf is where requests to an origin of the group count; nil where they do not. What rules have dialled in its place
// is not the origin.
func (g *group) figuresOf(i int32, dialled *origin) *figures {
	if dialled.health.instead != (dialKey{}) {
		return nil
	}
	at := &g.figures[i]
	if f := at.Load(); f != nil && !f.gone.Load() {
		return f
	}
	f := g.pool.state.traffic.of(dialled.health)
	if f != nil {
		at.Store(f)
	}
	return f
}

// of is the figures of an origin; nil where there are too many.
func (t *traffic) of(key originKey) *figures {
	if t.count.Load() >= maxTraffic {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	f := t.origins[key]
	if f == nil {
		f = &figures{minute: new([trafficParts]tally)}
		t.origins[key] = f
		t.count.Store(int64(len(t.origins)))
	}
	return f
}

// report lists how requests fared in the last minute: where most failed first, then where most were.
func (t *traffic) report(now time.Time) (list []*nodev1.OriginTraffic) {
	t.mu.Lock()
	defer t.mu.Unlock()
	number := now.UnixNano() / int64(trafficPart)
	begun := min(max(number-t.part, 0), trafficParts)
	t.part = max(number, t.part)
	failed := map[*nodev1.OriginTraffic]uint64{}
	for key, f := range t.origins {
		for i := range begun {
			f.minute[(t.part-i)%trafficParts] = tally{}
		}
		sums := f.sums(int(t.part % trafficParts))
		told := &nodev1.OriginTraffic{SiteId: key.site, OriginId: key.origin}
		failed[told] = sums.fill(told)
		if told.Requests == 0 {
			f.gone.Store(true)
			f.minute = nil
			delete(t.origins, key)
			continue
		}
		list = append(list, told)
	}
	t.count.Store(int64(len(t.origins)))
	slices.SortFunc(list, func(a, b *nodev1.OriginTraffic) int {
		return cmp.Or(
			cmp.Compare(failed[b], failed[a]), cmp.Compare(b.Requests, a.Requests),
			cmp.Compare(a.SiteId, b.SiteId), cmp.Compare(a.OriginId, b.OriginId),
		)
	})
	return list[:min(len(list), maxReportedTraffic)]
}

// sums takes over what was counted since the last report, and returns the counts of the minute.
func (f *figures) sums(part int) (sums tally) {
	for i := range f.counted {
		if f.counted[i].Load() > 0 {
			f.minute[part][i] += f.counted[i].Swap(0)
		}
		for p := range f.minute {
			sums[i] += f.minute[p][i]
		}
	}
	return sums
}

// fill tells the counts, and returns how many requests failed.
func (s *tally) fill(told *nodev1.OriginTraffic) (failed uint64) {
	for i, n := range s[:talliedFailures] {
		told.Requests += n
		if n > 0 {
			told.Latency = append(told.Latency, make([]uint32, i+1-len(told.Latency))...)
			told.Latency[i] = n
		}
	}
	for i, class := range classes {
		without := s[talliedFailures+i]
		told.Requests += without
		if n := without + s[talliedBroken+i]; n > 0 {
			told.Failures = append(told.Failures, &nodev1.NamedCount{Name: string(class), Count: uint64(n)})
			failed += uint64(n)
		}
	}
	return failed
}
