package cc

import (
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"
)

// naive does what the specification says in the simplest way: it remembers every request.
type naive struct {
	requests, answers, errors []time.Duration
	clients                   map[netip.Addr][]time.Duration
	level                     Level
	hold, calm                *time.Duration
}

func sliding(times []time.Duration, now, w time.Duration) float64 {
	index, n := now/w, 0.0
	for _, at := range times {
		switch at / w {
		case index:
			n++
		case index - 1:
			n += 1 - float64(now%w)/float64(w)
		}
	}
	return n
}

func (m *naive) request(client netip.Addr, now time.Duration, t *Thresholds) (banned bool) {
	m.requests = append(m.requests, now)
	if t.IPQPS == 0 {
		return false
	}
	m.clients[client] = append(m.clients[client], now)
	if sliding(m.clients[client], now, t.Window) > float64(t.IPQPS)*t.Window.Seconds() {
		m.clients[client] = nil
		return true
	}
	return false
}

func (m *naive) evaluate(now time.Duration, t *Thresholds) {
	ratio := 0.0
	if t.SiteQPS > 0 {
		ratio = sliding(m.requests, now, t.Window) / t.Window.Seconds() / float64(t.SiteQPS)
	}
	if origins := sliding(m.answers, now, t.Window); t.OriginErrorPercent > 0 && origins > 0 && origins >= float64(t.OriginErrorMinRequests) {
		ratio = max(ratio, 100*sliding(m.errors, now, t.Window)/origins/float64(t.OriginErrorPercent))
	}
	m.level = min(m.level, t.MaxLevel)
	switch {
	case ratio > 1:
		m.calm = nil
		if m.hold == nil {
			m.hold = &now
		}
		if now-*m.hold >= t.EscalateAfter && m.level < t.MaxLevel {
			m.level++
			m.hold = &now
		}
	case ratio < 0.8:
		m.hold = nil
		if m.calm == nil {
			m.calm = &now
		}
		if now-*m.calm >= t.Cooldown && m.level > 0 {
			m.level--
			m.calm = &now
		}
	default:
		m.hold, m.calm = nil, nil
	}
}

// Random traffic under random policies: levels and bans are those of the naive model, second for second.
func TestLevelsAndBansAreThoseOfANaiveModel(t *testing.T) {
	raised, banned := 0, 0
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, 7))
		r := newRig(t)
		policy := strict(func(t *Thresholds) {
			t.MaxLevel = Level(1 + random.IntN(4))
			t.Window = time.Duration(5+random.IntN(20)) * time.Second
			t.SiteQPS = uint32(random.IntN(3) * 20)
			t.URLQPS = 0
			t.IPQPS = uint32(random.IntN(2) * (1 + random.IntN(4)))
			t.OriginErrorPercent = uint32(random.IntN(2) * 40)
			t.OriginErrorMinRequests = uint32(random.IntN(100))
			t.EscalateAfter = time.Duration(1+random.IntN(6)) * time.Second
			t.Cooldown = time.Duration(1+random.IntN(12)) * time.Second
		})
		r.policy["a"] = policy
		model := &naive{clients: map[netip.Addr][]time.Duration{}}
		// One request that never ends keeps the site followed, so that both see the same.
		for range 150 {
			rate := random.IntN(4) * random.IntN(30)
			if random.IntN(10) == 0 {
				policy.MaxLevel = Level(1 + random.IntN(4))
			}
			failing := random.IntN(2) == 0
			for range rate + 1 {
				addr := client(1 + random.IntN(5))
				now := r.clock()
				v := r.Count("a", policy, addr, false, "/")
				want := model.request(addr, now, policy)
				if (v.Ban != nil) != want {
					t.Fatalf("seed %d at %v: banned %v, model %v", seed, now, v.Ban != nil, want)
				}
				if want {
					banned++
				}
				if random.IntN(2) == 0 {
					status := 200
					if failing {
						status = 502
					}
					v.Site.Origin(status)
					model.answers = append(model.answers, now)
					if failing {
						model.errors = append(model.errors, now)
					}
				}
				r.at = r.at.Add(time.Second / time.Duration(rate+2))
			}
			r.at = r.at.Truncate(time.Second).Add(time.Second)
			before := model.level
			model.evaluate(r.clock(), policy)
			r.Evaluate()
			if got := r.level("/"); got != model.level {
				t.Fatalf("seed %d at %v: level %d, model %d, policy %+v", seed, r.clock(), got, model.level, policy)
			}
			if model.level > before {
				raised++
			}
		}
	}
	if raised < 50 || banned < 50 {
		t.Errorf("raised %d times, banned %d times: the traffic is too tame", raised, banned)
	}
}

func TestWindowKeepsItsRateWhenItsLengthChanges(t *testing.T) {
	w := window{}
	w.advance(0, 10*time.Second)
	for i := range 25 {
		w.current += 7
		w.advance(time.Duration(i+1)*time.Second, 10*time.Second)
	}
	if rate := w.rate(25 * time.Second); rate < 6.9 || rate > 7.1 {
		t.Fatalf("%v", rate)
	}
	w.advance(25*time.Second, 60*time.Second)
	if rate := w.rate(25 * time.Second); rate < 6.9 || rate > 7.1 {
		t.Errorf("%v", rate)
	}
}
