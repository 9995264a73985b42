package rules

import (
	"strings"
	"testing"

	configv1 "edge.svc/caddy/gen/svc/config/v1"
	"edge.svc/caddy/internal/ruletest"
)

func preserving(e *configv1.QueryEdit) *configv1.QueryEdit {
	e.Preserve = true
	return e
}

var (
	path = ruletest.Field("http.request.uri.path")
	uri  = ruletest.Field("http.request.uri")
)

// Where redirects lead, and the steps in which their query comes about.
func TestRedirects(t *testing.T) {
	long := strings.Repeat("x", 8000)
	for _, c := range []struct {
		name, asked string
		target      *configv1.RuleValue
		query       *configv1.QueryEdit
		want        string
	}{
		{"a path", "/a?b=c", textOf("/new"), nil, "/new"},
		{"a URL", "/a", textOf("https://b.com:8443/x?y#z"), nil, "https://b.com:8443/x?y#z"},
		{"a computed path", "/a/b%20?c", computed(ruletest.Call("concat", "/v2", uri)), nil, "/v2/a/b%20?c"},
		{"the query is kept", "/a?b=c&d", textOf("/new"), preserving(setting()), "/new?b=c&d"},
		{"the query is kept after one", "/a?b=c", textOf("/new?x=y"), preserving(setting()), "/new?x=y&b=c"},
		{"no query is kept", "/a", textOf("/new?x"), preserving(setting()), "/new?x"},
		{"an empty query is kept", "/a?", textOf("/new?x"), preserving(setting()), "/new?x"},
		{"a fragment stays last", "/a?b=c", textOf("/new?x=y#here"), preserving(setting("z", "1")), "/new?x=y&b=c&z=1#here"},
		{"no query leaves no question mark", "/a", textOf("/new?"), nil, "/new"},
		{"removing all leaves none", "/a?b=1&b=2&b", textOf("/new?b"), preserving(&configv1.QueryEdit{Remove: []string{"b"}}), "/new"},
		{"removing compares names as they stand", "/a?b=1&B=2&%62=3&bb=4&=5", textOf("/new"), preserving(&configv1.QueryEdit{Remove: []string{"b"}}), "/new?B=2&%62=3&bb=4&=5"},
		{"removing takes those of the target", "/a?b=1", textOf("/new?c=2&d"), preserving(&configv1.QueryEdit{Remove: []string{"c"}}), "/new?d&b=1"},
		{"what is set is there once", "/a?b=1&c=2&b=3", textOf("/new?b=0"), preserving(setting("b", "9")), "/new?c=2&b=9"},
		{"what is set is sorted and encoded", "/a", textOf("/new"), setting("a", "x y&=?#/+%", "b", "~-._", "c", ""), "/new?a=x%20y%26%3D%3F%23%2F%2B%25&b=~-._&c="},
		{"empty elements stay", "/a?&b=1&&c=2&", textOf("/new"), preserving(&configv1.QueryEdit{Remove: []string{"b"}}), "/new?&&c=2&"},
		{
			"what is computed is encoded", "/%c3%bc%0d%0a?q=%41+b&h", textOf("/new"), &configv1.QueryEdit{Set: []*configv1.QueryParameter{
				{Name: "p", Value: computed(path)}, {Name: "q", Value: computed(ruletest.Field("http.request.uri.args[q]"))},
			}}, "/new?p=%2F%C3%BC%0D%0A&q=%2541%2Bb",
		},
		{"a path in other bytes is encoded", "/%c3%bc", computed(path), nil, "/%C3%BC"},
		{"two slashes lead nowhere", "//b.com/x", computed(uri), nil, ""},
		{"a space of the path", "/a%20b", computed(path), nil, "/a%20b"},
		{"a line break of the path", "/a%0d%0ab", computed(path), nil, "/a%0D%0Ab"},
		{"a backslash of the path", "/%5cb.com", computed(path), nil, "/%5Cb.com"},
		{"a space that is computed leads nowhere", "/%2520", computed(ruletest.Call("concat", "/", ruletest.Call("url_decode", ruletest.Field("http.request.method")), " ")), nil, ""},
		{"credentials lead nowhere", "/a?to=http://x@b.com", computed(ruletest.Field("http.request.uri.args[to]")), nil, ""},
		{"nothing leads nowhere", "/a", computed(ruletest.Field("http.request.uri.args[to]")), nil, ""},
		{"long", "/?" + long, computed(ruletest.Call("concat", "/", ruletest.Field("http.request.uri.query"))), preserving(setting("a", "b")), "/" + long + "?" + long + "&a=b"},
		{"too long", "/?" + long, computed(ruletest.Call("concat", "/", ruletest.Field("http.request.uri.query"))), preserving(&configv1.QueryEdit{Set: []*configv1.QueryParameter{
			{Name: "p", Value: computed(ruletest.Field("http.request.uri.query"))},
		}}), ""},
	} {
		s := newRules(t, ruletest.Site(always(&configv1.RedirectAction{Target: c.target, Status: 303, Query: c.query})))
		_, a := s.ask(t, "GET", c.asked)
		switch {
		case c.want == "" && (a == nil || a.Status != 503 || a.Code != "policy-unavailable" || a.Header.Get("Location") != ""):
			t.Errorf("%s: %+v", c.name, a)
		case c.want != "" && (a == nil || a.Status != 303 || a.Header.Get("Location") != c.want):
			t.Errorf("%s: %+v", c.name, a)
		}
	}
}

// What a rewrite makes is what rules after it see and origins get; what was asked for stays what it was.
func TestRewrites(t *testing.T) {
	concat := func(parts ...any) *configv1.RuleValue { return computed(ruletest.Call("concat", parts...)) }
	for _, c := range []struct {
		name, asked string
		target      *configv1.RuleValue
		query       *configv1.QueryEdit
		raw         string
	}{
		{"the query goes", "/a?b", textOf("/new"), nil, "/new"},
		{"the query is kept", "/a?b", textOf("/new"), preserving(setting()), "/new?b"},
		{"parameters are set and removed", "/a?b=1&c=2", textOf("/new"), preserving(&configv1.QueryEdit{Set: setting("a", "0").Set, Remove: []string{"b"}}), "/new?c=2&a=0"},
		{"the result is a decoded path", "/a", textOf("/a b%2f"), nil, "/a%20b%252f"},
		{"its dot segments are resolved", "/a?p=../../x", concat("/b/", ruletest.Field("http.request.uri.args[p]")), nil, "/x"},
		{"its bytes are encoded", "/%ff", concat("/v2", path), nil, "/v2/%FF"},
		{"a decoded question mark ends no path", "/a%3Fb%23c?d", concat("/v2", path), nil, "/v2/a%3Fb%23c"},
	} {
		s := newRules(t, ruletest.Site(
			always(&configv1.RewriteAction{Target: c.target, Query: c.query}),
			// A later rule, of the phase or another, sees what is there now.
			always(&configv1.HeaderAction{Name: "x-path", Value: concat(path, "|", ruletest.Field("http.request.uri.query"), "|", uri)})))
		x, a := s.ask(t, "GET", c.asked)
		if a != nil || x.Out.Target == nil || x.Target().Raw != c.raw || x.In.Target.Raw != c.asked {
			t.Errorf("%s: %+v %+v", c.name, a, x.Out.Target)
			continue
		}
		now := x.Target()
		if got := x.Out.Edits[0].Values[0]; got != now.Canonical+"|"+now.Query+"|"+c.asked {
			t.Errorf("%s: a later rule sees %q", c.name, got)
		}
	}
	for name, target := range map[string]*configv1.RuleValue{
		"the reserved prefix":      textOf("/.svc/x"),
		"a way to it":              textOf("/a/../.svc/x"),
		"a backslash":              concat("/v2\\", path),
		"no slash":                 computed(ruletest.Field("http.request.method")),
		"a function's long result": computed(ruletest.Call("url_encode", ruletest.Call("concat", path, path, path, path))),
	} {
		s := newRules(t, ruletest.Site(always(&configv1.RewriteAction{Target: target})))
		if x, a := s.ask(t, "GET", "/a%3Fb"+strings.Repeat("%3f", 2000)); a == nil || a.Code != "policy-unavailable" || x.Out.Target != nil {
			t.Errorf("%s: %+v", name, a)
		}
	}
}

// Rewrites build on one another.
func TestRewritesFollowOneAnother(t *testing.T) {
	more := &configv1.RewriteAction{Target: computed(ruletest.Call("concat", path, "/x")), Query: preserving(setting())}
	s := newRules(t, ruletest.Platform(always(more)), ruletest.Site(always(more), when(ruletest.Eq("http.request.uri.path", "/a/x/x"), more)))
	if x, _ := s.ask(t, "GET", "/a?b"); x.Target().Raw != "/a/x/x/x?b" {
		t.Errorf("%q", x.Target().Raw)
	}
}

// A redirect rule keeps the query that rules before made; it ends the rules.
func TestRedirectAfterARewrite(t *testing.T) {
	counts := &fakeCounts{}
	s := newRules(t, ruletest.Site(
		always(&configv1.RedirectAction{Target: computed(path), Status: 307, Query: preserving(setting())}),
		always(&configv1.RewriteAction{Target: textOf("/new"), Query: setting("a", "1")}), always(&configv1.BlockAction{Status: 403})))
	s.rules.counts = counts
	if _, a := s.ask(t, "GET", "/old?b=2"); a == nil || a.Header.Get("Location") != "/new?a=1" || a.Status != 307 || a.Code != "" {
		t.Errorf("%+v", a)
	}
	if got := strings.Join(counts.noted, " "); got != "s2 applied s1 redirected" {
		t.Error(got)
	}
}
