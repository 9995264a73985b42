package rules

import (
	"strings"
	"testing"

	"edge.svc/caddy/exchange"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
	"edge.svc/caddy/internal/ruletest"
)

const js = configv1.ChallengeType_CHALLENGE_TYPE_JS

// The phase waf-custom: what a list of rules comes to, and what is counted of it.
func TestCustomRules(t *testing.T) {
	const pow = configv1.ChallengeType_CHALLENGE_TYPE_POW
	no := ruletest.Eq("http.host", "b.com")
	block := &configv1.BlockAction{Status: 403}
	for _, c := range []struct {
		name           string
		platform, site []*configv1.Rule
		pass           exchange.Level
		status         int
		allowed        bool
		demand         exchange.Level
		noted          string
	}{
		{"block", nil, []*configv1.Rule{always(block), always(&configv1.LogAction{})}, 0, 403, false, 0, "s1 blocked"},
		{"block for legal reasons", nil, []*configv1.Rule{always(&configv1.BlockAction{Status: 451})}, 0, 451, false, 0, "s1 blocked"},
		{"a condition that does not hold", nil, []*configv1.Rule{when(no, block)}, 0, 0, false, 0, ""},
		{"log goes on", nil, []*configv1.Rule{always(&configv1.LogAction{}), always(block)}, 0, 403, false, 0, "s1 logged s2 blocked"},
		{"the platform comes first", []*configv1.Rule{always(&configv1.BlockAction{Status: 451})}, []*configv1.Rule{always(block)}, 0, 451, false, 0, "p1 blocked"},
		{
			"allow passes over the rest of its list alone", []*configv1.Rule{always(&configv1.AllowAction{}), always(block)},
			[]*configv1.Rule{always(&configv1.BlockAction{Status: 451})}, 0, 451, true, 0, "p1 applied s1 blocked",
		},
		{"allow", nil, []*configv1.Rule{always(&configv1.AllowAction{}), always(block)}, 0, 0, true, 0, "s1 applied"},
		{
			"a challenge without a pass ends the rules", nil, []*configv1.Rule{always(&configv1.ChallengeAction{Type: js}), always(block)},
			exchange.Cookie302, 0, false, exchange.JS, "s1 challenged",
		},
		{
			"a challenge with a pass goes on", nil, []*configv1.Rule{always(&configv1.ChallengeAction{Type: js}), always(block)},
			exchange.JS, 403, false, exchange.JS, "s1 applied s2 blocked",
		},
		{
			"the highest challenge is asked", nil,
			[]*configv1.Rule{always(&configv1.ChallengeAction{Type: js}), always(&configv1.ChallengeAction{Type: pow})},
			exchange.JS, 0, false, exchange.Pow, "s1 applied s2 challenged",
		},
		{
			"a challenge before allow stays", nil,
			[]*configv1.Rule{always(&configv1.ChallengeAction{Type: pow}), always(&configv1.ChallengeAction{Type: js}), always(&configv1.AllowAction{}), always(block)},
			exchange.Captcha, 0, true, exchange.Pow, "s1 applied s2 applied s3 applied",
		},
	} {
		s, counts := newRules(t), &fakeCounts{}
		s.rules.counts, s.rules.passes = counts, fakePasses(c.pass)
		if c.platform != nil {
			s.change(t, ruletest.Platform(c.platform...))
		}
		s.change(t, ruletest.Site(c.site...))
		x, a := s.ask(t, "GET", "/")
		if a == nil && c.status != 0 || a != nil && (a.Status != c.status || a.Code != "policy-denied") {
			t.Errorf("%s: %+v", c.name, a)
		}
		allowed, _ := exchange.RuleAllowed.Known(x)
		demand, _ := exchange.RuleDemand.Known(x)
		if noted := strings.Join(counts.noted, " "); allowed != c.allowed || demand.Level != c.demand || noted != c.noted {
			t.Errorf("%s: allowed %v, demand %v, noted %q", c.name, allowed, demand, noted)
		}
	}
}

// Allow lets no request past the phases that follow, and no block list past rules at all.
func TestWhatAllowDoesNotSpare(t *testing.T) {
	s := newRules(t, ruletest.Site(
		always(&configv1.AllowAction{}),
		always(&configv1.RateLimitAction{Limit: 1, WindowSeconds: 60, Key: configv1.RateLimitKey_RATE_LIMIT_KEY_ADDRESS, Status: 429})))
	s.rules.limits = &fakeLimits{over: func([]exchange.RateDue) int { return 0 }}
	if _, a := s.ask(t, "GET", "/"); a == nil || a.Status != 429 {
		t.Errorf("%+v", a)
	}
	x, _ := s.asked("GET", "/")
	x.Defer(func(x *exchange.Exchange) *exchange.Answer { return x.Respond(403) })
	if s.stage(x); x.Deferred().Status != 403 {
		t.Error("rules took the place of an answer that was held")
	}
	if allowed, _ := exchange.RuleAllowed.Known(x); allowed {
		t.Error("rules ran for a request that was refused already")
	}
}
