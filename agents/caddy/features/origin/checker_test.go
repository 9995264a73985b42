package origin

import (
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"edge.svc/caddy/exchange"
	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
	nodev1 "edge.svc/caddy/gen/svc/node/v1"
)

// checkedOrigin responds with a status that tests change, and counts requests by Host.
type checkedOrigin struct {
	address string
	status  atomic.Int64
	mu      sync.Mutex
	asked   map[string]int
}

func newCheckedOrigin(t *testing.T) *checkedOrigin {
	o := &checkedOrigin{asked: map[string]int{}}
	o.status.Store(200)
	o.address = addressOf(httpOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		o.mu.Lock()
		o.asked[r.Host]++
		o.mu.Unlock()
		w.WriteHeader(int(o.status.Load()))
	}))
	return o
}

func (o *checkedOrigin) count(host string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.asked[host]
}

// newTestChecker checks without limits until the end of the test.
func newTestChecker(t *testing.T) *Checker {
	policy := loopbackPolicy(t)
	tables := exchange.NewTables()
	h := newChecker(NewState(), NewTransportSet(func() *AddressPolicy { return policy }), func() *exchange.Tables { return tables })
	h.seen, h.every, h.pace.every = tables, 0, 0
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		h.Run(stop)
	}()
	t.Cleanup(func() {
		close(stop)
		<-ended
	})
	return h
}

func (h *Checker) set(number uint32, wanted ...checked) {
	h.mu.Lock()
	h.replace(number, wanted)
	h.mu.Unlock()
	h.look()
}

func often(k *checkKey) { k.interval = 5 * time.Millisecond }

func originOf(site, origin string) originKey { return originKey{site: site, origin: origin} }

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !is(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}

func (s *State) isDown(key originKey) bool { return s.down(key, s.now()) }

func TestOriginsGoDownAndUpByTheirChecks(t *testing.T) {
	h, o := newTestChecker(t), newCheckedOrigin(t)
	key := originOf("a", "o")
	h.set(1, checked{keyFor(o.address, often, func(k *checkKey) { k.thresholds = thresholds{2, 3} }), key})
	eventually(t, "three checks", func() bool { return o.count("check.example") > 2 })
	if h.state.failed.Load() != 0 {
		t.Error("a healthy origin costs requests a look")
	}
	o.status.Store(500)
	eventually(t, "it is down", func() bool { return h.state.isDown(key) })
	// What a request met says nothing of the checks.
	h.state.fail(key, reason{class: failConnect}, 1, time.Hour)
	h.state.succeed(key)
	if !h.state.isDown(key) {
		t.Error("a success of a request brought it back")
	}
	o.status.Store(204)
	eventually(t, "it is up", func() bool { return !h.state.isDown(key) })
	if h.state.failed.Load() != 0 {
		t.Error("something of it is left")
	}
	// Both say so.
	o.status.Store(500)
	eventually(t, "it is down again", func() bool { return h.state.isDown(key) })
	h.state.fail(key, reason{class: failConnect}, 1, time.Hour)
	o.status.Store(200)
	eventually(t, "checks pass", func() bool { return len(h.reported(func(o *nodev1.OriginHealth) bool { return o.Active })) == 0 })
	if !h.state.isDown(key) {
		t.Error("a passed check brought back what requests failed at")
	}
}

// reported lists what is told of origins.
func (h *Checker) reported(which func(*nodev1.OriginHealth) bool) (found []*nodev1.OriginHealth) {
	status := &edgev1.GetStatusResponse{}
	h.FillStatus(status)
	for _, o := range status.OriginHealth {
		if which(o) {
			found = append(found, o)
		}
	}
	return found
}

func TestEqualOriginsShareACheckAndNothingElse(t *testing.T) {
	h, o := newTestChecker(t), newCheckedOrigin(t)
	key := keyFor(o.address)
	a, b := originOf("a", "o"), originOf("b", "o")
	h.set(1, checked{key, a})
	h.set(2, checked{key, b})
	if n := len(h.checks); n != 1 {
		t.Fatalf("two equal sites have %d checks", n)
	}
	for name, change := range map[string]func(*checkKey){
		"port":         func(k *checkKey) { k.dial.port++ },
		"TLS":          overTLS(tlsVerified, ""),
		"verification": overTLS(tlsUnverified, ""),
		"SNI":          overTLS(tlsVerified, "a.example"),
		"Host":         func(k *checkKey) { k.host = "other.example" },
		"path":         func(k *checkKey) { k.path = "/" },
		"method":       func(k *checkKey) { k.head = true },
		"status":       func(k *checkKey) { k.highest = 299 },
		"interval":     func(k *checkKey) { k.interval++ },
		"timeout":      func(k *checkKey) { k.timeout-- },
		"thresholds":   func(k *checkKey) { k.thresholds.healthy = 2 },
	} {
		before := len(h.checks)
		h.set(3, checked{keyFor(o.address, change), originOf("c", "o")})
		if len(h.checks) != before+1 {
			t.Errorf("%s: shared although it differs", name)
		}
		h.set(3)
	}
	h.state.fail(a, reason{class: failConnect}, 1, time.Hour)
	if h.state.isDown(b) {
		t.Error("a failure of a request counts for another site")
	}
	h.set(1)
	h.set(2)
	if len(h.checks) != 0 || len(h.due) != 0 || len(h.sites) != 0 {
		t.Errorf("%d checks, %d due, %d sites are left", len(h.checks), len(h.due), len(h.sites))
	}
}

func TestOneCheckMarksAllOriginsThatShareIt(t *testing.T) {
	h, o := newTestChecker(t), newCheckedOrigin(t)
	shared := keyFor(o.address, often)
	other := keyFor(o.address, often, func(k *checkKey) { k.host, k.highest = "other.example", 599 })
	a, b, c := originOf("a", "o"), originOf("b", "o"), originOf("c", "o")
	h.set(1, checked{shared, a})
	h.set(2, checked{shared, b})
	h.set(3, checked{other, c})
	o.status.Store(503)
	eventually(t, "both are down", func() bool { return h.state.isDown(a) && h.state.isDown(b) })
	eventually(t, "the other is checked", func() bool { return o.count("other.example") > 3 })
	if h.state.isDown(c) {
		t.Error("an origin that is checked otherwise is down, too")
	}
	// Another version of the site, with the same origin among others, and a site that comes later.
	late := originOf("d", "o")
	h.set(1, checked{other, originOf("a", "new")}, checked{shared, a})
	h.set(4, checked{shared, late})
	if !h.state.isDown(a) || !h.state.isDown(late) {
		t.Error("what the check knew is forgotten")
	}
	h.set(1)
	if h.state.isDown(a) || !h.state.isDown(b) {
		t.Error("the end of one site is not its own")
	}
	h.set(2)
	h.set(4)
	if n := h.state.failed.Load(); n != 0 {
		t.Errorf("%d marks are left", n)
	}
}

// A mark ends by itself where nobody renews it.
func TestMarksEnd(t *testing.T) {
	h := newChecker(NewState(), nil, nil)
	now := time.Now()
	h.state.now = func() time.Time { return now }
	for interval, lasts := range map[time.Duration]time.Duration{5 * time.Second: 90 * time.Second, 40 * time.Second: 2 * time.Minute} {
		key := originOf("a", interval.String())
		one := checked{keyFor("127.0.0.1:80", func(k *checkKey) { k.interval = interval }), key}
		h.replace(1, []checked{one})
		h.take(h.checks[one.key], now, 500, fail(failStatus, nil))
		// The clock of the checks is the real one, a moment later.
		for after, down := range map[time.Duration]bool{0: true, lasts - time.Second: true, lasts + 10*time.Minute: false} {
			if got := h.state.down(key, now.Add(after)); got != down {
				t.Errorf("interval %s: %s after the check it is down: %v", interval, after, got)
			}
		}
	}
}

func TestChecksOfOneAddressAreSpacedOut(t *testing.T) {
	p := pace{every: time.Second, next: map[netip.Addr]time.Time{}}
	now := time.Now()
	one, other := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	for i := range 10 {
		if at := p.take(one, now); at != now.Add(time.Duration(i)*time.Second) {
			t.Errorf("check %d is at %s", i, at.Sub(now))
		}
	}
	if at := p.take(other, now); at != now {
		t.Errorf("another address waits for %s", at.Sub(now))
	}
	if later := now.Add(time.Minute); p.take(one, later) != later {
		t.Error("it waits for what is over")
	}
}

// A thousand sites that name one address get one check after the other, each in its turn, and are told.
func TestIntervalsStretchAtTheLimit(t *testing.T) {
	h, o := newTestChecker(t), newCheckedOrigin(t)
	h.pace.every = 2 * time.Millisecond
	const sites = 100
	for i, host := range numbered("%d.example", sites) {
		h.set(uint32(i), checked{keyFor(o.address, func(k *checkKey) { k.host, k.interval = host, time.Millisecond }), originOf(host, "o")})
	}
	for _, host := range numbered("%d.example", sites) {
		eventually(t, "each has had three checks: "+host, func() bool { return o.count(host) >= 3 })
	}
	stretched := func() int { return len(h.reported(func(o *nodev1.OriginHealth) bool { return o.Healthy && o.Active })) }
	eventually(t, "all are told as stretched", func() bool { return stretched() == sites })
	// A check is counted when its answer is there, a moment after the origin saw it.
	eventually(t, "checks and those that waited are counted", func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.delayed > 0 && h.made >= 3*sites
	})
}

func TestADeadOriginHoldsNoOtherChecksUp(t *testing.T) {
	h, o := newTestChecker(t), newCheckedOrigin(t)
	bad := keyFor("127.0.0.1:1", often)
	h.set(1, checked{bad, originOf("bad", "o")})
	h.set(2, checked{keyFor(o.address, often), originOf("good", "o")})
	eventually(t, "the dead one is down", func() bool { return h.state.isDown(originOf("bad", "o")) })
	seen := o.count("check.example")
	eventually(t, "the other goes on", func() bool { return o.count("check.example") > seen+3 })
	told := h.reported(func(o *nodev1.OriginHealth) bool { return !o.Healthy })
	if len(told) != 1 || told[0].Error != "connect_failed" || told[0].SiteId != "bad" || told[0].DownSinceMs == 0 || told[0].LastCheckMs == 0 {
		t.Errorf("told: %v", told)
	}
}

func TestReportsAreBounded(t *testing.T) {
	h := newChecker(NewState(), nil, nil)
	for _, id := range numbered("%d", 3*maxReportedHealth) {
		h.state.fail(originOf("once", id), reason{class: failTimeout}, 3, time.Hour)
	}
	for range 3 {
		h.state.fail(originOf("down", "o"), reason{failStatus, 503}, 3, time.Hour)
	}
	elsewhere := originOf("down", "rule")
	elsewhere.instead = newDialKey("x", 1, plain, "")
	h.state.fail(elsewhere, reason{class: failConnect}, 1, time.Hour)
	all := h.reported(func(*nodev1.OriginHealth) bool { return true })
	if len(all) != maxReportedHealth {
		t.Errorf("%d are told", len(all))
	}
	if first := all[0]; first.SiteId != "down" || first.Healthy || first.Status != 503 || first.ConsecutiveFailures != 3 || first.DownSinceMs == 0 || first.Active {
		t.Errorf("first: %v", first)
	}
	if down := h.reported(func(o *nodev1.OriginHealth) bool { return !o.Healthy }); len(down) != 1 {
		t.Errorf("down: %v", down)
	}
}
