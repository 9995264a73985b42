package cc

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"edge.svc/caddy/features/bans"
	"edge.svc/caddy/features/challenge"
	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
	nodev1 "edge.svc/caddy/gen/svc/node/v1"
)

// rig is a Guard on a clock of its own.
type rig struct {
	*Guard
	t      testing.TB
	at     time.Time
	bans   *bans.Table
	policy map[string]*Thresholds
}

func newRig(t testing.TB) *rig {
	r := &rig{t: t, at: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), policy: map[string]*Thresholds{}}
	now := func() time.Time { return r.at }
	r.bans = bans.New(100_000, 32<<20, now)
	r.Guard = New(Options{
		Bans: r.bans, InstanceID: "boot", Now: now, Thresholds: func(siteID string) *Thresholds { return r.policy[siteID] },
	})
	return r
}

// strict is a policy with small numbers; change it for a test.
func strict(change func(*Thresholds)) *Thresholds {
	t := &Thresholds{
		MaxLevel: challenge.Captcha, Window: 10 * time.Second, SiteQPS: 100, URLQPS: 1_000_000,
		IPBan: time.Minute, OriginErrorPercent: 50, OriginErrorMinRequests: 100,
		EscalateAfter: 10 * time.Second, Cooldown: 60 * time.Second,
	}
	if change != nil {
		change(t)
	}
	return t
}

// client is one of many addresses.
func client(i int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})
}

// seconds lets time pass, with so many requests and outcomes at the origin in each second.
func (r *rig) seconds(n, requests, answers, errors int, path string) {
	for range n {
		var v Verdict
		for i := range requests {
			v = r.Count("a", r.policy["a"], client(i), false, path)
		}
		for i := range answers {
			if v.Site == nil {
				v = r.Count("a", r.policy["a"], client(0), false, path)
			}
			status := 200
			if i < errors {
				status = 503
			}
			v.Site.Origin(status)
		}
		r.tick()
	}
}

func (r *rig) tick() {
	r.at = r.at.Add(time.Second)
	r.Evaluate()
}

// levels are those of the site and of a path, as requests see them.
func (r *rig) level(path string) Level {
	s, ok := r.sites.Load("a")
	if !ok {
		return 0
	}
	p := s.(*Site).published.Load()
	if p == nil {
		return 0
	}
	return max(p.level, p.paths[path])
}

func (r *rig) drain() (events []*nodev1.SecurityEvent, banned []*nodev1.OwnBan, sites []*edgev1.SiteLevelState) {
	batches, _ := r.outbox.next(0)
	for _, b := range batches {
		events, banned, sites = append(events, b.GetEvents()...), append(banned, b.GetBans()...), append(sites, b.GetSites()...)
	}
	r.outbox.mu.Lock()
	r.outbox.acknowledge(1 << 62)
	r.outbox.mu.Unlock()
	return events, banned, sites
}

func TestSiteQPSEscalatesAndCoolsDown(t *testing.T) {
	r := newRig(t)
	r.policy["a"] = strict(nil)
	// The first window is over the threshold once it holds more than 1,000 requests: after 6 seconds.
	r.seconds(6, 200, 0, 0, "/")
	if r.level("/") != 0 {
		t.Fatal("escalated before the trigger held")
	}
	r.seconds(9, 200, 0, 0, "/")
	if r.level("/") != 0 {
		t.Fatalf("level %d before escalateAfter was over", r.level("/"))
	}
	for want := Level(1); want <= 4; want++ {
		r.seconds(1, 200, 0, 0, "/")
		if r.level("/x") != want {
			t.Fatalf("level %d, not %d", r.level("/x"), want)
		}
		r.seconds(9, 200, 0, 0, "/")
	}
	r.seconds(60, 200, 0, 0, "/")
	if r.level("/") != 4 {
		t.Errorf("level %d above the highest", r.level("/"))
	}
	events, _, _ := r.drain()
	if len(events) != 4 {
		t.Fatalf("%v", events)
	}
	for i, e := range events {
		if e.GetId() != fmt.Sprintf("boot-%d", i+1) || e.GetKind() != nodev1.SecurityEventKind_SECURITY_EVENT_KIND_SITE_LEVEL ||
			e.GetLevel() != uint32(i+1) || e.GetPreviousLevel() != uint32(i) || e.GetMetric() != "site_qps" || e.GetThreshold() != 100 ||
			e.GetObserved() <= 100 || e.GetSiteId() != "a" || len(e.GetTopIps()) != 10 || e.GetTopPaths()[0].GetValue() != "/" {
			t.Errorf("%v", e)
		}
	}
	// 80 in a second are not calm, 79 are.
	r.seconds(70, 80, 0, 0, "/")
	if r.level("/") != 4 {
		t.Error("came down between 80 and 100 %")
	}
	r.seconds(200, 79, 0, 0, "/")
	if r.level("/") != 1 {
		t.Errorf("level %d after three cooldowns", r.level("/"))
	}
	r.seconds(80, 0, 0, 0, "/")
	if r.level("/") != 0 {
		t.Errorf("level %d when all was calm", r.level("/"))
	}
	events, _, _ = r.drain()
	if len(events) != 4 || events[3].GetMetric() != "cooldown" || events[3].GetLevel() != 0 || events[3].GetPreviousLevel() != 1 {
		t.Errorf("%v", events)
	}
	if _, followed := r.sites.Load("a"); followed {
		t.Error("an idle site is followed on")
	}
}

// Every row of the table of states, as one evaluation of a ladder.
func TestLadder(t *testing.T) {
	const s = time.Second
	policy := strict(func(t *Thresholds) { t.MaxLevel = challenge.Pow })
	hold := func(level Level, since time.Duration) ladder {
		return ladder{level: level, holding: true, since: since}
	}
	calm := func(level Level, since time.Duration) ladder { return ladder{level: level, calm: true, since: since} }
	for _, c := range []struct {
		name  string
		from  ladder
		now   time.Duration
		ratio float64
		to    ladder
		cause string
	}{
		{"over the threshold: hold begins", ladder{}, 100 * s, 1.01, hold(0, 100*s), ""},
		{"over the threshold: calm ends", calm(2, 50*s), 100 * s, 1.5, hold(2, 100*s), ""},
		{"held too short", hold(1, 91*s), 100 * s, 2, hold(1, 91*s), ""},
		{"held long enough: one level up, hold begins anew", hold(1, 90*s), 100 * s, 2, hold(2, 100*s), "trigger"},
		{"held at the highest level", hold(3, 10*s), 100 * s, 2, hold(3, 10*s), ""},
		{"exactly the threshold", hold(1, 90*s), 100 * s, 1, ladder{level: 1, since: 90 * s}, ""},
		{"80 % clears hold", hold(1, 90*s), 100 * s, 0.8, ladder{level: 1, since: 90 * s}, ""},
		{"80 % clears calm", calm(1, 0), 100 * s, 0.8, ladder{level: 1, since: 0}, ""},
		{"below 80 %: calm begins", ladder{level: 1}, 100 * s, 0.799, calm(1, 100*s), ""},
		{"below 80 %: hold ends", hold(1, 95*s), 100 * s, 0.5, calm(1, 100*s), ""},
		{"calm too short", calm(2, 41*s), 100 * s, 0, calm(2, 41*s), ""},
		{"calm long enough: one level down, calm begins anew", calm(2, 40*s), 100 * s, 0, calm(1, 100*s), "cooldown"},
		{"calm at normal", calm(0, 0), 100 * s, 0, calm(0, 0), ""},
		{"policy lowered: clamped at once", hold(4, 99*s), 100 * s, 2, hold(3, 99*s), "policy"},
		{"policy lowered while calm", calm(4, 99*s), 100 * s, 0, calm(3, 99*s), "policy"},
		{"policy lowered and cooled down at once", calm(4, 40*s), 100 * s, 0, calm(2, 100*s), "cooldown"},
	} {
		l := c.from
		if cause := l.step(c.now, c.ratio, policy); cause != c.cause || l != c.to {
			t.Errorf("%s: %q, %+v", c.name, cause, l)
		}
	}
}

func TestTriggersOfASite(t *testing.T) {
	for _, c := range []struct {
		name                      string
		policy                    func(*Thresholds)
		requests, answers, errors int
		level                     Level
		metric                    string
	}{
		{"origin errors", nil, 20, 20, 11, 1, "origin_error_rate"},
		{"as many errors as allowed", nil, 20, 20, 10, 0, ""},
		{"fewer origin requests than the minimum", func(t *Thresholds) { t.OriginErrorMinRequests = 201 }, 20, 20, 20, 0, ""},
		{"just the minimum", func(t *Thresholds) { t.OriginErrorMinRequests = 200 }, 20, 20, 20, 1, "origin_error_rate"},
		{"all thresholds 0", func(t *Thresholds) { t.SiteQPS, t.URLQPS, t.OriginErrorPercent = 0, 0, 0 }, 500, 500, 500, 0, ""},
		{"errors off", func(t *Thresholds) { t.OriginErrorPercent = 0 }, 20, 20, 20, 0, ""},
		{"both: the heavier names the metric", nil, 120, 120, 120, 1, "origin_error_rate"},
		{"both: the heavier is the rate", nil, 500, 100, 60, 1, "site_qps"},
		{"a minimum of 0 without requests", func(t *Thresholds) { t.OriginErrorMinRequests = 0 }, 20, 0, 0, 0, ""},
	} {
		r := newRig(t)
		r.policy["a"] = strict(c.policy)
		// One window to fill, ten seconds to hold; the second level would need twenty.
		r.seconds(25, c.requests, c.answers, c.errors, "/")
		events, _, _ := r.drain()
		if c.level == 0 {
			if r.level("/") != 0 || len(events) != 0 {
				t.Errorf("%s: level %d, %v", c.name, r.level("/"), events)
			}
			continue
		}
		if r.level("/") < 1 || len(events) < 1 || events[0].GetMetric() != c.metric {
			t.Errorf("%s: level %d, %v", c.name, r.level("/"), events)
		}
	}
}

// Rate and errors take turns, each for less than escalateAfter, and hold the level's timer together.
func TestSiteTriggersShareOneHold(t *testing.T) {
	r := newRig(t)
	r.policy["a"] = strict(func(t *Thresholds) { t.Window = 5 * time.Second; t.OriginErrorMinRequests = 50 })
	r.seconds(6, 200, 0, 0, "/")
	for range 3 {
		r.seconds(5, 200, 0, 0, "/")
		r.seconds(5, 20, 20, 20, "/")
	}
	if r.level("/") == 0 {
		t.Error("the timer began anew with each trigger")
	}
}

func TestOriginErrorsBelowTheMinimumAreCalm(t *testing.T) {
	r := newRig(t)
	r.policy["a"] = strict(func(t *Thresholds) { t.Cooldown = 20 * time.Second })
	r.seconds(25, 20, 20, 20, "/")
	if r.level("/") == 0 {
		t.Fatal("never raised")
	}
	// Still failing, but too few to say so.
	r.seconds(90, 5, 5, 5, "/")
	if r.level("/") != 0 {
		t.Errorf("level %d", r.level("/"))
	}
}

func TestURLQPSEscalatesOnlyThatPath(t *testing.T) {
	r := newRig(t)
	r.policy["a"] = strict(func(t *Thresholds) { t.SiteQPS, t.URLQPS = 0, 50 })
	for range 30 {
		for i := range 100 {
			// In several spellings.
			r.Count("a", r.policy["a"], client(i), false, []string{"/hot", "//hot", "/x/../hot", "/./hot"}[i%4])
			if i < 40 {
				r.Count("a", r.policy["a"], client(i), false, "/warm")
			}
		}
		r.tick()
	}
	if r.level("/hot") == 0 || r.level("/warm") != 0 || r.level("/hot/") != 0 {
		t.Fatalf("/hot %d, /warm %d", r.level("/hot"), r.level("/warm"))
	}
	for path, want := range map[string]bool{"/hot": true, "/./hot": true, "/warm": false} {
		if v := r.Count("a", r.policy["a"], client(1), false, path); (v.Level > 0) != want {
			t.Errorf("%s: %+v", path, v)
		}
	}
	events, _, sites := r.drain()
	if e := events[0]; e.GetKind() != nodev1.SecurityEventKind_SECURITY_EVENT_KIND_PATH_LEVEL || e.GetPath() != "/hot" || e.GetMetric() != "url_qps" ||
		e.GetLevel() != 1 || e.GetThreshold() != 50 || e.GetObserved() < 50 || e.GetTopPaths()[0].GetValue() != "/hot" {
		t.Errorf("%v", e)
	}
	if last := sites[len(sites)-1]; last.GetSite().GetLevel() != 0 || len(last.GetPaths()) != 1 || last.GetPaths()[0].GetPath() != "/hot" {
		t.Errorf("%v", last)
	}
	if state := r.Security(); len(state) != 1 || state[0].GetLevel() != 0 || state[0].GetPaths()[0].GetPath() != "/hot" {
		t.Errorf("%v", state)
	}
	for range 200 {
		r.tick()
	}
	if r.level("/hot") != 0 || len(r.Security()) != 0 {
		t.Error("the path never cooled down")
	}
	if _, _, sites := r.drain(); len(sites[len(sites)-1].GetPaths()) != 0 {
		t.Errorf("%v", sites)
	}
}

func TestAtMost64PathsAreFollowedEscalatedFirst(t *testing.T) {
	r := newRig(t)
	r.policy["a"] = strict(func(t *Thresholds) { t.SiteQPS, t.URLQPS, t.EscalateAfter = 0, 5, time.Second })
	for range 15 {
		for i := range 10 {
			for range 20 {
				r.Count("a", r.policy["a"], client(i), false, fmt.Sprintf("/old/%d", i))
			}
		}
		r.tick()
	}
	for range 5 {
		for i := range 90 {
			for range 100 {
				r.Count("a", r.policy["a"], client(i), false, fmt.Sprintf("/new/%d", i))
			}
		}
		r.tick()
	}
	s, _ := r.sites.Load("a")
	if n := len(s.(*Site).state.paths); n > maxPaths {
		t.Errorf("%d paths", n)
	}
	for i := range 10 {
		if r.level(fmt.Sprintf("/old/%d", i)) == 0 {
			t.Errorf("escalated path %d was given up for another", i)
		}
	}
	if state := r.Security(); len(state[0].GetPaths()) > maxPaths || len(state[0].GetPaths()) <= 10 {
		t.Errorf("%d paths are escalated", len(state[0].GetPaths()))
	}
	// Who is told of a rise is told of the fall, too.
	for range 300 {
		r.tick()
	}
	levels := map[string]uint32{}
	events, _, _ := r.drain()
	for _, e := range events {
		levels[e.GetPath()] = e.GetLevel()
	}
	for path, level := range levels {
		if level != 0 {
			t.Errorf("%s: the last event says level %d", path, level)
		}
	}
}

// With the template's thresholds a flood meets js within 25 seconds, and captchas within 55.
func TestTemplateAnswersAFloodInTime(t *testing.T) {
	r := newRig(t)
	r.at = r.at.Add(700 * time.Millisecond)
	r.policy["a"] = &Thresholds{
		MaxLevel: challenge.Captcha, Window: 10 * time.Second, SiteQPS: 1000, URLQPS: 200, IPQPS: 50, IPBan: 10 * time.Minute,
		OriginErrorPercent: 50, OriginErrorMinRequests: 100, EscalateAfter: 10 * time.Second, Cooldown: time.Minute,
	}
	start, reached := r.at, map[Level]time.Duration{}
	for r.at.Sub(start) < time.Minute {
		for i := range 3000 {
			v := r.Count("a", r.policy["a"], client(i%5000), false, fmt.Sprint("/", i%400))
			if _, known := reached[v.Level]; !known {
				reached[v.Level] = r.at.Sub(start)
			}
		}
		r.tick()
	}
	if reached[challenge.JS] == 0 || reached[challenge.JS] > 25*time.Second || reached[challenge.Captcha] == 0 || reached[challenge.Captcha] > 55*time.Second {
		t.Errorf("%v", reached)
	}
	if n := r.bans.State().GetEntries(); n != 0 {
		t.Errorf("%d clients were banned for less than their own limit", n)
	}
}

// Evaluations come late by other amounts each time; the level rises on the second all the same.
func TestLateEvaluationsDoNotDelayALevel(t *testing.T) {
	r := newRig(t)
	r.policy["a"] = strict(func(t *Thresholds) { t.Window, t.EscalateAfter = 5*time.Second, 2*time.Second })
	start := r.at
	raised := 0
	for second := 1; second <= 12; second++ {
		for i := range 300 {
			r.Count("a", r.policy["a"], client(i), false, "/")
		}
		r.at = start.Add(time.Duration(second)*time.Second + []time.Duration{9, 1, 5}[second%3]*time.Millisecond)
		before := r.level("/")
		if r.Evaluate(); r.level("/") != before {
			if raised++; second != 2+2*raised {
				t.Errorf("level %d in second %d", r.level("/"), second)
			}
		}
	}
	if raised != 4 {
		t.Errorf("raised %d times", raised)
	}
}

func TestPanicStaysInItsEvaluation(t *testing.T) {
	r := newRig(t)
	r.policy["a"] = strict(nil)
	thresholds, heard := r.options.Thresholds, 0
	r.options.Panicked = func(any) { heard++ }
	r.options.Thresholds = func(string) *Thresholds { panic("broken") }
	r.Count("a", r.policy["a"], client(1), false, "/")
	r.evaluateContained()
	r.options.Thresholds = thresholds
	r.seconds(30, 200, 0, 0, "/")
	if heard != 1 || r.level("/") == 0 {
		t.Errorf("%d panics, level %d afterwards", heard, r.level("/"))
	}
}

func TestHighPowInsteadOfCaptcha(t *testing.T) {
	r := newRig(t)
	r.policy["a"] = strict(func(t *Thresholds) { t.HighPow = true })
	r.seconds(60, 300, 0, 0, "/")
	if v := r.Count("a", r.policy["a"], client(1), false, "/"); v.Level != challenge.Captcha || !v.HighPow {
		t.Errorf("%+v", v)
	}
}

func TestPolicyLoweredAndOff(t *testing.T) {
	r := newRig(t)
	r.policy["a"] = strict(nil)
	r.seconds(60, 300, 0, 0, "/")
	if r.level("/") != 4 {
		t.Fatal(r.level("/"))
	}
	r.drain()
	r.policy["a"] = strict(func(t *Thresholds) { t.MaxLevel = challenge.JS })
	if v := r.Count("a", r.policy["a"], client(1), false, "/"); v.Level != challenge.JS {
		t.Errorf("before the next evaluation: %+v", v)
	}
	r.seconds(1, 300, 0, 0, "/")
	if events, _, _ := r.drain(); r.level("/") != 2 || len(events) != 1 || events[0].GetMetric() != "policy" || events[0].GetPreviousLevel() != 4 {
		t.Errorf("level %d, %v", r.level("/"), events)
	}
	delete(r.policy, "a")
	r.tick()
	events, _, sites := r.drain()
	if r.level("/") != 0 || len(events) != 1 || events[0].GetMetric() != "policy" || events[0].GetLevel() != 0 || events[0].GetPreviousLevel() != 2 {
		t.Errorf("level %d, %v", r.level("/"), events)
	}
	if len(sites) != 1 || sites[0].GetSite().GetLevel() != 0 || len(r.Security()) != 0 {
		t.Errorf("%v", sites)
	}
}

func TestChangedThresholdsKeepTheLevel(t *testing.T) {
	r := newRig(t)
	r.policy["a"] = strict(nil)
	r.seconds(26, 200, 0, 0, "/")
	before := r.level("/")
	r.policy["a"] = strict(func(t *Thresholds) { t.Window = 7 * time.Second; t.SiteQPS = 150 })
	r.seconds(9, 200, 0, 0, "/")
	if r.level("/") != before {
		t.Errorf("level %d became %d", before, r.level("/"))
	}
	// The rate went over with the change of window, so the hold goes on.
	r.seconds(1, 200, 0, 0, "/")
	if r.level("/") != before+1 {
		t.Errorf("level %d after the hold, not %d", r.level("/"), before+1)
	}
}

func TestRestoredLevelsGoOnCoolingDown(t *testing.T) {
	r := newRig(t)
	r.policy["a"] = strict(nil)
	r.RestoreLevels([]*edgev1.SiteLevelState{
		{SiteId: "a", Site: &edgev1.LevelState{Level: 3, CalmMs: 55_000}, Paths: []*edgev1.PathLevelState{
			{Path: "/hot", State: &edgev1.LevelState{Level: 4}}, {Path: "/cold", State: &edgev1.LevelState{}},
		}},
		{SiteId: "off", Site: &edgev1.LevelState{Level: 2}},
	})
	if r.level("/") != 3 || r.level("/hot") != 4 {
		t.Fatalf("%d %d", r.level("/"), r.level("/hot"))
	}
	if events, _, sites := r.drain(); len(events) != 0 || len(sites) != 1 || sites[0].GetSiteId() != "off" || sites[0].GetSite().GetLevel() != 0 {
		t.Errorf("%v %v", events, sites)
	}
	r.seconds(4, 0, 0, 0, "/")
	if r.level("/") != 3 {
		t.Errorf("level %d too early", r.level("/"))
	}
	r.seconds(1, 0, 0, 0, "/")
	if r.level("/") != 2 || r.level("/hot") != 4 {
		t.Errorf("level %d, path %d", r.level("/"), r.level("/hot"))
	}
	// The calm is told now and then, so that the next process does not begin anew.
	told := uint64(0)
	for range 30 {
		r.seconds(1, 0, 0, 0, "/")
		_, _, sites := r.drain()
		for _, s := range sites {
			told = max(told, s.GetSite().GetCalmMs())
		}
	}
	if told < 20_000 {
		t.Errorf("told %d ms of calm", told)
	}
	// A second restore changes nothing.
	r.RestoreLevels([]*edgev1.SiteLevelState{{SiteId: "a", Site: &edgev1.LevelState{Level: 4}}})
	if r.level("/") != 2 {
		t.Errorf("level %d", r.level("/"))
	}
}
