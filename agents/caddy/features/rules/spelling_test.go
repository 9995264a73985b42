package rules

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"edge.svc/caddy/exchange"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
	"edge.svc/caddy/internal/ruletest"
)

// Allow rules and switches that turn protection off compare the path after it is encoded again: they spare the one spelling
// that every origin reads alike. Rules that deny, and conditions that read no path, hold for every spelling.
func TestExemptionsByPathAskForThePlainSpelling(t *testing.T) {
	starts := func(field, with string) ruletest.Node {
		return ruletest.Call("starts_with", ruletest.Field(field), ruletest.Literal(with))
	}
	for _, c := range []struct {
		target string
		when   ruletest.Node
		spared bool
	}{
		{"/public/x", starts("http.request.uri.path", "/public/"), true},
		{"/public/a%20b", ruletest.Eq("http.request.uri.path", "/public/a b"), true},
		{"/%E4%B8%AD%E6%96%87/", ruletest.Eq("http.request.uri.path", "/中文/"), true},
		{"/public/a%3Fb?c=%2f..", ruletest.Eq("http.request.uri.path", "/public/a?b"), true},
		{"/public/x.css", ruletest.Eq("http.request.uri.path.extension", "css"), true},
		{"/public/x", starts("http.request.uri", "/public/"), true},
		{"/public/..;/admin", starts("http.request.uri.path", "/public/"), false},
		{"/public/..%2fadmin", starts("http.request.uri", "/public/"), false},
		{"/public/../admin", starts("http.request.uri", "/public/"), false},
		{"/public/../admin", starts("http.request.full_uri", "http://a.com/public/"), false},
		{"/admin/..%2fpublic/x", starts("http.request.uri.path", "/public/"), false},
		{"/admin%2f../public/x", starts("http.request.uri.path", "/public/"), false},
		{`/public/..\admin`, starts("http.request.uri.path", "/public/"), false},
		{"/public/..%5cadmin", starts("http.request.uri.path", "/public/"), false},
		{"//public/x", starts("http.request.uri.path", "/public/"), false},
		{"/%70ublic/x", starts("http.request.uri.path", "/public/"), false},
		{"/x/../public/x", starts("http.request.uri.path", "/public/"), false},
		{"/public/..;/x.css", ruletest.Eq("http.request.uri.path.extension", "css"), false},
		{"/x/..;/admin", ruletest.Not(starts("http.request.uri.path", "/admin")), false},
		{"/x/..;/admin", ruletest.And(ruletest.Eq("http.host", "a.com"), starts("http.request.uri.path", "/x")), false},
		{"/x/..;/admin", ruletest.Eq("http.host", "a.com"), true},
		{"/x/..;/admin", ruletest.True(), true},
	} {
		off := proto.Bool(false)
		s := newRules(t, ruletest.Site(
			when(c.when, &configv1.ConfigAction{UnderAttack: off, CcEnabled: off, CcMaxLevel: js.Enum(), Gzip: off}),
			when(c.when, &configv1.AllowAction{}), always(&configv1.BlockAction{Status: 403})))
		x, answer := s.ask(t, "GET", c.target)
		allowed, _ := exchange.RuleAllowed.Known(x)
		if allowed != c.spared || (answer == nil) != c.spared {
			t.Errorf("%s: allowed %v, %v", c.target, allowed, answer)
		}
		want := exchange.Overrides{Gzip: exchange.Off}
		if c.spared {
			want.UnderAttack, want.CC, want.CCMaxLevel = exchange.Off, exchange.Off, exchange.JS
		}
		if x.Overrides.Gzip != want.Gzip || x.Overrides.UnderAttack != want.UnderAttack || x.Overrides.CC != want.CC || x.Overrides.CCMaxLevel != want.CCMaxLevel {
			t.Errorf("%s: %+v", c.target, x.Overrides)
		}
		s = newRules(t, ruletest.Site(when(c.when, &configv1.BlockAction{Status: 403})))
		if _, answer := s.ask(t, "GET", c.target); answer == nil && c.spared {
			t.Errorf("%s: not blocked", c.target)
		}
	}
}

// Protection that a rule turns on holds for every spelling, and a rewrite leaves one spelling.
func TestProtectionByPathHoldsForEverySpelling(t *testing.T) {
	on := proto.Bool(true)
	s := newRules(t, ruletest.Site(when(ruletest.Eq("http.request.uri.path", "/public"), &configv1.ConfigAction{UnderAttack: on, CcEnabled: on})))
	if x, _ := s.ask(t, "GET", "/x/..//public"); x.Overrides.UnderAttack != exchange.On || x.Overrides.CC != exchange.On {
		t.Errorf("%+v", x.Overrides)
	}
	s = newRules(t, ruletest.Site(
		always(&configv1.RewriteAction{Target: ruletest.Text("/public")}),
		when(ruletest.Eq("http.request.uri.path", "/public"), &configv1.AllowAction{})))
	if x, _ := s.ask(t, "GET", "/x/..;/y"); !*exchange.RuleAllowed.Of(x) {
		t.Error("what a rule rewrote is not allowed")
	}
}
