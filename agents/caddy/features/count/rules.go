package count

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
	nodev1 "edge.svc/caddy/gen/svc/node/v1"
)

const (
	// Rules a counter has room for; what is beyond is not counted.
	maxRuleFigures = 1024
	// Beyond so many those that count nothing go: rules come and go while a process lives.
	keptRuleFigures = 256
	// Of one site and minute: log rules that are kept, and as many of the WAF; those of each that are reported; and others.
	maxRowHeaviest = 50
	maxTold        = 20
	maxRowRules    = 100
	ruleEvents     = 8
	lastRuleEvent  = exchange.RuleOfWAF
	platformsRule  = 1
	maxRuleNumbers = (fieldEnd - fieldRule) / ruleEvents
)

func init() { core.RegisterCapability("rule-log-v1") }

// ruleKey says which rule of a segment it is.
type ruleKey struct {
	platform bool
	id       string
}

// ruleFigures counts what became of requests under rules.
type ruleFigures struct {
	// Never changed: a new figure makes a new list, which shares the figures.
	list atomic.Pointer[[]*ruleFigure]
	grow sync.Mutex
}

type ruleFigure struct {
	rule  *exchange.RuleName
	event exchange.RuleEvent
	// From closed on, the figure has left the list and counts nothing.
	n atomic.Uint64
}

// closed is more than anybody counts.
const closed = 1 << 63

func (f *ruleFigure) is(rule *exchange.RuleName, event exchange.RuleEvent) bool {
	return f.rule.Hash == rule.Hash && f.event == event && f.rule.Platform == rule.Platform && f.rule.ID == rule.ID
}

// Note is described by exchange.RuleCounts. Rules of the platform count for the node; those that log count for the site,
// too.
func (s *Stats) Note(x *exchange.Exchange, rule *exchange.RuleName, what exchange.RuleEvent) {
	if x.Local || x.Plan == nil {
		return
	}
	if what != exchange.RuleOfWAF {
		// The fact of the WAF has its own.
		exchange.Matched.Of(x).Add(rule, what)
	}
	if rule.Platform {
		s.node.rules.add(rule, what)
		s.node.Touch()
	}
	if !rule.Platform || what == exchange.RuleLogged {
		c := s.counterOf(x.Plan)
		c.rules.add(rule, what)
		c.Touch()
	}
}

var _ exchange.RuleCounts = (*Stats)(nil)

func (r *ruleFigures) add(rule *exchange.RuleName, event exchange.RuleEvent) {
	for {
		f := r.find(rule, event)
		if f == nil {
			f = r.make(rule, event)
		}
		// A figure that left the list after it was found has a successor, or gets one.
		if f == nil || f.n.Add(1) < closed {
			return
		}
	}
}

func (r *ruleFigures) find(rule *exchange.RuleName, event exchange.RuleEvent) *ruleFigure {
	if list := r.list.Load(); list != nil {
		for _, f := range *list {
			if f.is(rule, event) {
				return f
			}
		}
	}
	return nil
}

// make adds a figure; nil when there is no room.
func (r *ruleFigures) make(rule *exchange.RuleName, event exchange.RuleEvent) *ruleFigure {
	r.grow.Lock()
	defer r.grow.Unlock()
	if f := r.find(rule, event); f != nil {
		return f
	}
	var before []*ruleFigure
	if list := r.list.Load(); list != nil {
		before = *list
	}
	if len(before) >= maxRuleFigures || len(rule.ID) > maxText {
		return nil
	}
	f := &ruleFigure{rule: rule, event: event}
	list := append(before[:len(before):len(before)], f)
	r.list.Store(&list)
	return f
}

// take empties the figures into put.
func (r *ruleFigures) take(put func(rule ruleKey, event exchange.RuleEvent, n uint64)) {
	list := r.list.Load()
	if list == nil {
		return
	}
	var busy, idle []*ruleFigure
	for _, f := range *list {
		if n := f.n.Swap(0); n > 0 {
			put(ruleKey{f.rule.Platform, f.rule.ID}, f.event, n)
			busy = append(busy, f)
		} else {
			idle = append(idle, f)
		}
	}
	if len(*list) <= keptRuleFigures || !r.replace(*list, busy) {
		return
	}
	for _, f := range idle {
		if n := f.n.Swap(closed); n > 0 {
			put(ruleKey{f.rule.Platform, f.rule.ID}, f.event, n)
		}
	}
}

// replace changes the list, unless it has grown meanwhile.
func (r *ruleFigures) replace(before, after []*ruleFigure) bool {
	r.grow.Lock()
	defer r.grow.Unlock()
	if len(*r.list.Load()) != len(before) {
		return false
	}
	r.list.Store(&after)
	return true
}

// addRule counts, and reports false when there is no room. What a row has no room for is left out.
func (s *segment) addRule(r *row, rule ruleKey, event exchange.RuleEvent, n uint64) bool {
	number, known := s.rules[rule]
	if !known {
		number = uint32(len(s.rules))
		platform := uint64(0)
		if rule.platform {
			platform = platformsRule
		}
		if field(number) >= maxRuleNumbers || !s.put(kindRule, uint32(len(rule.id)), number, platform, rule.id, gapReserve) {
			return false
		}
		s.publish()
		s.rules[rule] = number
	}
	f := fieldRule + field(number*ruleEvents+uint32(event))
	if at := r.find(f); at > 0 {
		s.increase(at, n)
		return true
	}
	room := &r.roomOthers
	switch event {
	case exchange.RuleLogged:
		room = &r.roomLogged
	case exchange.RuleOfWAF:
		room = &r.roomWAF
	}
	if *room == 0 {
		return true
	}
	at := s.used + 8
	if !s.put(kindFigure, uint32(f), r.number, n, "", gapReserve) {
		return false
	}
	s.publish()
	*room--
	r.fields = append(r.fields, placedFigure{f, uint32(at)})
	return true
}

// readRule adds the figure of a rule to a minute, and reports whether it makes sense.
func readRule(m *nodev1.SiteMinute, f field, value uint64, rules []ruleKey) bool {
	number, event := int(f-fieldRule)/ruleEvents, exchange.RuleEvent(f-fieldRule)%ruleEvents
	if number >= len(rules) || event < exchange.RuleLogged || event > lastRuleEvent {
		return false
	}
	rule := rules[number]
	m.Rules = append(m.Rules, &nodev1.RuleCount{
		RuleId: rule.id, Platform: rule.platform, Event: nodev1.RuleEvent(event), Count: value,
	})
	return true
}

// tellHeaviest leaves of the log rules of each minute, and of the WAF's, those that matched most.
func tellHeaviest(minutes []*nodev1.SiteMinute) {
	for _, m := range minutes {
		if len(m.Rules) <= maxTold {
			continue
		}
		slices.SortStableFunc(m.Rules, func(a, b *nodev1.RuleCount) int { return cmp.Compare(b.Count, a.Count) })
		told := map[nodev1.RuleEvent]int{}
		m.Rules = slices.DeleteFunc(m.Rules, func(rule *nodev1.RuleCount) bool {
			told[rule.Event]++
			isRanked := rule.Event == nodev1.RuleEvent_RULE_EVENT_LOGGED || rule.Event == nodev1.RuleEvent_RULE_EVENT_WAF_MATCHED
			return isRanked && told[rule.Event] > maxTold
		})
	}
}
