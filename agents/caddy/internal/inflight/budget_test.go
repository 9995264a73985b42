package inflight

import (
	"math/rand/v2"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
)

// request is one that counts how often it was ended.
type request struct {
	Holding
	evictions atomic.Int32
}

func (r *request) Evict() { r.evictions.Add(1) }

func networkNumbered(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, byte(i >> 8), byte(i), 0}) }

func enter(b *Budget, network int) (*request, Verdict) {
	r := new(request)
	return r, b.Enter(&r.Holding, networkNumbered(network), r)
}

func TestANetworkHoldsNoMoreThanItsLimit(t *testing.T) {
	b := new(Budget)
	b.SetLimits(Limits{Total: 100 * RequestBytes, PerNetwork: 3 * RequestBytes})
	first, _ := enter(b, 1)
	if _, verdict := enter(b, 1); verdict != Entered {
		t.Fatal(verdict)
	}
	if !first.Take(RequestBytes) || first.Take(1) {
		t.Error("a body counts beside requests")
	}
	last, verdict := enter(b, 1)
	if verdict != Refused || last.Take(1) != true {
		t.Errorf("%v", verdict)
	}
	if _, verdict = enter(b, 2); verdict != Entered {
		t.Errorf("another network: %v", verdict)
	}
	first.Give(RequestBytes)
	if _, verdict = enter(b, 1); verdict != Entered {
		t.Errorf("after bytes were given back: %v", verdict)
	}
	if c := b.Counters(); c.Bytes != 4*RequestBytes || c.Requests != 4 || c.RefusedNetwork != 2 || c.RefusedTotal+c.Evicted != 0 {
		t.Errorf("%+v", c)
	}
}

func TestTheHeaviestNetworkLosesItsNewestRequest(t *testing.T) {
	b := new(Budget)
	b.SetLimits(Limits{Total: 6 * RequestBytes})
	var of [3][]*request
	for _, network := range []int{0, 1, 1, 1, 2, 2} {
		r, verdict := enter(b, network)
		if verdict != Entered {
			t.Fatal(verdict)
		}
		of[network] = append(of[network], r)
	}
	if _, verdict := enter(b, 0); verdict != Entered {
		t.Fatal(verdict)
	}
	for i, want := range []int32{0, 0, 1} {
		if got := of[1][i].evictions.Load(); got != want {
			t.Errorf("request %d of the heaviest network was ended %d times", i, got)
		}
	}
	if of[1][2].Take(1) {
		t.Error("a request that was ended takes more")
	}
	of[1][2].Leave()
	// All three hold the same: nobody gives way.
	if _, verdict := enter(b, 1); verdict == Entered {
		t.Error("a network among equals")
	}
	// One without a network takes from the heaviest as well, and is nobody's victim.
	proxied := new(request)
	if verdict := b.Enter(&proxied.Holding, netip.Addr{}, proxied); verdict != Entered {
		t.Error(verdict)
	}
	if c := b.Counters(); c.Bytes != 6*RequestBytes || c.Evicted != 2 || c.RefusedTotal != 1 {
		t.Errorf("%+v", c)
	}
}

func TestRefusedRequestsAreBoundedToo(t *testing.T) {
	b := new(Budget)
	b.SetLimits(Limits{Total: 2 * partRefusing * RequestBytes, PerNetwork: RequestBytes})
	var first, refused [3]*request
	for network := range 3 {
		first[network], _ = enter(b, network)
		var verdict Verdict
		refused[network], verdict = enter(b, network)
		if want := [...]Verdict{Refused, Refused, Overrun}[network]; verdict != want {
			t.Errorf("network %d: %v", network, verdict)
		}
	}
	// A network has its share alone.
	over, verdict := enter(b, 0)
	if verdict != Overrun {
		t.Error(verdict)
	}
	over.Leave()
	refused[2].Leave()
	refused[0].Leave()
	again, verdict := enter(b, 0)
	if verdict != Refused {
		t.Error(verdict)
	}
	if c := b.Counters(); c.Unanswered != 2 {
		t.Errorf("%+v", c)
	}
	for _, r := range []*request{again, refused[1], first[0], first[1], first[2]} {
		r.Leave()
	}
	if len(b.networks) != 0 || len(b.heavy) != 0 || b.refusing != 0 {
		t.Errorf("%d networks are left", len(b.networks))
	}
}

func TestAPeakSettlesOnce(t *testing.T) {
	b := new(Budget)
	r, _ := enter(b, 1)
	r.Take(100 * RequestBytes)
	if b.Settled(10 * RequestBytes) {
		t.Error("while it is held")
	}
	r.Leave()
	if !b.Settled(10*RequestBytes) || b.Settled(10*RequestBytes) {
		t.Error("not once")
	}
}

// Whatever many goroutines do at once, nothing is left over, limits hold, and a request is ended only before it left.
func TestManyAtOnce(t *testing.T) {
	const total = 64 * RequestBytes
	b := new(Budget)
	b.SetLimits(Limits{Total: total, PerNetwork: total / 4})
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(worker)))
			var open []*request
			for range 3000 {
				if c := b.Counters(); c.Bytes > total || c.Bytes < 0 {
					t.Errorf("%+v", c)
				}
				if len(open) < 40 && random.IntN(2) == 0 {
					r, _ := enter(b, random.IntN(30))
					open = append(open, r)
					continue
				}
				if len(open) == 0 {
					continue
				}
				at := random.IntN(len(open))
				r := open[at]
				if random.IntN(3) > 0 {
					if r.Take(RequestBytes / 2) {
						continue
					}
				}
				r.Leave()
				if r.evictions.Load() > 1 {
					t.Error("a request was ended twice")
				}
				open = append(open[:at], open[at+1:]...)
			}
			for _, r := range open {
				r.Leave()
			}
		})
	}
	all.Wait()
	if c := b.Counters(); c.Bytes != 0 || c.Requests != 0 || len(b.networks) != 0 || len(b.heavy) != 0 || b.refusing != 0 {
		t.Errorf("%+v", c)
	}
}

func BenchmarkRequest(b *testing.B) {
	budget := new(Budget)
	budget.SetLimits(Limits{Total: 1 << 30, PerNetwork: 1 << 26})
	for i := range 1000 {
		enter(budget, i)
	}
	r := new(request)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		budget.Enter(&r.Holding, networkNumbered(i&2047), r)
		r.Leave()
	}
}
