package rules

import (
	"errors"
	"fmt"
	"sync/atomic"

	"edge.svc/caddy/exchange"
	"edge.svc/caddy/expr"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
)

type phase = configv1.RulePhase

const (
	requestTransform  = configv1.RulePhase_RULE_PHASE_REQUEST_TRANSFORM
	redirect          = configv1.RulePhase_RULE_PHASE_REDIRECT
	config            = configv1.RulePhase_RULE_PHASE_CONFIG
	wafCustom         = configv1.RulePhase_RULE_PHASE_WAF_CUSTOM
	rateLimit         = configv1.RulePhase_RULE_PHASE_RATELIMIT
	cache             = configv1.RulePhase_RULE_PHASE_CACHE
	origin            = configv1.RulePhase_RULE_PHASE_ORIGIN
	responseTransform = configv1.RulePhase_RULE_PHASE_RESPONSE_TRANSFORM
	compression       = configv1.RulePhase_RULE_PHASE_COMPRESSION
	phases            = compression + 1
)

// phaseNames are those of the API.
var phaseNames = [phases]string{
	requestTransform: "request-transform", redirect: "redirect", config: "config", wafCustom: "waf-custom",
	rateLimit: "ratelimit", cache: "cache", origin: "origin", responseTransform: "response-transform", compression: "compression",
}

// ofResponse reports whether rules of a phase look at an answer.
func ofResponse(p phase) bool { return p == responseTransform || p == compression }

// program is the rules of the platform, or of a site, by their phases and in the order of their list.
type program struct {
	phases [phases][]*rule
}

// of is the rules of a phase; a nil program has none.
func (p *program) of(at phase) []*rule {
	if p == nil {
		return nil
	}
	return p.phases[at]
}

// rule is one that was compiled.
type rule struct {
	name *exchange.RuleName
	when *expr.Condition
	do   action
	// When it was last told of, in seconds since 1970.
	told atomic.Int64
}

// action does what a rule says to a request for which its condition holds.
type action func(q *request, r *rule) verdict

// verdict says how it goes on after a rule.
type verdict uint8

const (
	goOn verdict = iota
	// leaveScope passes over the rest of the phase in the same list of rules.
	leaveScope
	// stop ends all rules of a request.
	stop
)

var errNoRules = errors.New("the entry has no rules")

const maxRuleID = 64

// compileRules makes all rules of an entry, or fails with the first that this node cannot use.
func compileRules(messages []*configv1.Rule, platform bool, most int) (*program, error) {
	switch {
	case len(messages) == 0:
		return nil, errNoRules
	case len(messages) > most:
		return nil, fmt.Errorf("the entry has %d rules; the maximum is %d", len(messages), most)
	}
	p := new(program)
	seen := make(map[string]bool, len(messages))
	for _, message := range messages {
		id := message.GetId()
		if id == "" || len(id) > maxRuleID || seen[id] {
			return nil, fmt.Errorf("rule %.64q: the id is empty, too long, or used by another rule", id)
		}
		seen[id] = true
		r, err := compileRule(message, platform)
		if err != nil {
			return nil, fmt.Errorf("rule %s: %w", id, err)
		}
		p.phases[message.GetPhase()] = append(p.phases[message.GetPhase()], r)
	}
	return p, nil
}

func compileRule(message *configv1.Rule, platform bool) (*rule, error) {
	at := message.GetPhase()
	if at <= 0 || at >= phases {
		return nil, fmt.Errorf("phase %d needs a capability that this node does not have", at)
	}
	c := compiler{platform: platform, phase: at, id: message.GetId()}
	when, err := c.condition(message.GetCondition())
	if err != nil {
		return nil, err
	}
	c.spelled = spellingOf(when)
	do, err := c.action(message)
	if err != nil {
		return nil, err
	}
	return &rule{name: exchange.NewRuleName(platform, message.GetId()), when: when, do: do}, nil
}
