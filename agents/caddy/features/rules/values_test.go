package rules

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"testing"

	"edge.svc/caddy/exchange"
	"edge.svc/caddy/expr"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
	"edge.svc/caddy/internal/ruletest"
)

// Every field of a request, as it is asked for in a header that a rule computes.
func TestFieldsOfRequests(t *testing.T) {
	const asked = "/A/./b%20c//File.TAR.Gz?x=1&X=2&x=3&y&=z&p%20q=4"
	s := newRules(t, ruletest.Site(always(&configv1.LogAction{})))
	s.rules.geo = fakeGeo{ready: true}
	x, _ := s.asked("PURGE", asked, with("Cookie", "a=1; b = 2;c;d=\"e\" ; a=3"), with("Cookie", "f=;g=h=i"),
		with("X-Two", "one"), with("X-Two", "two"), with("Referer", "r"), with("User-Agent", "u"))
	x.In.HostRaw = "A.com:80"
	q := s.rules.begin(x, nil)
	for _, c := range []struct {
		field      expr.Field
		name, want string
	}{
		{expr.Host, "", "a.com"},
		{expr.Method, "", "PURGE"},
		{expr.Path, "", "/A/b c/File.TAR.Gz"},
		{expr.PathExtension, "", "gz"},
		{expr.Query, "", "x=1&X=2&x=3&y&=z&p%20q=4"},
		{expr.URI, "", asked},
		{expr.FullURI, "", "http://a.com" + asked},
		{expr.RequestHeader, "X-Two", "one, two"},
		{expr.RequestHeader, "X-None", ""},
		{expr.RequestHeader, "Host", "A.com:80"},
		{expr.Cookie, "a", "1"},
		{expr.Cookie, "A", ""},
		{expr.Cookie, "b", ""},
		{expr.Cookie, "c", ""},
		{expr.Cookie, "d", `"e"`},
		{expr.Cookie, "f", ""},
		{expr.Cookie, "g", "h=i"},
		{expr.Argument, "x", "1"},
		{expr.Argument, "X", "2"},
		{expr.Argument, "y", ""},
		{expr.Argument, "p%20q", "4"},
		{expr.Argument, "p q", ""},
		{expr.Argument, "q", ""},
		{expr.Referer, "", "r"},
		{expr.UserAgent, "", "u"},
		{expr.Version, "", "HTTP/1.1"},
		{expr.Scheme, "", "http"},
		{expr.RequestID, "", "request-1"},
		{expr.JA4, "", ""},
		{expr.Country, "", "DE"},
		{expr.Subdivision, "", ""},
		{expr.ASName, "", "Example"},
		{expr.ResponseHeader, "X-Two", ""},
		{expr.MediaType, "", ""},
		{expr.CacheStatus, "", ""},
	} {
		if got := q.Text(c.field, c.name); got != c.want {
			t.Errorf("%v[%s]: %q, not %q", c.field, c.name, got, c.want)
		}
	}
	for field, want := range map[expr.Field]int64{
		expr.TimestampSec: x.Begun.Unix(), expr.ServerPort: 80, expr.ASNumber: 64496, expr.ResponseCode: 0,
	} {
		if got := q.Number(field); got != want {
			t.Errorf("%v: %d, not %d", field, got, want)
		}
	}
	if q.Truth(expr.SSL) || q.missing {
		t.Error("TLS, or something missing")
	}
	x.In.Scheme, x.In.TLS, x.In.Peer = "https", new(tls.ConnectionState), netip.MustParseAddr("::ffff:198.51.100.7")
	if !q.Truth(expr.SSL) || q.Address(expr.Peer) != netip.MustParseAddr("198.51.100.7") || q.Address(expr.Source) != netip.MustParseAddr("192.0.2.1") {
		t.Error("TLS or addresses")
	}
	x.In.Handshake = &exchange.Handshake{JA4: "t13d1516h2_8daaf6152771_e5627efa2ab1"}
	if got := q.Text(expr.JA4, ""); got != x.In.Handshake.JA4 {
		t.Errorf("JA4: %q", got)
	}
	for version, of := range map[string][2]int{"HTTP/1.0": {1, 0}, "HTTP/1.1": {1, 1}, "HTTP/2.0": {2, 0}, "HTTP/3.0": {3, 0}} {
		if got := versionOf(of[0], of[1]); got != version {
			t.Errorf("%v: %s", of, got)
		}
	}
}

func TestCookiesAndParametersAsTheyWereSent(t *testing.T) {
	for _, c := range []struct{ sent, name, cookie, argument string }{
		{"a=1", "a", "1", "1"},
		{"aa=1; a=2", "a", "2", ""},
		{"xa=1;\ta=2;a=3", "a", "2", ""},
		{"x a=1", "a", "", ""},
		{"x=a=1; a=2", "a", "2", ""},
		{"a; a=2", "a", "2", ""},
		{"a=  1 2\t ;", "a", "  1 2", "  1 2\t ;"},
		{"a =1", "a", "", ""},
		{"a=", "a", "", ""},
		{"b=1&a", "a", "", ""},
		{"b=a&a=2&a=3", "a", "", "2"},
		{"aa&a=1", "a", "", "1"},
		{"x&a&a=1", "a", "", ""},
		{"&&=1&a=", "a", "", ""},
		{"aaaa=1&aaa=2", "aaa", "", "2"},
		{"", "a", "", ""},
	} {
		if got := cookieOf([]string{c.sent}, c.name); got != c.cookie {
			t.Errorf("cookie %s of %q: %q, not %q", c.name, c.sent, got, c.cookie)
		}
		if got := argumentOf(c.sent, c.name); got != c.argument {
			t.Errorf("parameter %s of %q: %q, not %q", c.name, c.sent, got, c.argument)
		}
	}
}

func TestExtensions(t *testing.T) {
	for path, want := range map[string]string{
		"/": "", "/a": "", "/a.B": "b", "/a.b/c": "", "/a.": "", "/.htaccess": "htaccess", "/a.tar.GZ": "gz", "/a.Ü": "Ü",
	} {
		if got := extensionOf(path); got != want {
			t.Errorf("%s: %q", path, got)
		}
	}
}

// Header actions are seen by rules after them, in whichever way they ask.
func TestRulesSeeHeaderActions(t *testing.T) {
	set := func(name, value string) *configv1.HeaderAction {
		return &configv1.HeaderAction{Name: name, Value: textOf(value)}
	}
	seen := func(name string, n ruletest.Node) *configv1.Rule {
		return ruletest.In(origin, always(&configv1.HeaderAction{Name: name, Value: computed(n)}))
	}
	two := ruletest.Field("http.request.headers[x-two]")
	s := newRules(t, ruletest.Site(
		// Joined before it changes, and after.
		when(ruletest.Eq("http.request.headers[x-two]", "1, 2"), set("x-two", "3")),
		always(set("referer", "r2")), always(set("user-agent", "u2")), always(&configv1.HeaderAction{Name: "accept"}),
		seen("x-1", two), seen("x-2", ruletest.Field("http.referer")), seen("x-3", ruletest.Field("http.user_agent")),
		seen("x-4", ruletest.Field("http.request.headers[accept]"))))
	x, _ := s.ask(t, "GET", "/", with("X-Two", "1"), with("X-Two", "2"), with("Referer", "r"), with("User-Agent", "u"), with("Accept", "a"))
	got := http.Header{}
	for _, edit := range x.Out.Edits {
		got[edit.Name] = edit.Values
	}
	for name, want := range map[string]string{"X-1": "3", "X-2": "r2", "X-3": "u2", "X-4": "", "X-Two": "3"} {
		if got.Get(name) != want {
			t.Errorf("%s: %q", name, got[name])
		}
	}
	if values, there := got["Accept"]; !there || len(values) != 0 {
		t.Errorf("removed: %q", values)
	}
}

// Only a request whose evaluation asks for what is not there fails; and it fails whatever the answer would have meant.
func TestMissingDataRefusesThoseWhoNeedIt(t *testing.T) {
	block := &configv1.BlockAction{Status: 403}
	office := ruletest.InList("ip.src", "office")
	for _, c := range []struct {
		name      string
		condition ruletest.Node
		lists     fakeLists
		geo       bool
		code      string
	}{
		{"on the list", office, fakeLists{"office": {netip.MustParsePrefix("192.0.2.0/24")}}, true, "policy-denied"},
		{"not on the list", office, fakeLists{"office": nil}, true, ""},
		{"not whole", office, fakeLists{}, true, "policy-unavailable"},
		{"not whole, and not on it", ruletest.Not(office), fakeLists{}, true, "policy-unavailable"},
		{"not asked for", ruletest.And(ruletest.Eq("http.host", "b.com"), office), fakeLists{}, false, ""},
		{"country", ruletest.Eq("ip.geoip.country", "DE"), nil, true, "policy-denied"},
		{"another country", ruletest.Eq("ip.geoip.country", "FR"), nil, true, ""},
		{"no database", ruletest.Eq("ip.geoip.country", "FR"), nil, false, "policy-unavailable"},
		{"no database of systems", ruletest.Not(ruletest.Eq("ip.geoip.asnum", 1)), nil, false, "policy-unavailable"},
		{"system", ruletest.Eq("ip.geoip.as_name", "Example"), nil, true, "policy-denied"},
	} {
		s := newRules(t, ruletest.Site(when(c.condition, block)))
		s.rules.geo = fakeGeo{c.geo}
		if c.lists != nil {
			s.rules.lists = c.lists
		}
		for range 2 {
			_, a := s.ask(t, "GET", "/")
			if got := ""; a != nil && a.Code != c.code || a == nil && got != c.code {
				t.Errorf("%s: %+v", c.name, a)
			}
		}
	}
	// Nobody in the program can tell.
	s := newRules(t, ruletest.Site(when(ruletest.Or(office, ruletest.Eq("ip.geoip.country", "")), block)))
	if _, a := s.ask(t, "GET", "/"); a == nil || a.Code != "policy-unavailable" {
		t.Errorf("%+v", a)
	}
}

// Rules that do not match allocate nothing, however many they are and whatever they read.
func TestRulesThatDoNotMatchAllocateNothing(t *testing.T) {
	fields := []string{
		"http.host", "http.request.method", "http.request.uri.path", "http.request.uri.path.extension", "http.request.uri.query",
		"http.request.uri", "http.request.headers[x-two]", "http.request.cookies[a]", "http.request.uri.args[b]", "http.referer",
		"http.user_agent", "http.request.version", "http.request.scheme", "http.request.id", "ip.geoip.country", "ip.geoip.as_name",
	}
	actions := []any{
		&configv1.RewriteAction{Target: textOf("/x")}, &configv1.RedirectAction{Target: textOf("/x"), Status: 301},
		&configv1.BlockAction{Status: 403}, &configv1.OriginAction{Port: 1}, &configv1.ConfigAction{Gzip: on()},
		&configv1.RateLimitAction{Limit: 1, WindowSeconds: 1, Key: configv1.RateLimitKey_RATE_LIMIT_KEY_ADDRESS, Status: 429},
	}
	list := func(n int) (rules []*configv1.Rule) {
		for i := range n {
			condition := ruletest.Or(
				ruletest.Eq(fields[i%len(fields)], "nobody sends this"),
				ruletest.Compare(configv1.ExpressionOp_EXPRESSION_OP_CONTAINS, fields[(i+1)%len(fields)], "nobody sends this"),
				ruletest.Compare(configv1.ExpressionOp_EXPRESSION_OP_EQ, "ip.src", "198.51.100.0/24"),
				ruletest.InList("ip.src", "l"))
			if i%4 == 0 {
				condition = ruletest.Compare(configv1.ExpressionOp_EXPRESSION_OP_MATCHES, fields[i%len(fields)], "^nobody (sends|sent) this$")
			}
			rules = append(rules, when(condition, actions[i%len(actions)]))
		}
		return rules
	}
	s := newRules(t, ruletest.Site(list(64)...), ruletest.Platform(list(32)...), redirects(toNew("/1"), toNew("b.com/2")))
	s.rules.lists, s.rules.geo = fakeLists{"l": nil}, fakeGeo{true}
	x, _ := s.asked("GET", "/some/path.html?a=1&b=2&"+strings.Repeat("c=3&", 50), with("X-Two", "1"), with("Cookie", "x=1; y=2; a=3"),
		with("User-Agent", "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36"), with("Referer", "http://a.com/"))
	if n := testing.AllocsPerRun(100, func() { s.stage(x) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if x.HasDeferred() {
		t.Error("a rule matched")
	}
}

// What people ask for, in turn: a path, a method with a path, a browser, networks with a host, cookies and parameters, a
// pattern.
func usual(n int) ruletest.Node {
	contains := func(field, text string) ruletest.Node {
		return ruletest.Compare(configv1.ExpressionOp_EXPRESSION_OP_CONTAINS, field, text)
	}
	switch n % 6 {
	case 0:
		return ruletest.Compare(configv1.ExpressionOp_EXPRESSION_OP_MATCHES, "http.user_agent", "(^|[^a-z])(scanner|harvest)"+strconv.Itoa(n)+"/[0-9]+")
	case 1:
		return ruletest.Eq("http.request.uri.path", fmt.Sprint("/admin/", n))
	case 2:
		return ruletest.And(ruletest.Eq("http.request.method", "POST"), ruletest.Call("starts_with", ruletest.Field("http.request.uri.path"), "/api"))
	case 3:
		return ruletest.Or(contains("http.user_agent", fmt.Sprint("crawler-", n)), contains("http.referer", fmt.Sprint("spam-", n)))
	case 4:
		return ruletest.And(ruletest.Or(ruletest.Eq("ip.src", "198.51.100.0/24"), ruletest.Eq("ip.src", fmt.Sprintf("203.0.113.%d/32", n))), ruletest.Eq("http.host", "b.com"))
	}
	return ruletest.Or(ruletest.Eq(fmt.Sprintf("http.request.cookies[beta-%d]", n), "1"), ruletest.Eq("http.request.uri.args[preview]", fmt.Sprint(n)))
}

func BenchmarkRulesThatDoNotMatch(b *testing.B) {
	list := func(n int, condition func(int) ruletest.Node) (rules []*configv1.Rule) {
		for i := range n {
			rules = append(rules, when(condition(i), &configv1.BlockAction{Status: 403}))
		}
		return rules
	}
	never := func(int) ruletest.Node {
		return ruletest.And(ruletest.Eq("http.request.method", "GET"), ruletest.Eq("http.request.uri.path", "/nothing"))
	}
	for name, s := range map[string]*rulesOf{
		"none":     newRules(b),
		"redirect": newRules(b, redirects(toNew("/1"), toNew("b.com/2"))),
		"96":       newRules(b, ruletest.Site(list(64, never)...), ruletest.Platform(list(32, never)...)),
		"usual":    newRules(b, ruletest.Site(list(64, usual)...), ruletest.Platform(list(32, usual)...)),
	} {
		x, _ := s.asked("GET", "/shop/items/123456?utm_source=bench&page=2&sort=price", with("Referer", "https://www.example.com/shop/"),
			with("User-Agent", "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Safari/537.36"),
			with("Cookie", "session=0123456789abcdef0123456789abcdef; theme=dark; consent=1"))
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s.stage(x)
			}
		})
	}
}
