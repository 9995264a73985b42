package waf

import (
	"fmt"
	"io"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
	"edge.svc/caddy/internal/spool"
)

const (
	// How long a request waits for its turn.
	maxWait = time.Second
	// How long the rule set stays that nobody uses.
	keepUnused = 10 * time.Minute
)

// engine is what a core has of the WAF: the rule set while somebody wants it, and the permits to run it.
type engine struct {
	core     *core.Core
	building sync.Mutex
	build    func(patternTime time.Duration) (*ruleSet, error)
	rules    atomic.Pointer[ruleSet]
	used     atomic.Int64
	queue    *queue
	wait     time.Duration
	room     *spool.Spool
	verdicts verdicts
	counts   exchange.RuleCounts
	events   exchange.WAFEvents
	sample   sample
	// Names of rules that matched, by their ids.
	names    sync.Map
	counters struct {
		inspected, attacks, blocked, busy, slow, failed, uninspected atomic.Uint64
		// Exclusions that were left out.
		unknownTags atomic.Uint64
	}
}

var component = core.NewComponent("waf", func(c *core.Core) *engine {
	return &engine{
		core: c, build: buildRuleSet, queue: newQueue(min(runtime.GOMAXPROCS(0), maxBudgets/4)),
		room: core.Spool.Of(c), wait: maxWait, counts: core.Find[exchange.RuleCounts](c),
		events: core.Find[exchange.WAFEvents](c),
	}
})

// need returns the rule set, and builds it where it is not there.
func (e *engine) need() (*ruleSet, error) {
	e.used.Store(time.Now().Unix())
	if r := e.rules.Load(); r != nil {
		return r, nil
	}
	e.building.Lock()
	defer e.building.Unlock()
	if r := e.rules.Load(); r != nil {
		return r, nil
	}
	begun := time.Now()
	r, err := e.build(time.Duration(patternTime.Of(e.core)) * time.Millisecond)
	if err != nil {
		e.core.Log().Error("cannot build the rule set of the WAF", zap.Error(err))
		return nil, err
	}
	e.core.Log().Info("built the rule set of the WAF",
		zap.String("version", rulesVersion), zap.String("checksum", rulesChecksum), zap.Duration("took", time.Since(begun)))
	e.rules.Store(r)
	return r, nil
}

// Run gives the rule set up when no site has wanted it for a while.
func (e *engine) Run(stop <-chan struct{}) {
	tick := time.NewTicker(time.Minute)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case now := <-tick.C:
			e.releaseUnused(now)
		}
	}
}

// releaseUnused gives up the rule set that was not used for long, unless a site wants it.
func (e *engine) releaseUnused(now time.Time) {
	if now.Sub(time.Unix(e.used.Load(), 0)) <= keepUnused {
		return
	}
	e.building.Lock()
	defer e.building.Unlock()
	if e.rules.Load() == nil {
		return
	}
	for p := range e.core.Tables().Plans {
		if part.Of(p) != nil {
			return
		}
	}
	e.rules.Store(nil)
	e.verdicts.clear()
}

// WriteMetrics shows which rules there are and what became of requests.
func (e *engine) WriteMetrics(w io.Writer) {
	built := 0
	if e.rules.Load() != nil {
		built = 1
	}
	fmt.Fprintf(w, "# HELP svc_waf_rule_set 1 while the rule set is loaded; it is loaded when a site uses it.\n# TYPE svc_waf_rule_set gauge\nsvc_waf_rule_set{version=%q,checksum=%q} %d\n", rulesVersion, rulesChecksum, built)
	e.verdicts.mu.Lock()
	hits := e.verdicts.hits
	e.verdicts.mu.Unlock()
	fmt.Fprintf(w, "# HELP svc_waf_requests_total Requests by outcome of inspection.\n# TYPE svc_waf_requests_total counter\n")
	c := &e.counters
	for _, figure := range []struct {
		name  string
		value uint64
	}{
		{"inspected", c.inspected.Load()}, {"known", hits}, {"attack", c.attacks.Load()}, {"blocked", c.blocked.Load()},
		{"busy", c.busy.Load()}, {"slow", c.slow.Load()}, {"failed", c.failed.Load()},
		{"body_uninspected", c.uninspected.Load()},
	} {
		fmt.Fprintf(w, "svc_waf_requests_total{outcome=%q} %d\n", figure.name, figure.value)
	}
	fmt.Fprintf(w, "# HELP svc_waf_unknown_tags_total Excluded rule tags that the rule set does not have.\n# TYPE svc_waf_unknown_tags_total counter\nsvc_waf_unknown_tags_total %d\n", c.unknownTags.Load())
	fmt.Fprintf(w, "# HELP svc_waf_waiting Requests that wait for their turn to be inspected.\n# TYPE svc_waf_waiting gauge\nsvc_waf_waiting %d\n", e.queue.waiting.Load())
	fmt.Fprintf(w, "# HELP svc_waf_yields_total Turns that an inspection of a long body gave to other requests.\n# TYPE svc_waf_yields_total counter\nsvc_waf_yields_total %d\n", e.queue.yields.Load())
}
