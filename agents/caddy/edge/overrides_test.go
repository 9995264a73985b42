package edge

import (
	"net/http"
	"slices"
	"testing"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
	"edge.svc/caddy/features/cc"
	"edge.svc/caddy/features/challenge"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
	"edge.svc/caddy/internal/edgetest"
)

// newRuled is newHandler with a rule in the order, where rules are.
func newRuled(t testing.TB, rule func(*exchange.Exchange), entries ...*configv1.Entry) *edge {
	t.Helper()
	defer func(before []row) { order = before }(order)
	at := slices.IndexFunc(order, func(r row) bool { return r.name == "lists" }) + 1
	order = slices.Insert(slices.Clone(order), at, row{"a rule", forLocal, func(*core.Core) exchange.Stage {
		return func(x *exchange.Exchange) *exchange.Answer { rule(x); return nil }
	}, policyFails})
	return newHandler(t, entries...)
}

func siteA() *configv1.Entry { return edgetest.Entry("site", "a", edgetest.Site(0, "a.com")) }

// calmWith has a challenge for Under Attack, which is off.
func calmWith(level configv1.ChallengeType) *configv1.Entry {
	return edgetest.Entry("protection", "a", &configv1.SiteProtection{UnderAttackChallenge: level, PowDifficulty: 8, PowHighDifficulty: 9})
}

// What rules say of protection, against everything that asks for a challenge.
func TestRulesAndChallenges(t *testing.T) {
	const demandJS, demandCaptcha = exchange.JS, exchange.Captcha
	for _, c := range []struct {
		name        string
		entries     []*configv1.Entry
		flood, rule exchange.Demand
		allowed     bool
		overrides   exchange.Overrides
		want        string
	}{
		{name: "nothing asks", want: ""},
		{name: "Under Attack of the site", entries: []*configv1.Entry{siteProtection(pow)}, want: "pow"},
		{name: "off for this request", entries: []*configv1.Entry{siteProtection(pow)}, overrides: exchange.Overrides{UnderAttack: exchange.Off}},
		{name: "on for this request, with the site's challenge", entries: []*configv1.Entry{calmWith(captcha)},
			overrides: exchange.Overrides{UnderAttack: exchange.On}, want: "captcha"},
		{name: "on for this request of a site without settings", overrides: exchange.Overrides{UnderAttack: exchange.On}, want: "js"},
		{name: "that of all sites stays", entries: []*configv1.Entry{platform(js), siteProtection(pow)},
			overrides: exchange.Overrides{UnderAttack: exchange.Off}, want: "js"},
		{name: "a flood", flood: exchange.Demand{Level: demandCaptcha}, want: "captcha"},
		{name: "a flood, CC off", flood: exchange.Demand{Level: demandCaptcha}, overrides: exchange.Overrides{CC: exchange.Off}},
		{name: "a flood, CC on", flood: exchange.Demand{Level: demandCaptcha}, overrides: exchange.Overrides{CC: exchange.On}, want: "captcha"},
		{name: "CC on without a flood", overrides: exchange.Overrides{CC: exchange.On, CCMaxLevel: demandCaptcha}},
		{name: "CC off says nothing of Under Attack", entries: []*configv1.Entry{siteProtection(pow)}, flood: exchange.Demand{Level: demandCaptcha},
			overrides: exchange.Overrides{CC: exchange.Off}, want: "pow"},
		{name: "a flood, bounded", flood: exchange.Demand{Level: demandCaptcha}, overrides: exchange.Overrides{CCMaxLevel: exchange.Pow}, want: "pow"},
		{name: "the hard proof of work is the captcha's", flood: exchange.Demand{Level: demandCaptcha, HighPow: true},
			overrides: exchange.Overrides{CCMaxLevel: demandJS}, want: "js"},
		{name: "the bound is above", flood: exchange.Demand{Level: demandJS}, overrides: exchange.Overrides{CCMaxLevel: exchange.Pow}, want: "js"},
		{name: "the bound says nothing of Under Attack", entries: []*configv1.Entry{siteProtection(pow)},
			overrides: exchange.Overrides{CCMaxLevel: demandJS}, want: "pow"},
		{name: "an allow rule spares Under Attack", entries: []*configv1.Entry{platform(js), siteProtection(pow)}, allowed: true},
		{name: "and a flood", flood: exchange.Demand{Level: demandCaptcha}, allowed: true},
		{name: "and not a challenge rule", entries: []*configv1.Entry{platform(captcha)}, rule: exchange.Demand{Level: demandJS}, allowed: true, want: "js"},
		{name: "nothing takes a challenge rule back", rule: exchange.Demand{Level: demandJS},
			overrides: exchange.Overrides{UnderAttack: exchange.Off, CC: exchange.Off, CCMaxLevel: exchange.Cookie302}, want: "js"},
	} {
		h := newProtected(t, c.entries...)
		x := h.beforeChallenge(request("GET", "a.com", "/"))
		x.Overrides = c.overrides
		if c.flood.Level > exchange.Normal {
			*exchange.FloodDemand.Of(x) = c.flood
		}
		if c.rule.Level > exchange.Normal {
			*exchange.RuleDemand.Of(x) = c.rule
		}
		*exchange.RuleAllowed.Of(x) = c.allowed
		if got := challenged(challenge.Stage(h.core)(x)); got != c.want {
			t.Errorf("%s: %q, not %q", c.name, got, c.want)
		}
	}
}

// A client is not banned for what a rule let through, and that does not count towards a ban elsewhere; the site counts it.
func TestRulesAndRatesOfClients(t *testing.T) {
	for _, c := range []struct {
		name string
		cc   exchange.Switch
		want string
	}{
		{"no rule", exchange.Unset, beyond},
		{"switched on", exchange.On, beyond},
		{"switched off", exchange.Off, within + " no-origin no-origin"},
	} {
		h := newRuled(t, func(x *exchange.Exchange) { x.Overrides.CC = c.cc }, siteA(), oneASecond("a"))
		if got := h.codes(7, func(int, *http.Request) {}); got != c.want {
			t.Errorf("%s: %s", c.name, got)
		}
	}
	off := true
	h := newRuled(t, func(x *exchange.Exchange) { x.Overrides.CC = exchange.SwitchOf(!off) }, siteA(), oneASecond("a"))
	h.codes(20, func(int, *http.Request) {})
	off = false
	if got := h.codes(7, func(int, *http.Request) {}); got != beyond {
		t.Errorf("after requests that count for nobody: %s", got)
	}
}

// CC mitigation counts before rules are asked, and asks for a challenge after them.
func TestRulesAndLevels(t *testing.T) {
	for _, c := range []struct {
		overrides exchange.Overrides
		want      string
	}{
		{exchange.Overrides{}, "challenge-unavailable"},
		{exchange.Overrides{CC: exchange.Off}, "no-origin"},
		{exchange.Overrides{CCMaxLevel: exchange.Cookie302}, "challenge-unavailable"},
	} {
		flood := exchange.Demand{}
		h := newRuled(t, func(x *exchange.Exchange) {
			x.Overrides = c.overrides
			flood, _ = exchange.FloodDemand.Known(x)
		}, siteA(), oneASecond("a"))
		cc.Of(h.core).RestoreLevels([]*edgev1.SiteLevelState{{SiteId: "a", Site: &edgev1.LevelState{Level: 2}}})
		w, _ := h.send(request("GET", "a.com", "/"))
		if got := w.Header().Get("X-Svc-Error"); got != c.want || flood.Level != exchange.JS {
			t.Errorf("%+v: %q, CC mitigation asked for %v", c.overrides, got, flood.Level)
		}
	}
}
