package cc

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"edge.svc/caddy/features/challenge"
	nodev1 "edge.svc/caddy/gen/svc/node/v1"
)

// perClient bans above 5 requests a second over 10 seconds.
func perClient() *Thresholds { return strict(func(t *Thresholds) { t.SiteQPS, t.IPQPS = 0, 5 }) }

// count sends one request and reports whether its client was banned for it.
func (r *rig) count(addr netip.Addr) bool {
	v := r.Count("a", r.policy["a"], addr, false, "/")
	if v.Ban != nil {
		v.Ban()
	}
	return v.Ban != nil
}

// ask sends requests of one address and returns how many were told that they are banned.
func (r *rig) ask(n int, addr string) (banned int) {
	for range n {
		a := netip.MustParseAddr(addr)
		if _, hit := r.bans.Lookup("a", a); hit {
			continue
		}
		if r.count(a) {
			banned++
		}
	}
	return banned
}

func TestClientOverItsRateIsBannedOnce(t *testing.T) {
	r := newRig(t)
	r.policy["a"] = perClient()
	if r.ask(50, "192.0.2.1") != 0 {
		t.Fatal("banned at the threshold")
	}
	if r.ask(10, "192.0.2.1") != 1 {
		t.Fatal("not banned by the request beyond it")
	}
	if _, hit := r.bans.Lookup("b", netip.MustParseAddr("192.0.2.1")); hit {
		t.Error("banned at another site")
	}
	events, bans, _ := r.drain()
	if len(bans) != 1 || len(events) != 1 {
		t.Fatalf("%v %v", bans, events)
	}
	if b := bans[0]; b.GetSiteId() != "a" || b.GetCidr() != "192.0.2.1/32" || b.GetReason() != "cc_ip_rate" || b.GetMetric() != "ip_qps" ||
		b.GetObserved() != 5 || b.GetThreshold() != 5 || b.GetWindowSeconds() != 10 || b.GetExpiresAtMs()-b.GetCreatedAtMs() != 60_000 {
		t.Errorf("%v", b)
	}
	if e := events[0]; e.GetKind() != nodev1.SecurityEventKind_SECURITY_EVENT_KIND_IP_BANNED || e.GetAddress() != "192.0.2.1" || e.GetMetric() != "ip_qps" ||
		e.GetLevel() != 0 || e.GetPreviousLevel() != 0 || len(e.GetTopIps()) != 1 || e.GetTopIps()[0].GetCount() != 51 || e.GetObserved() != 5.1 {
		t.Errorf("%v", e)
	}
	// It starts anew when the ban is over, and when it is lifted.
	r.at = r.at.Add(61 * time.Second)
	if r.ask(50, "192.0.2.1") != 0 || r.ask(1, "192.0.2.1") != 1 {
		t.Error("the count did not start anew after the ban")
	}
}

func TestLiftedClientStartsAnew(t *testing.T) {
	r := newRig(t)
	r.policy["a"] = perClient()
	if r.ask(45, "2001:db8::1") != 0 {
		t.Fatal("banned below the threshold")
	}
	r.Lifted("a", netip.MustParsePrefix("2001:db8::/64"))
	if r.ask(50, "2001:db8::2") != 0 || r.ask(1, "2001:db8::3") != 1 {
		t.Error("the count did not start anew")
	}
	r.Lifted("a", netip.MustParsePrefix("192.0.2.9/32"))
	r.Lifted("nowhere", netip.MustParsePrefix("192.0.2.9/32"))
	r.Lifted("", netip.MustParsePrefix("192.0.2.9/32"))
}

func TestRateOfAClientSlides(t *testing.T) {
	r := newRig(t)
	r.policy["a"] = perClient()
	r.at = r.at.Add(5 * time.Second)
	r.ask(40, "192.0.2.1")
	// Half of the next window is over: half of those still count.
	r.at = r.at.Add(10 * time.Second)
	if r.ask(30, "192.0.2.1") != 0 || r.ask(1, "192.0.2.1") != 1 {
		t.Error("the window did not slide")
	}
	// A whole window in between forgets everything.
	r.ask(40, "192.0.2.2")
	r.at = r.at.Add(20 * time.Second)
	if r.ask(50, "192.0.2.2") != 0 {
		t.Error("requests count after two windows")
	}
}

func TestClientsCountByIPv4AddressOrIPv6Network(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"192.0.2.1", "192.0.2.2", false},
		{"192.0.2.1", "::ffff:192.0.2.1", true},
		{"2001:db8::1", "2001:db8::ffff:ffff:ffff:ffff", true},
		{"2001:db8::1", "2001:db8:0:1::1", false},
		{"0.1.2.3", "::1.2.3.0", false},
	} {
		r := newRig(t)
		r.policy["a"] = perClient()
		r.ask(50, c.a)
		if (r.ask(1, c.b) == 1) != c.same {
			t.Errorf("%s and %s: same %v", c.a, c.b, !c.same)
		}
	}
	for _, addr := range []string{"127.0.0.1", "127.9.9.9", "0.0.0.0", "::", "::1", "::ffff:127.0.0.1", "fe80::1"} {
		r := newRig(t)
		r.policy["a"] = perClient()
		if r.ask(1000, addr) != 0 || r.bans.State().GetEntries() != 0 {
			t.Errorf("%s was banned", addr)
		}
	}
}

func TestExemptAndProtectedClientsAreNotBanned(t *testing.T) {
	r := newRig(t)
	r.policy["a"] = perClient()
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	r.protected.Store(readProtected(
		write("route", "Iface\tDestination\tGateway \tFlags\neth0\t00000000\t010011AC\t0003\neth0\t000011AC\t00000000\t0001\n"),
		write("route6", "00000000000000000000000000000000 00 00000000000000000000000000000000 00 20010db8000000000000000000000001 00000400 00000000 00000000 00000003 eth0\n"),
		write("resolv.conf", "# a comment\nsearch x\nnameserver 198.51.100.53\nnameserver ::1\nnameserver\n"),
	))
	for addr, want := range map[string]int{"172.17.0.1": 0, "198.51.100.53": 0, "2001:db8::77": 0, "172.17.0.2": 1} {
		if got := r.ask(200, addr); got != want {
			t.Errorf("%s: banned %d times", addr, got)
		}
	}
	for range 200 {
		if r.Count("a", r.policy["a"], client(9), true, "/").Ban != nil {
			t.Fatal("an exempt client was banned")
		}
	}
	if p := readProtected(filepath.Join(dir, "none"), filepath.Join(dir, "none"), filepath.Join(dir, "none")); len(p.networks) != 0 {
		t.Errorf("%v", p)
	}
	// They still count for their site.
	if r.tick(); r.drainRequests() == 0 {
		t.Error("nothing was counted for the site")
	}
}

func (r *rig) drainRequests() float64 {
	s, _ := r.sites.Load("a")
	return s.(*Site).state.requests.estimate(r.clock())
}

func TestConcurrentRequestsBanOnce(t *testing.T) {
	r := newRig(t)
	r.policy["a"] = perClient()
	var group sync.WaitGroup
	banned := make([]int, 8)
	for i := range banned {
		group.Go(func() {
			for range 10 {
				if r.count(netip.MustParseAddr("192.0.2.1")) {
					banned[i]++
				}
			}
		})
	}
	group.Wait()
	total := 0
	for _, n := range banned {
		total += n
	}
	if _, bans, _ := r.drain(); total != 1 || len(bans) != 1 {
		t.Errorf("80 requests at once banned %d times, %v", total, bans)
	}
}

func TestScannersAreBannedEverywhere(t *testing.T) {
	r := newRig(t)
	scan := &Scan{Threshold: 10, Ban: 2 * time.Minute}
	unknown := func(n int, addr string) (banned int) {
		for range n {
			if r.CountUnknown(scan, netip.MustParseAddr(addr), false, false) {
				banned++
			}
		}
		return banned
	}
	if unknown(10, "192.0.2.1") != 0 || unknown(1, "192.0.2.1") != 1 {
		t.Fatal("not banned by the request after the threshold")
	}
	if hit, ok := r.bans.Lookup("any", netip.MustParseAddr("192.0.2.1")); !ok || hit.SiteID != "" || hit.Remaining != 2*time.Minute {
		t.Errorf("%+v", hit)
	}
	unknown(20, "192.0.2.1")
	_, bans, _ := r.drain()
	if len(bans) != 1 || bans[0].GetSiteId() != "" || bans[0].GetReason() != "unknown_host_scan" || bans[0].GetMetric() != "unknown_host_requests" ||
		bans[0].GetObserved() != 11 || bans[0].GetThreshold() != 10 || bans[0].GetWindowSeconds() != 60 || bans[0].GetCidr() != "192.0.2.1/32" {
		t.Fatalf("%v", bans)
	}
	// The count keeps its window when the ban is lifted: the next request bans again.
	state := r.bans.State().GetPosition()
	lift := []*nodev1.OwnBanLift{{Cidr: "192.0.2.1/32", ExpiresNoLaterThanMs: r.at.Add(time.Hour).UnixMilli()}}
	if _, err := r.bans.Apply(state, &nodev1.BanPosition{Epoch: 1, Sequence: 1}, nil, nil, lift); err != nil {
		t.Fatal(err)
	}
	r.at = r.at.Add(5 * time.Second)
	if unknown(1, "192.0.2.1") != 1 {
		t.Error("not banned again within the window")
	}
	// The window begins with the first request.
	unknown(10, "192.0.2.2")
	r.at = r.at.Add(59 * time.Second)
	if unknown(1, "192.0.2.2") != 1 {
		t.Error("not banned at the end of the window")
	}
	unknown(10, "192.0.2.3")
	r.at = r.at.Add(60 * time.Second)
	if unknown(10, "192.0.2.3") != 0 || unknown(1, "192.0.2.3") != 1 {
		t.Error("the window does not begin anew")
	}
	// Whom it does not concern.
	for range 50 {
		if r.CountUnknown(scan, netip.MustParseAddr("192.0.2.4"), true, false) || r.CountUnknown(nil, netip.MustParseAddr("192.0.2.5"), false, false) ||
			r.CountUnknown(scan, netip.MustParseAddr("127.0.0.1"), false, false) {
			t.Fatal("banned")
		}
	}
}

func TestScanBansAreFewWhereClientsNameTheirAddress(t *testing.T) {
	r := newRig(t)
	scan := &Scan{Threshold: 1, Ban: time.Hour}
	for minute := range 2 {
		for i := range 100 {
			for range 3 {
				r.CountUnknown(scan, client(1000*minute+i), false, true)
			}
		}
		if n := int(r.bans.State().GetEntries()); n != maxUnsafeBans*(minute+1) {
			t.Errorf("%d bans", n)
		}
		r.at = r.at.Add(time.Minute)
	}
}

// What is remembered of sites is bounded over all of them, and given back when they are quiet.
func TestCandidatesOfAllSitesAreBounded(t *testing.T) {
	r := newRig(t)
	policy := strict(nil)
	const sites = 6000
	for i := range sites {
		id := fmt.Sprint(i)
		r.policy[id] = policy
		for j := range 40 {
			r.Count(id, policy, client(i*40+j), false, fmt.Sprint("/", j))
		}
	}
	if n := r.candidates.Load(); n < maxCandidates || n > maxCandidates+2*leastCandidates*sites {
		t.Errorf("%d candidates", n)
	}
	last, _ := r.sites.Load(fmt.Sprint(sites - 1))
	if _, paths := last.(*Site).heaviest(); len(paths) != leastCandidates {
		t.Errorf("the last site names %d paths", len(paths))
	}
	for range 30 {
		r.tick()
	}
	if n := r.candidates.Load(); n != 0 {
		t.Errorf("%d candidates of quiet sites", n)
	}
}

func TestFullTableGivesUpTheLightest(t *testing.T) {
	c := newClients(shards * ways)
	for i := range 200_000 {
		c.count(1, networkOf(client(i)), 0, time.Minute, 1e9)
		for range 3 {
			c.count(1, networkOf(netip.MustParseAddr("192.0.2.1")), 0, time.Minute, 1e9)
		}
	}
	if c.size() != shards*ways || c.evicted.Load() == 0 {
		t.Errorf("%d places, %d evicted", c.size(), c.evicted.Load())
	}
	if n, _ := c.count(1, networkOf(netip.MustParseAddr("192.0.2.1")), 0, time.Minute, 1e9); n != 600_001 {
		t.Errorf("%v requests of the heaviest", n)
	}
}

func TestHeaviestAreNamed(t *testing.T) {
	r := newRig(t)
	r.policy["a"] = strict(nil)
	for i := range 2000 {
		r.Count("a", r.policy["a"], client(1000+i), false, fmt.Sprintf("/%d", i))
		if i%10 == 0 {
			r.Count("a", r.policy["a"], client(1), false, "/heavy")
		}
		if i%20 == 0 {
			r.Count("a", r.policy["a"], client(2), false, "/second")
			r.Count("a", r.policy["a"], client(3), true, "/"+strings.Repeat("x", 600))
			r.Count("a", r.policy["a"], client(4), false, "/\xff\x01?")
		}
	}
	s, _ := r.sites.Load("a")
	ips, paths := s.(*Site).heaviest()
	if len(ips) != 10 || ips[0].GetValue() != "10.0.0.1" || len(paths) != 10 || paths[0].GetValue() != "/heavy" {
		t.Errorf("%v %v", ips, paths)
	}
	for _, h := range ips {
		if h.GetValue() == "10.0.0.3" {
			t.Error("an exempt client is named")
		}
	}
	for _, h := range paths {
		if !strings.HasPrefix(h.GetValue(), "/") || len(h.GetValue()) > 512 || strings.ContainsAny(h.GetValue(), "?\x01") {
			t.Errorf("%q is named", h.GetValue())
		}
	}
}

func TestLevelOfTheSiteIsInTheBanOfAClient(t *testing.T) {
	r := newRig(t)
	r.policy["a"] = strict(nil)
	r.seconds(30, 200, 0, 0, "/")
	r.drain()
	r.policy["a"] = perClient()
	r.ask(60, "192.0.2.1")
	if events, _, _ := r.drain(); len(events) != 1 || events[0].GetLevel() == 0 || events[0].GetPreviousLevel() != events[0].GetLevel() {
		t.Errorf("%v", events)
	}
}

func BenchmarkCount(b *testing.B) {
	for _, clients := range []int{1, 100, 100_000} {
		b.Run(fmt.Sprintf("%d clients", clients), func(b *testing.B) {
			g := New(Options{Bans: newRig(b).bans, Thresholds: func(string) *Thresholds { return nil }})
			policy := strict(func(t *Thresholds) { t.IPQPS, t.MaxLevel = 1_000_000, challenge.Captcha })
			addrs := make([]netip.Addr, clients)
			for i := range addrs {
				addrs[i] = client(i)
			}
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for i := 0; pb.Next(); i++ {
					g.Count("site", policy, addrs[i%len(addrs)], false, "/products/1234")
				}
			})
		})
	}
	b.Run("a new path each", func(b *testing.B) {
		g := New(Options{Bans: newRig(b).bans, Thresholds: func(string) *Thresholds { return nil }})
		policy := strict(func(t *Thresholds) { t.IPQPS = 1_000_000 })
		paths := make([]string, 1<<16)
		for i := range paths {
			paths[i] = fmt.Sprintf("/products/%d", i)
		}
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for i := 0; pb.Next(); i++ {
				g.Count("site", policy, client(i&0xfffff), false, paths[i&0xffff])
			}
		})
	})
}

func BenchmarkEvaluate(b *testing.B) {
	r := newRig(b)
	policy := strict(nil)
	for i := range 10_000 {
		id := fmt.Sprint(i)
		r.policy[id] = policy
		for j := range 64 {
			r.Count(id, policy, client(j), false, fmt.Sprint("/", j))
		}
	}
	b.ResetTimer()
	for range b.N {
		r.Evaluate()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/10_000, "ns/site")
}
