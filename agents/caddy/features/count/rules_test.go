package count

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
	nodev1 "edge.svc/caddy/gen/svc/node/v1"
	"edge.svc/caddy/internal/edgetest"
)

func planOf(siteID string) *exchange.Plan {
	p := &exchange.Plan{}
	p.Init(siteID, 1, false, nil, nil)
	return p
}

// described are the counts of rules in a batch, one a line: minute, site, rule, event and count.
func described(batch *edgev1.DrainStatsResponse) string {
	var lines []string
	for _, m := range batch.GetMinutes() {
		for _, r := range m.GetRules() {
			scope := "site"
			if r.GetPlatform() {
				scope = "platform"
			}
			event := strings.ToLower(strings.TrimPrefix(r.GetEvent().String(), "RULE_EVENT_"))
			lines = append(lines, fmt.Sprintf("%d %q %s %s %s %d", m.GetMinute()-startMinute, m.GetSiteId(), scope, r.GetRuleId(), event, r.GetCount()))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func TestRulesCountBesideTheirSite(t *testing.T) {
	clock := &fakeClock{start}
	c := core.New(core.Options{StateDir: t.TempDir(), Now: clock.now})
	stats := Of(c)
	if found := core.Find[exchange.RuleCounts](c); found != exchange.RuleCounts(stats) {
		t.Fatalf("%v counts rules", found)
	}
	edgetest.Change(t, c, []*configv1.Entry{
		edgetest.Entry("site", "a", edgetest.Site(0, "a.com")), edgetest.Entry("site", "b", edgetest.Site(0, "b.com"))})
	note := func(host string, local bool, rule *exchange.RuleName, events ...exchange.RuleEvent) {
		x := &exchange.Exchange{Plan: core.PlanOfHost(c.Tables(), host), Local: local}
		for _, event := range events {
			stats.Note(x, rule, event)
		}
	}
	own, platform := exchange.NewRuleName(false, "r-1"), exchange.NewRuleName(true, "r-1")
	note("a.com", false, own, exchange.RuleLogged, exchange.RuleLogged, exchange.RuleLimited)
	note("b.com", false, own, exchange.RuleBlocked)
	note("a.com", false, platform, exchange.RuleLogged, exchange.RuleChallenged)
	note("b.com", false, platform, exchange.RuleLogged, exchange.RuleRedirected, exchange.RuleApplied)
	// What the node asks itself, and what is of no site.
	note("a.com", true, own, exchange.RuleLogged)
	note("c.com", false, platform, exchange.RuleLogged)
	stats.Settle()
	clock.pass(time.Minute)
	// Another version of the rule and of the site counts on.
	edgetest.Change(t, c, []*configv1.Entry{edgetest.Entry("site", "a", edgetest.Site(0, "a.com", "d.com"))})
	note("d.com", false, exchange.NewRuleName(false, "r-1"), exchange.RuleLogged)
	want := `0 "" platform r-1 applied 1
0 "" platform r-1 challenged 1
0 "" platform r-1 logged 2
0 "" platform r-1 redirected 1
0 "a" platform r-1 logged 1
0 "a" site r-1 limited 1
0 "a" site r-1 logged 2
0 "b" platform r-1 logged 1
0 "b" site r-1 blocked 1
60 "a" site r-1 logged 1`
	batch := stats.Drain(0)
	if got := described(batch); got != want {
		t.Errorf("%s", got)
	}
	if rest := stats.Drain(batch.GetSequence()); rest.GetSequence() != 0 {
		t.Errorf("counted twice: %v", rest)
	}
}

func TestAKilledProcessLeavesTheCountsOfRulesOnce(t *testing.T) {
	folder, clock := t.TempDir(), &fakeClock{start}
	rule := exchange.NewRuleName(false, "r")
	first := statsIn(t, folder, clock)
	x := &exchange.Exchange{Plan: planOf("a")}
	for range 7 {
		first.Note(x, rule, exchange.RuleLogged)
	}
	first.Settle()
	first.Note(x, rule, exchange.RuleLogged)
	clock.pass(90 * time.Second)
	second := statsIn(t, folder, clock)
	batch := second.Drain(0)
	if got := described(batch); got != `0 "a" site r logged 7` || len(batch.GetGaps()) != 1 {
		t.Errorf("%s, %v", got, batch.GetGaps())
	}
	if again := statsIn(t, folder, clock).Drain(0); again.String() != batch.String() {
		t.Errorf("%v, not %v", again, batch)
	}
	if rest := second.Drain(batch.GetSequence()); rest.GetSequence() != 0 {
		t.Errorf("%v", rest)
	}
}

func TestOfLogRulesAndOfTheWAFsThoseThatMatchedMostAreTold(t *testing.T) {
	stats := statsIn(t, t.TempDir(), &fakeClock{start})
	x := &exchange.Exchange{Plan: planOf("a")}
	for n := range 45 {
		rule := exchange.NewRuleName(n%2 == 0, fmt.Sprintf("r%02d", n))
		for range n + 1 {
			stats.Note(x, rule, exchange.RuleLogged)
			stats.Note(x, exchange.NewRuleName(false, fmt.Sprint(942_000+n)), exchange.RuleOfWAF)
		}
	}
	for n := range maxRowRules + 30 {
		stats.Note(x, exchange.NewRuleName(false, fmt.Sprintf("b%03d", n)), exchange.RuleBlocked)
	}
	batch := stats.Drain(0)
	var logged, inspected []uint64
	others := 0
	for _, m := range batch.GetMinutes() {
		for _, r := range m.GetRules() {
			switch {
			case m.GetSiteId() == "":
			case r.GetEvent() == nodev1.RuleEvent_RULE_EVENT_LOGGED:
				logged = append(logged, r.GetCount())
			case r.GetEvent() == nodev1.RuleEvent_RULE_EVENT_WAF_MATCHED:
				inspected = append(inspected, r.GetCount())
			default:
				others++
			}
		}
	}
	for _, most := range [][]uint64{logged, inspected} {
		if len(most) != maxTold || slices.Min(most) != 45-maxTold+1 {
			t.Errorf("logged %v, of the WAF %v", logged, inspected)
		}
	}
	if others != maxRowRules {
		t.Errorf("%d others", others)
	}
	if again := stats.Drain(0); again.String() != batch.String() {
		t.Errorf("%v, not %v", again, batch)
	}
}

// Rules come and go while requests are counted: those that are there lose nothing, and the memory is bounded.
func TestRulesThatAreGoneLeaveTheCounters(t *testing.T) {
	stats := newStats(t.TempDir(), time.Now, func(doing string, err error) { t.Errorf("%s: %v", doing, err) })
	plan := planOf("a")
	stays := exchange.NewRuleName(false, "stays")
	const workers, each = 4, 20_000
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			x := &exchange.Exchange{Plan: plan}
			for range each {
				stats.Note(x, stays, exchange.RuleApplied)
			}
		})
	}
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }()
	var counted, acknowledged uint64
	drain := func() {
		batch := stats.Drain(acknowledged)
		acknowledged = batch.GetSequence()
		for _, m := range batch.GetMinutes() {
			for _, r := range m.GetRules() {
				if r.GetRuleId() == "stays" {
					counted += r.GetCount()
				}
			}
		}
	}
	x := &exchange.Exchange{Plan: plan}
	for n := range 5_000 {
		stats.Note(x, exchange.NewRuleName(false, fmt.Sprint(n)), exchange.RuleLogged)
		if n%100 == 99 {
			drain()
		}
	}
	<-done
	drain()
	drain()
	if counted != workers*each {
		t.Errorf("%d of %d", counted, workers*each)
	}
	if n := len(*stats.counterOf(plan).rules.list.Load()); n > keptRuleFigures+200 {
		t.Errorf("%d are remembered", n)
	}
}

// A damaged file never panics, and tells nothing that cannot be.
func TestADamagedSegmentTellsNoRuleThatCannotBe(t *testing.T) {
	data := make([]byte, 4096)
	s := newSegment(data, 1, start, 0)
	r := s.rowOf("a", startMinute)
	s.addRule(r, ruleKey{true, "r-1"}, exchange.RuleLogged, 3)
	s.addRule(r, ruleKey{false, "r-2"}, exchange.RuleLimited, 4)
	whole, err := readSegment(data)
	if err != nil || len(whole.minutes[0].GetRules()) != 2 {
		t.Fatalf("%v, %v", whole, err)
	}
	for at := atUsed; at < s.used; at++ {
		for bit := range 8 {
			data[at] ^= 1 << bit
			c, _ := readSegment(data)
			for _, m := range c.minutes {
				for _, rule := range m.GetRules() {
					if rule.GetEvent() < nodev1.RuleEvent_RULE_EVENT_LOGGED || rule.GetEvent() > nodev1.RuleEvent_RULE_EVENT_WAF_MATCHED {
						t.Errorf("byte %d, bit %d: %v", at, bit, rule)
					}
				}
			}
			data[at] ^= 1 << bit
		}
	}
}

func TestALogRuleHasOneLineAMinute(t *testing.T) {
	clock := &fakeClock{start}
	stats := statsIn(t, t.TempDir(), clock)
	c, written := observer.New(zap.InfoLevel)
	stats.log = zap.New(c)
	a, rule, platform := &exchange.Exchange{Plan: planOf("a")}, exchange.NewRuleName(false, "r"), exchange.NewRuleName(true, "p")
	for range 3 {
		stats.Note(a, rule, exchange.RuleLogged)
		stats.Settle()
	}
	stats.Note(a, platform, exchange.RuleLogged)
	stats.Note(a, rule, exchange.RuleBlocked)
	stats.Settle()
	stats.writeLines()
	if n := written.Len(); n != 0 {
		t.Errorf("%d lines within the minute", n)
	}
	clock.pass(time.Minute)
	stats.Note(a, rule, exchange.RuleLogged)
	stats.Settle()
	stats.writeLines()
	lines := written.TakeAll()
	if len(lines) != 2 || lines[0].ContextMap()["requests"] != uint64(3) || lines[0].ContextMap()["rule"] != "r" || lines[1].ContextMap()["platform"] != true {
		t.Errorf("%v", lines)
	}
	stats.End()
	if lines := written.TakeAll(); len(lines) != 1 || lines[0].ContextMap()["requests"] != uint64(1) {
		t.Errorf("%v", lines)
	}
}

func TestLinesOfLogRulesAreBounded(t *testing.T) {
	var l ruleLog
	l.close(60)
	for n := range maxLogRules + 5 {
		l.note(fmt.Sprint(n), 60, ruleKey{false, "r"}, exchange.RuleLogged, uint64(n))
	}
	l.close(120)
	lines, left := l.take()
	if len(lines) != maxLogLines || left != maxLogRules+5-maxLogLines || lines[0].requests != maxLogRules-1 {
		t.Errorf("%d lines, %d left, the first of %d", len(lines), left, lines[0].requests)
	}
}

func TestCountingUnderARuleAllocatesNothing(t *testing.T) {
	stats := statsIn(t, t.TempDir(), &fakeClock{start})
	x, rule := &exchange.Exchange{Plan: planOf("a")}, exchange.NewRuleName(true, "r")
	if n := testing.AllocsPerRun(1000, func() { stats.Note(x, rule, exchange.RuleLogged) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
