package origin

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	configv1 "edge.svc/caddy/gen/svc/config/v1"
)

func poolOf(t *testing.T, policy configv1.BalancePolicy, state *State, origins ...*configv1.Origin) *Pool {
	t.Helper()
	p, err := Compile("site", origins, settings(func(p *configv1.OriginPool) { p.Policy = policy }), state)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func weighted(weights ...uint32) []*configv1.Origin {
	var origins []*configv1.Origin
	for i, w := range weights {
		origins = append(origins, &configv1.Origin{Id: string(rune('a' + i)), Address: "192.0.2.1", Port: uint32(1000 + i), Weight: w})
	}
	return origins
}

func names(p *Pool, key string) string {
	s := ""
	for _, i := range p.candidates(nil, key, &instead{}, -1) {
		s += p.origins[i].health.origin
	}
	return s
}

const (
	random = configv1.BalancePolicy_BALANCE_POLICY_WEIGHTED_RANDOM
	robin  = configv1.BalancePolicy_BALANCE_POLICY_ROUND_ROBIN
	hashed = configv1.BalancePolicy_BALANCE_POLICY_CONSISTENT_HASH
)

func TestRoundRobinSpreadsTurnsEvenly(t *testing.T) {
	p := poolOf(t, robin, NewState(), weighted(5, 1, 1)...)
	got := ""
	for range 14 {
		got += names(p, "")[:1]
	}
	if got != "aabacaaaabacaa" {
		t.Fatalf("got %s", got)
	}
	q := poolOf(t, robin, NewState(), weighted(1, 1, 1)...)
	if a, b, c, d := names(q, ""), names(q, ""), names(q, ""), names(q, ""); a != "abc" || b != "bca" || c != "cab" || d != "abc" {
		t.Fatalf("got %s %s %s %s", a, b, c, d)
	}
}

func TestRandomAndHashGiveEachOriginItsShare(t *testing.T) {
	for _, policy := range []configv1.BalancePolicy{random, hashed} {
		p := poolOf(t, policy, NewState(), weighted(10, 30, 60)...)
		count := map[string]int{}
		const n = 30_000
		for i := range n {
			order := names(p, fmt.Sprint("/path/", i))
			count[order[:1]]++
			if len(order) != 3 {
				t.Fatalf("%s: got %s", policy, order)
			}
		}
		for id, share := range map[string]float64{"a": 0.1, "b": 0.3, "c": 0.6} {
			if got := float64(count[id]) / n; math.Abs(got-share) > 0.02 {
				t.Errorf("%s: %s got %.3f of the requests, want %.1f", policy, id, got, share)
			}
		}
	}
}

func TestHashMovesOnlyTheKeysOfALostOrigin(t *testing.T) {
	state := NewState()
	p := poolOf(t, hashed, state, weighted(1, 1, 1, 1)...)
	before := map[string]string{}
	for i := range 2000 {
		key := fmt.Sprint("/", i)
		before[key] = names(p, key)
		if names(p, key) != before[key] {
			t.Fatal("equal keys must choose equally")
		}
	}
	for range 3 {
		p.failed(&p.origins[2], reason{class: failConnect})
	}
	for key, order := range before {
		want := ""
		for _, id := range order {
			if id != 'c' {
				want += string(id)
			}
		}
		if got := names(p, key); got != want {
			t.Fatalf("%s: got %s, want %s", key, got, want)
		}
	}
}

func TestTiers(t *testing.T) {
	for _, policy := range []configv1.BalancePolicy{random, robin, hashed} {
		state := NewState()
		now := time.Unix(1000, 0)
		state.now = func() time.Time { return now }
		origins := weighted(1, 1, 1, 1)
		origins[2].Backup, origins[3].Backup = true, true
		p := poolOf(t, policy, state, origins...)
		down := func(i int) {
			for range 3 {
				p.failed(&p.origins[i], reason{class: failConnect})
			}
		}
		expect := func(when string, tiers ...string) {
			t.Helper()
			got := names(p, "/")
			for _, tier := range tiers {
				if len(got) < len(tier) {
					t.Fatalf("%s, %s: got %s", policy, when, got)
				}
				part := []byte(got[:len(tier)])
				slices.Sort(part)
				if string(part) != tier {
					t.Fatalf("%s, %s: got %s, want %v", policy, when, names(p, "/"), tiers)
				}
				got = got[len(tier):]
			}
			if got != "" {
				t.Fatalf("%s, %s: %s too many", policy, when, got)
			}
		}
		expect("all up", "ab")
		down(0)
		expect("one primary down", "b")
		down(1)
		expect("primaries down", "cd")
		down(3)
		expect("one backup left", "c")
		down(2)
		expect("all down", "ab", "cd")
		now = now.Add(30 * time.Second)
		expect("on trial", "ab")
		p.failed(&p.origins[0], reason{class: failConnect})
		expect("one failure on trial", "b")
		p.state.succeed(p.origins[1].health)
		p.failed(&p.origins[1], reason{class: failConnect})
		p.failed(&p.origins[1], reason{class: failConnect})
		expect("healed by one success", "b")
	}
}

func TestARequestKeepsItsScheme(t *testing.T) {
	origins := weighted(1, 1, 1, 1)
	origins[1].Https, origins[3].Https = true, true
	for _, policy := range []configv1.BalancePolicy{random, robin, hashed} {
		p := poolOf(t, policy, NewState(), origins...)
		seen := map[string]bool{}
		for i := range 200 {
			order := []byte(names(p, fmt.Sprint(i)))
			slices.Sort(order)
			seen[string(order)] = true
		}
		if len(seen) != 2 || !seen["ac"] || !seen["bd"] {
			t.Fatalf("%s: got %v", policy, seen)
		}
	}
}

func TestCompileRefusesWhatCannotWork(t *testing.T) {
	good := func() *configv1.Origin { return &configv1.Origin{Id: "a", Address: "origin.example.com", Port: 80} }
	for name, change := range map[string]func(*configv1.Origin){
		"port 0":           func(o *configv1.Origin) { o.Port = 0 },
		"port 65536":       func(o *configv1.Origin) { o.Port = 65536 },
		"no address":       func(o *configv1.Origin) { o.Address = "" },
		"address with gap": func(o *configv1.Origin) { o.Address = "a b" },
		"address with end": func(o *configv1.Origin) { o.Address = "a\r\nb" },
		"address with /":   func(o *configv1.Origin) { o.Address = "a/b" },
		"host with end":    func(o *configv1.Origin) { o.HostHeader = "a\r\nX: y" },
		"host with gap":    func(o *configv1.Origin) { o.HostHeader = "a b" },
		"host with /":      func(o *configv1.Origin) { o.HostHeader = "a/b" },
		"sni with colon":   func(o *configv1.Origin) { o.Sni = "a:1" },
	} {
		o := good()
		change(o)
		if _, err := Compile("s", []*configv1.Origin{o}, settings(), NewState()); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
	if _, err := Compile("s", make([]*configv1.Origin, maxOrigins+1), settings(), NewState()); err == nil {
		t.Error("too many origins were accepted")
	}
	p, err := Compile("s", []*configv1.Origin{good(), {Id: "g", Address: "::1", Port: 443, Group: "other"}}, nil, NewState())
	if err != nil || len(p.origins) != 1 || p.tries != 1 || p.times.connect != 10*time.Second || p.times.read != time.Minute {
		t.Fatalf("got %+v %v", p, err)
	}
}

func TestServerNameFollowsTheHostSent(t *testing.T) {
	for _, c := range []struct{ sni, host, address, want string }{
		{"Sni.Example", "h.example:8443", "a.example", "sni.example"},
		{"", "H.example:8443", "a.example", "h.example"},
		{"", "h.example", "a.example", "h.example"},
		{"", "", "A.example.", "a.example"},
		{"", "", "192.0.2.1", "192.0.2.1"},
		{"", "[2001:db8::1]:8443", "a.example", "2001:db8::1"},
		{"", "", "2001:db8::1", "2001:db8::1"},
	} {
		if got := serverName(&configv1.Origin{Sni: c.sni, HostHeader: c.host, Address: c.address}); got != c.want {
			t.Errorf("%+v: got %s", c, got)
		}
	}
}

func TestOldFailuresAreForgotten(t *testing.T) {
	s := NewState()
	now := time.Unix(1_000_000, 0)
	s.now = func() time.Time { return now }
	for _, id := range numbered("o%d", 100) {
		s.fail(originKey{site: "s", origin: id}, reason{class: failConnect}, 3, time.Second)
	}
	now = now.Add(forgetAfter + time.Hour)
	s.fail(originKey{site: "s", origin: "new"}, reason{class: failConnect}, 3, time.Second)
	if n := s.failed.Load(); n != 1 {
		t.Fatalf("%d origins are remembered", n)
	}
}
