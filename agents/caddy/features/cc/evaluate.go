package cc

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
	nodev1 "edge.svc/caddy/gen/svc/node/v1"
)

const (
	fadeEvery = 5
	// At most this many paths of a site are followed, escalated ones first.
	maxPaths = 64
	// The time a level has been calm is told this often, for the process after this one.
	tellCalmEvery = 10 * time.Second
	maxReported   = 2000
)

// Metrics of events, and the cause that is replaced by one of them.
const (
	metricSite     = "site_qps"
	metricOrigin   = "origin_error_rate"
	metricURL      = "url_qps"
	metricIP       = "ip_qps"
	metricCooldown = "cooldown"
	metricPolicy   = "policy"
	causeTrigger   = "trigger"
)

// reading is what a trigger shows.
type reading struct {
	metric                     string
	ratio, observed, threshold float64
}

func read(metric string, observed float64, threshold uint32) reading {
	r := reading{metric: metric, observed: observed, threshold: float64(threshold)}
	if threshold > 0 {
		r.ratio = observed / r.threshold
	}
	return r
}

// evaluationClock counts whole seconds only: evaluations come a little late, by ever other amounts, and ten seconds between
// two of them must be ten.
func (g *Guard) evaluationClock() time.Duration { return g.clock().Truncate(time.Second) }

// Evaluate turns what was counted since the last call into levels. Call it once a second.
func (g *Guard) Evaluate() {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.evaluationClock()
	fade := int64(now/time.Second)/fadeEvery != int64(g.evaluated/time.Second)/fadeEvery
	g.sites.Range(func(key, value any) bool {
		s := value.(*Site)
		t := g.options.Thresholds(s.id)
		if t == nil {
			g.leave(s)
		}
		if t == nil || !g.evaluate(s, t, now, fade) {
			g.sites.Delete(key)
			s.forget()
		}
		return true
	})
	g.evaluated = now
}

// evaluate takes one site further and reports whether there is still something to follow.
func (g *Guard) evaluate(s *Site, t *Thresholds, now time.Duration, fade bool) bool {
	st := &s.state
	for _, w := range []*window{&st.requests, &st.origins, &st.errors} {
		if w.length == 0 {
			w.advance(g.evaluated, t.Window)
		}
	}
	// Most paths are far from any threshold: one is followed from the second in which it has half of it.
	least := float64(t.URLQPS) / 2 / float64(s.used.Load())
	// What came since the last evaluation belongs to the window in which that was.
	st.requests.current += float64(s.drain(fade, func(path string, n uint32) {
		p := st.paths[path]
		if p == nil {
			if t.URLQPS == 0 || float64(n) < least {
				return
			}
			p = &pathState{}
			p.requests.advance(g.evaluated, t.Window)
			if st.paths == nil {
				st.paths = map[string]*pathState{}
			}
			st.paths[path] = p
		}
		p.requests.current += float64(n)
	}))
	answers, errors := s.originAnswers.Load(), s.originErrors.Load()
	st.origins.current += float64(answers - st.seenOriginAnswers)
	st.errors.current += float64(errors - st.seenOriginErrs)
	st.seenOriginAnswers, st.seenOriginErrs = answers, errors
	st.requests.advance(now, t.Window)
	st.origins.advance(now, t.Window)
	st.errors.advance(now, t.Window)

	trigger := read(metricSite, st.requests.rate(now), t.SiteQPS)
	if origins := st.origins.estimate(now); origins > 0 && origins >= float64(t.OriginErrorMinRequests) {
		if r := read(metricOrigin, 100*st.errors.estimate(now)/origins, t.OriginErrorPercent); r.ratio > trigger.ratio {
			trigger = r
		}
	}
	changed := false
	before := st.ladder.level
	if cause := st.ladder.step(now, trigger.ratio, t); cause != "" {
		changed = true
		g.levelEvent(s, nodev1.SecurityEventKind_SECURITY_EVENT_KIND_SITE_LEVEL, "", before, st.ladder.level, cause, trigger)
	}
	changed = g.evaluatePaths(s, t, now) || changed
	if changed {
		s.publish()
	}
	if changed || st.needsTelling(now) {
		g.tell(s, now)
	}
	return !st.requests.empty() || !st.origins.empty() || st.ladder.level > 0 || len(st.paths) > 0
}

func (g *Guard) evaluatePaths(s *Site, t *Thresholds, now time.Duration) (changed bool) {
	st := &s.state
	for name, p := range st.paths {
		p.requests.advance(now, t.Window)
		r := read(metricURL, p.requests.rate(now), t.URLQPS)
		before := p.ladder.level
		if cause := p.ladder.step(now, r.ratio, t); cause != "" {
			changed = true
			g.levelEvent(s, nodev1.SecurityEventKind_SECURITY_EVENT_KIND_PATH_LEVEL, name, before, p.ladder.level, cause, r)
		}
		if p.ladder.level == 0 && p.requests.empty() {
			delete(st.paths, name)
		}
	}
	if len(st.paths) <= maxPaths {
		return changed
	}
	names := slices.SortedFunc(maps.Keys(st.paths), func(a, b string) int {
		pa, pb := st.paths[a], st.paths[b]
		return cmp.Or(cmp.Compare(min(pb.ladder.level, 1), min(pa.ladder.level, 1)),
			cmp.Compare(pb.requests.estimate(now), pa.requests.estimate(now)), cmp.Compare(a, b))
	})
	// None of these is escalated: a path must have been followed before it can be.
	for _, name := range names[maxPaths:] {
		delete(st.paths, name)
	}
	return changed
}

// leave ends the levels of a site whose policy went off.
func (g *Guard) leave(s *Site) {
	st := &s.state
	off := reading{metric: metricPolicy}
	told := false
	if before := st.ladder.level; before > 0 {
		told = true
		g.levelEvent(s, nodev1.SecurityEventKind_SECURITY_EVENT_KIND_SITE_LEVEL, "", before, 0, metricPolicy, off)
	}
	for name, p := range st.paths {
		if before := p.ladder.level; before > 0 {
			told = true
			g.levelEvent(s, nodev1.SecurityEventKind_SECURITY_EVENT_KIND_PATH_LEVEL, name, before, 0, metricPolicy, off)
		}
	}
	if told {
		*st = siteState{}
		s.publish()
		g.outbox.site(&edgev1.SiteLevelState{SiteId: s.id, Site: &edgev1.LevelState{}})
	}
}

// publish shows requests the levels of the site.
func (s *Site) publish() {
	next := &published{level: s.state.ladder.level}
	for name, p := range s.state.paths {
		if p.ladder.level > 0 {
			if next.paths == nil {
				next.paths = map[string]Level{}
			}
			next.paths[name] = p.ladder.level
		}
	}
	if next.level == 0 && next.paths == nil {
		next = nil
	}
	s.published.Store(next)
}

func (g *Guard) levelEvent(s *Site, kind nodev1.SecurityEventKind, path string, before, after Level, cause string, r reading) {
	if cause == causeTrigger {
		cause = r.metric
	}
	ips, paths := s.heaviest()
	g.outbox.event(&nodev1.SecurityEvent{
		SiteId: s.id, Kind: kind, Level: uint32(after), PreviousLevel: uint32(before), Path: path,
		Metric: cause, Observed: rounded(r.observed), Threshold: r.threshold, TopIps: ips, TopPaths: paths,
	})
}

// rounded has two decimals, enough for people.
func rounded(v float64) float64 { return math.Round(v*100) / 100 }

// needsTelling says whether the calm of the levels must be told again: it ended, or went on for a while.
func (st *siteState) needsTelling(now time.Duration) bool {
	escalated, calm := st.calm()
	return escalated && (st.toldCalm && !calm || calm && now-st.told >= tellCalmEvery)
}

// calm says whether anything is above normal, and whether something of that is calm.
func (st *siteState) calm() (escalated, calm bool) {
	escalated, calm = st.ladder.level > 0, st.ladder.level > 0 && st.ladder.calm
	for _, p := range st.paths {
		if p.ladder.level > 0 {
			escalated, calm = true, calm || p.ladder.calm
		}
	}
	return escalated, calm
}

// tell reports the levels of a site with their calm to the agent.
func (g *Guard) tell(s *Site, now time.Duration) {
	st := &s.state
	st.told = now
	_, st.toldCalm = st.calm()
	out := &edgev1.SiteLevelState{SiteId: s.id, Site: levelState(&st.ladder, now)}
	for _, name := range slices.Sorted(maps.Keys(st.paths)) {
		if p := st.paths[name]; p.ladder.level > 0 {
			out.Paths = append(out.Paths, &edgev1.PathLevelState{Path: name, State: levelState(&p.ladder, now)})
		}
	}
	g.outbox.site(out)
}

func levelState(l *ladder, now time.Duration) *edgev1.LevelState {
	if l.level == 0 {
		return &edgev1.LevelState{}
	}
	return &edgev1.LevelState{Level: uint32(l.level), CalmMs: uint64(l.calmFor(now).Milliseconds())}
}

// Security lists the sites that are above normal or have escalated paths, highest level first, at most 2000.
func (g *Guard) Security() []*nodev1.SiteSecurity {
	var list []*nodev1.SiteSecurity
	g.sites.Range(func(_, value any) bool {
		s := value.(*Site)
		p := s.published.Load()
		if p == nil {
			return true
		}
		out := &nodev1.SiteSecurity{SiteId: s.id, Level: uint32(p.level)}
		for _, name := range slices.Sorted(maps.Keys(p.paths)) {
			out.Paths = append(out.Paths, &nodev1.EscalatedPath{Path: name, Level: uint32(p.paths[name])})
		}
		list = append(list, out)
		return true
	})
	slices.SortFunc(list, func(a, b *nodev1.SiteSecurity) int {
		return cmp.Or(cmp.Compare(b.GetLevel(), a.GetLevel()), cmp.Compare(a.GetSiteId(), b.GetSiteId()))
	})
	return list[:min(len(list), maxReported)]
}

// RestoreLevels continues the levels that a former process held. What this process found by itself stays.
func (g *Guard) RestoreLevels(sites []*edgev1.SiteLevelState) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, in := range sites {
		if g.loaded[in.GetSiteId()] {
			continue
		}
		t := g.options.Thresholds(in.GetSiteId())
		if t == nil {
			// The agent must not keep what nobody holds any more.
			g.outbox.site(&edgev1.SiteLevelState{SiteId: in.GetSiteId(), Site: &edgev1.LevelState{}})
			continue
		}
		g.restore(in, t)
	}
}

func (g *Guard) restore(in *edgev1.SiteLevelState, t *Thresholds) {
	s := g.site(in.GetSiteId())
	if s.published.Load() != nil {
		return
	}
	now, st := g.evaluationClock(), &s.state
	restoreLadder(&st.ladder, now, in.GetSite(), t)
	for _, from := range in.GetPaths()[:min(len(in.GetPaths()), maxPaths)] {
		p := &pathState{}
		if restoreLadder(&p.ladder, now, from.GetState(), t); p.ladder.level == 0 {
			continue
		}
		p.requests.advance(g.evaluated, t.Window)
		if st.paths == nil {
			st.paths = map[string]*pathState{}
		}
		st.paths[from.GetPath()] = p
	}
	s.publish()
}

func restoreLadder(l *ladder, now time.Duration, from *edgev1.LevelState, t *Thresholds) {
	calm := time.Duration(min(from.GetCalmMs(), uint64(t.Cooldown.Milliseconds()))) * time.Millisecond
	l.restore(now, Level(min(from.GetLevel(), uint32(t.MaxLevel))), calm)
}
