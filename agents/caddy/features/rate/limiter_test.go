package rate

import (
	"math/rand/v2"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
)

// clock is one that tests move.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

func (c *clock) pass(d time.Duration) { c.at = c.at.Add(d) }

func newClock() *clock { return &clock{time.Unix(1_800_000_000, 0)} }

func plan(siteID string) *exchange.Plan {
	p := &exchange.Plan{}
	p.Init(siteID, 1, false, nil, nil)
	return p
}

func address(n uint32) netip.Addr {
	return netip.AddrFrom4([4]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)})
}

func byAddress(id string, limit, seconds uint32) *exchange.RateRule {
	return exchange.NewRateRule(false, id, exchange.RateByAddress, "", limit, seconds)
}

func (l *Limiter) admits(p *exchange.Plan, due ...exchange.RateDue) bool {
	return l.Admit(p, due) == -1
}

// times asks so often and returns how often it was admitted.
func (l *Limiter) times(n int, p *exchange.Plan, due ...exchange.RateDue) int {
	admitted := 0
	for range n {
		if l.admits(p, due...) {
			admitted++
		}
	}
	return admitted
}

// Whatever the times of requests are: within no window are more admitted than the limit, and nobody who had fewer within
// a window and an eleventh is refused.
func TestWindowsMoveOnWithTheClock(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	site := plan("a")
	for turn := range 300 {
		c := newClock()
		l := newLimiter(1<<20, c.now)
		limit, seconds := 1+random.Uint32N(20), []uint32{1, 2, 7, 60, 3600}[turn%5]
		window := time.Duration(seconds) * time.Second
		rule := byAddress("r", limit, seconds)
		var admitted []time.Time
		within := func(d time.Duration) int {
			return len(admitted) - slices.IndexFunc(append(slices.Clone(admitted), c.at), func(at time.Time) bool { return c.at.Sub(at) < d || at.Equal(c.at) })
		}
		for range 400 {
			switch random.IntN(4) {
			case 0:
				c.pass(time.Duration(random.Int64N(int64(window))))
			case 1:
				c.pass(time.Duration(random.Int64N(int64(window) / 5)))
			case 2:
				c.pass(time.Duration(random.Int64N(int64(window)/int64(limit) + 1)))
			}
			if l.admits(site, rule.DueOfAddress(address(1))) {
				admitted = append(admitted, c.at)
				if n := within(window); n > int(limit) {
					t.Fatalf("%d admitted within %v, the limit is %d", n, window, limit)
				}
			} else if n := within(window + window/parts + 1); n < int(limit) {
				t.Fatalf("refused with %d within %v and an eleventh, the limit is %d", n, window, limit)
			}
		}
	}
}

func TestWhoIsRefusedIsNotCounted(t *testing.T) {
	c := newClock()
	l := newLimiter(1<<20, c.now)
	site, rule := plan("a"), byAddress("r", 5, 60)
	due := rule.DueOfAddress(address(1))
	if n := l.times(5, site, due); n != 5 {
		t.Fatalf("%d of 5", n)
	}
	// Somebody who never stops is let in as soon as the window is over.
	for range 59 {
		c.pass(time.Second)
		if l.admits(site, due) {
			t.Fatal("admitted within the window")
		}
	}
	c.pass(7 * time.Second)
	if n := l.times(9, site, due); n != 5 {
		t.Errorf("%d of 5 after the window", n)
	}
}

func TestCountersBelongToARuleASiteAndAKey(t *testing.T) {
	c := newClock()
	l := newLimiter(1<<20, c.now)
	a, b := plan("a"), plan("b")
	full := func(p *exchange.Plan, due exchange.RateDue) {
		t.Helper()
		if n := l.times(5, p, due); n != 3 {
			t.Errorf("%d of 3", n)
		}
	}
	rule := func(platform bool, id string, by exchange.RateBy, header string, seconds uint32) *exchange.RateRule {
		return exchange.NewRateRule(platform, id, by, header, 3, seconds)
	}
	one := address(1)
	full(a, rule(false, "r", exchange.RateByAddress, "", 60).DueOfAddress(one))
	full(b, rule(false, "r", exchange.RateByAddress, "", 60).DueOfAddress(one))
	full(a, rule(true, "r", exchange.RateByAddress, "", 60).DueOfAddress(one))
	full(b, rule(true, "r", exchange.RateByAddress, "", 60).DueOfAddress(one))
	full(a, rule(false, "other", exchange.RateByAddress, "", 60).DueOfAddress(one))
	full(a, rule(false, "r", exchange.RateByAddress, "", 61).DueOfAddress(one))
	full(a, rule(false, "r", exchange.RateByHost, "", 60).DueOfText("a.example"))
	full(a, rule(false, "r", exchange.RateByHost, "", 60).DueOfText("b.example"))
	full(a, rule(false, "r", exchange.RateByHeader, "x-a", 60).DueOfText("1"))
	full(a, rule(false, "r", exchange.RateByHeader, "x-b", 60).DueOfText("1"))
	full(a, rule(false, "r", exchange.RateByHeader, "x-b", 60).DueOfText(""))
	full(a, rule(false, "r", exchange.RateByJA4, "", 60).DueOfText(""))

	// The same again, as another version of the rules says it: nothing is forgotten.
	if l.admits(a, rule(false, "r", exchange.RateByAddress, "", 60).DueOfAddress(one)) {
		t.Error("a counter was forgotten")
	}
	if l.admits(plan("a"), rule(true, "r", exchange.RateByAddress, "", 60).DueOfAddress(one)) {
		t.Error("a counter of another version of the site was forgotten")
	}
}

func TestAnotherLimitGoesOnWithTheCounters(t *testing.T) {
	c := newClock()
	l := newLimiter(1<<20, c.now)
	site := plan("a")
	if n := l.times(9, site, byAddress("r", 5, 60).DueOfAddress(address(1))); n != 5 {
		t.Fatalf("%d of 5", n)
	}
	if n := l.times(9, site, byAddress("r", 7, 60).DueOfAddress(address(1))); n != 2 {
		t.Errorf("%d more of 7", n)
	}
	if n := l.times(9, site, byAddress("r", 2, 60).DueOfAddress(address(1))); n != 0 {
		t.Errorf("%d more of 2", n)
	}
}

func TestAddressesCountAsTheirNetwork(t *testing.T) {
	rule := byAddress("r", 1, 60)
	for _, each := range []struct {
		one, other string
		same       bool
	}{
		{"192.0.2.1", "192.0.2.1", true},
		{"192.0.2.1", "192.0.2.2", false},
		{"192.0.2.1", "::ffff:192.0.2.1", true},
		{"2001:db8:0:1::1", "2001:db8:0:1:ffff::", true},
		{"2001:db8:0:1::1", "2001:db8:0:2::1", false},
		{"::c000:201", "192.0.2.1", false},
	} {
		same := rule.DueOfAddress(netip.MustParseAddr(each.one)) == rule.DueOfAddress(netip.MustParseAddr(each.other))
		if same != each.same {
			t.Errorf("%s and %s: %v", each.one, each.other, same)
		}
	}
}

func TestARequestCountsUnderAllItsLimitsOrNone(t *testing.T) {
	c := newClock()
	l := newLimiter(1<<20, c.now)
	site := plan("a")
	wide, narrow := byAddress("wide", 10, 60).DueOfAddress(address(1)), byAddress("narrow", 4, 60).DueOfAddress(address(1))
	if n := l.times(100, site, wide, narrow); n != 4 {
		t.Fatalf("%d of 4", n)
	}
	if over := l.Admit(site, []exchange.RateDue{wide, narrow}); over != 1 {
		t.Errorf("over the one at %d", over)
	}
	if n := l.times(100, site, wide); n != 6 {
		t.Errorf("%d are left of 10, 4 of which were admitted", n)
	}
	if over := l.Admit(site, []exchange.RateDue{wide, narrow}); over != 0 {
		t.Errorf("over the one at %d", over)
	}
	if !l.admits(site) {
		t.Error("a request under no limit was refused")
	}
}

func TestAMillionAddressesStayWithinTheMemory(t *testing.T) {
	const bound = 64 << 20
	var before, after runtime.MemStats
	c := newClock()
	runtime.GC()
	runtime.ReadMemStats(&before)
	l := newLimiter(bound, c.now)
	site, rule := plan("a"), byAddress("r", 3, 3600)
	limited := make([]exchange.RateDue, 1000)
	for i := range limited {
		limited[i] = rule.DueOfAddress(address(uint32(i)))
		if n := l.times(4, site, limited[i]); n != 3 {
			t.Fatalf("%d of 3", n)
		}
	}
	for n := range uint32(2_000_000) {
		l.admits(site, rule.DueOfAddress(address(1<<24+n)))
	}
	for i := range limited {
		if l.admits(site, limited[i]) {
			t.Fatal("somebody who was being limited was forgotten")
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(l)
	// And a mebibyte for those without a place, and the shards themselves.
	if took := int64(after.HeapAlloc) - int64(before.HeapAlloc); took > bound+2<<20 {
		t.Errorf("%d bytes", took)
	}
	f := l.table.figures()
	t.Logf("%d places, %d given up, %d counted together", f.places, f.evicted, f.crowded)
	if f.evicted == 0 {
		t.Error("nothing had to go")
	}
}

// Where everybody is being limited newcomers are, too, and a limit is never lifted.
func TestATableFullOfTheLimitedLetsNobodyPass(t *testing.T) {
	c := newClock()
	l := newLimiter(1<<20, c.now)
	site, rule := plan("a"), byAddress("r", 1, 3600)
	admitted := 0
	for n := range uint32(200_000) {
		if l.admits(site, rule.DueOfAddress(address(n))) {
			admitted++
		}
	}
	f := l.table.figures()
	// Those with a place, and one in each shard for all others together.
	if most := int(f.places) + shards; admitted > most {
		t.Errorf("%d admitted, %d places", admitted, f.places)
	}
	if f.evicted > 0 {
		t.Errorf("%d who were being limited were given up", f.evicted)
	}
	before := l.table.figures().crowded
	if n := l.times(200_000, site, byAddress("other", 1, 3600).DueOfAddress(address(7))); n > 1 {
		t.Errorf("%d of another rule", n)
	}
	if l.table.figures().crowded == before {
		t.Error("there was room")
	}
	// Once the window is over there is room again.
	c.pass(2 * time.Hour)
	if n := l.times(5, site, rule.DueOfAddress(address(1<<30))); n != 1 {
		t.Errorf("%d of 1", n)
	}
	if l.table.figures().crowded > before+200_000 {
		t.Error("they still count together")
	}
}

func TestTheLightestGoes(t *testing.T) {
	c := newClock()
	l := newLimiter(1<<20, c.now)
	site, rule := plan("a"), byAddress("r", 100, 3600)
	heavy := rule.DueOfAddress(address(1))
	l.times(99, site, heavy)
	for n := range uint32(300_000) {
		l.admits(site, rule.DueOfAddress(address(1<<24+n)))
	}
	if n := l.times(5, site, heavy); n != 1 {
		t.Errorf("%d more of 100 after 99", n)
	}
}

func TestCountingAtOnceLosesNothing(t *testing.T) {
	l := newLimiter(4<<20, nil)
	site := plan("a")
	const limit, workers, each = 5_000, 8, 4_000
	shared, second := byAddress("r", limit, 3600).DueOfAddress(address(1)), byAddress("s", 2*limit, 3600).DueOfAddress(address(1))
	others := byAddress("o", 2, 3600)
	var admitted atomic.Int64
	var all sync.WaitGroup
	for worker := range workers {
		all.Go(func() {
			for n := range each {
				if l.admits(site, second, shared) {
					admitted.Add(1)
				}
				// Places come and go meanwhile.
				l.admits(site, others.DueOfAddress(address(uint32(worker<<24+n))))
			}
		})
	}
	all.Wait()
	if n := admitted.Load(); n != limit {
		t.Errorf("%d of %d", n, limit)
	}
	if n := l.times(2*limit, site, second); n != limit {
		t.Errorf("%d are left under the second limit", n)
	}
}

func TestCountingAllocatesNothing(t *testing.T) {
	l := newLimiter(1<<20, nil)
	site, rule, header := plan("a"), byAddress("r", 1000, 60), exchange.NewRateRule(true, "h", exchange.RateByHeader, "x-key", 500, 60)
	due := make([]exchange.RateDue, 0, 2)
	if n := testing.AllocsPerRun(2000, func() {
		due = append(due[:0], rule.DueOfAddress(address(1)), header.DueOfText("somebody"))
		l.Admit(site, due)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestACoreHasALimiterWithFigures(t *testing.T) {
	c := core.New(core.Options{StateDir: t.TempDir(), Values: map[string]any{"rate_limit_mib": 1}})
	l := core.Find[exchange.RateLimits](c).(*Limiter)
	if l != Of(c) || l.table.maxBuckets*bucketBytes*shards != 1<<20 {
		t.Errorf("%d buckets of %d bytes", l.table.maxBuckets, bucketBytes)
	}
	l.times(3, plan("a"), byAddress("r", 1, 60).DueOfAddress(address(1)))
	var text strings.Builder
	l.WriteMetrics(&text)
	for _, line := range []string{"svc_edge_rate_limit_refused_total 2\n", "svc_edge_rate_limit_places 8\n", "svc_edge_rate_limit_crowded_total 0\n"} {
		if !strings.Contains(text.String(), line) {
			t.Errorf("%q is not in\n%s", line, &text)
		}
	}
	for mib, good := range map[int]bool{1: true, most: true, -1: false, most + 1: false} {
		if err := positive(mib); (err == nil) != good {
			t.Errorf("%d: %v", mib, err)
		}
	}
}

func BenchmarkAdmit(b *testing.B) {
	for _, each := range []struct {
		name    string
		clients uint32
	}{{"one client", 1}, {"100,000 clients", 100_000}} {
		b.Run(each.name, func(b *testing.B) {
			l := newLimiter(64<<20, nil)
			site, rule := plan("0b7c8f5e-6f0e-4a51-9d0a-3f1f1f0a8b11"), byAddress("r", 100_000, 60)
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				due := make([]exchange.RateDue, 1)
				for n := rand.Uint32(); pb.Next(); n++ {
					due[0] = rule.DueOfAddress(address(n * 2654435761 % each.clients))
					l.Admit(site, due)
				}
			})
		})
	}
}
