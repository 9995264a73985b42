package rules

import (
	"net/url"
	"testing"

	"edge.svc/caddy/exchange"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
	"edge.svc/caddy/internal/ruletest"
)

// What comes of a decoded path into a target is percent-encoded, through every function that keeps it (RFC 3986, sections 2.4
// and 3.3). What is written in the rule, and what other fields have, is not.
func TestDecodedPathsAreEncodedInTargets(t *testing.T) {
	path, raw := ruletest.Field("http.request.uri.path"), ruletest.Field("raw.http.request.uri.path")
	call := ruletest.Call
	noSlash := call("regex_replace", path, "^(.*)/$", "${1}")
	for _, c := range []struct {
		name              string
		value             ruletest.Node
		asked             string
		redirect, rewrite string
	}{
		{"a blank", noSlash, "/t/a%20b/", "/t/a%20b", "/t/a%20b"},
		{"a question mark", noSlash, "/t/a%3Fb/", "/t/a%3Fb", "/t/a%3Fb"},
		{"a percent sign", noSlash, "/t/a%25b/", "/t/a%25b", "/t/a%25b"},
		{"an encoded percent sign", noSlash, "/t/a%252Fb/", "/t/a%252Fb", "/t/a%252Fb"},
		{"a hash", noSlash, "/t/a%23b/", "/t/a%23b", "/t/a%23b"},
		{"Chinese", noSlash, "/t/%E4%B8%AD%E6%96%87/", "/t/%E4%B8%AD%E6%96%87", "/t/%E4%B8%AD%E6%96%87"},
		{"a quotation mark", noSlash, "/t/a%22b/", "/t/a%22b", "/t/a%22b"},
		{"a backslash", noSlash, "/t/a%5Cb/", "/t/a%5Cb", "/t/a%5Cb"},
		{"ends of lines", noSlash, "/t/a%0D%0AX:%20y/", "/t/a%0D%0AX:%20y/", "/t/a%0D%0AX:%20y/"},
		{"ends of lines, kept", call("concat", path, "x"), "/t/a%0D%0Ab/", "/t/a%0D%0Ab/x", "/t/a%0D%0Ab/x"},
		{"a byte that is no UTF-8", noSlash, "/t/a%FFb/", "/t/a%FFb", "/t/a%FFb"},
		{"sub-delimiters", noSlash, "/t/a%2Bb&c=d;e,f/", "/t/a+b&c=d;e,f", "/t/a+b&c=d;e,f"},
		{"a slash that was encoded", noSlash, "/t/a%2Fb/", "/t/a/b", "/t/a/b"},
		{"a slash that was encoded, of the raw path", call("regex_replace", raw, "^/t/(.*)$", "/n/${1}"), "/t/a%2Fb%20c", "/n/a%2Fb%20c", "/n/a%2Fb%20c"},
		{"the path alone", path, "/a%20b", "/a%20b", "/a%20b"},
		{"the raw path alone", raw, "/a%2fb%E4?c", "/a%2fb%E4", "/a%2fb%E4"},
		{"lower", call("lower", path), "/A%20%3F", "/a%20%3F", "/a%20%3F"},
		{"upper", call("upper", path), "/a%20%3F", "/A%20%3F", "/A%20%3F"},
		{"to_string", call("to_string", path), "/a%20b", "/a%20b", "/a%20b"},
		{"substring", call("substring", path, 2), "/t/a%20b", "/a%20b", "/a%20b"},
		{"a wildcard", call("wildcard_replace", path, "/t/*", "/n/${1}"), "/t/a%3Fb%25", "/n/a%3Fb%25", "/n/a%3Fb%25"},
		{"a wildcard that does not match", call("wildcard_replace", path, "/x/*", "/n/${1}"), "/t/a%3Fb", "/t/a%3Fb", "/t/a%3Fb"},
		{"url_encode", call("concat", "/", call("url_encode", path)), "/a%20b", "/%2Fa%20b", "/%252Fa%2520b"},
		{"url_decode", call("url_decode", path), "/a%2520%253Fb", "/a%20%3Fb", "/a%20%3Fb"},
		{"functions in functions", call("concat", call("lower", call("substring", path, 0, 4)), call("substring", path, 4)), "/A%20B%3F", "/a%20b%3F", "/a%20b%3F"},
		{"another host", call("concat", "https://b.com", path), "/a%20b%3Fc%23", "https://b.com/a%20b%3Fc%23", ""},
		{"what is written", call("concat", "/n", path, "?x=1#f"), "/a%3Fb", "/n/a%3Fb?x=1#f", "/n/a%3Fb%3Fx=1%23f"},
		{"a replacement that is written", call("regex_replace", path, "^/t/", "/n?p="), "/t/a%26b%3Dc%2B", "/n?p=a%26b%3Dc%2B", "/n%3Fp=a&b=c+"},
		{"a value in a query", call("concat", "/login?next=", path), "/a%20b&c=d;e+%C3%A9", "/login?next=/a%20b%26c%3Dd%3Be%2B%C3%A9", "/login%3Fnext=/a%20b&c=d;e+%C3%A9"},
		{"a fragment", call("concat", "/a?b#", path), "/x&y", "/a?b#/x&y", "/a%3Fb%23/x&y"},
		{"the extension", call("concat", "/x.", ruletest.Field("http.request.uri.path.extension")), "/a.j%20s", "/x.j%20s", "/x.j%20s"},
		{"a host of a path", call("concat", "https://", call("substring", path, 1)), "/user:pass@b.com/x", "", ""},
		{"two slashes in front", call("regex_replace", path, "^/t", "/"), "/t/b.com", "", ""},
		{"another field", call("concat", "/x?", ruletest.Field("http.request.uri.query")), "/?a=b%20c&d", "/x?a=b%20c&d", "/x%3Fa=b%2520c&d"},
	} {
		s := newRules(t, ruletest.Site(always(&configv1.RedirectAction{Target: ruletest.Computed(c.value), Status: 302, Query: &configv1.QueryEdit{}})))
		_, answer := s.ask(t, "GET", c.asked)
		if got := answer.Header.Get("Location"); got != c.redirect || (got == "") != (answer.Status == 503) {
			t.Errorf("%s: %d, redirected to %q, not %q", c.name, answer.Status, got, c.redirect)
		}
		s = newRules(t, ruletest.Site(always(&configv1.RewriteAction{Target: ruletest.Computed(c.value)})))
		x, answer := s.ask(t, "GET", c.asked)
		got := ""
		if answer == nil {
			got = x.Target().Raw
		}
		if got != c.rewrite || got != "" && x.Target().Canonical != exchange.CanonicalPath(unescape(t, got)) {
			t.Errorf("%s: rewritten to %q, not %q", c.name, got, c.rewrite)
		}
	}
}

// A rewritten path is encoded once, whatever reads it afterwards.
func TestRewrittenPathsAreReadOnce(t *testing.T) {
	s := newRules(t, ruletest.Site(
		always(&configv1.RewriteAction{Target: ruletest.Computed(ruletest.Call("concat", "/a b", ruletest.Field("raw.http.request.uri.path")))}),
		always(&configv1.RewriteAction{Target: ruletest.Computed(ruletest.Call("concat", "/%", ruletest.Field("raw.http.request.uri.path")))})))
	x, _ := s.ask(t, "GET", "/x%2Fy%20z?q")
	if got := x.Target(); got.Raw != "/%25/a%20b/x%2Fy%20z" || got.Canonical != "/%/a b/x/y z" {
		t.Errorf("%+v", got)
	}
}

func unescape(t *testing.T, path string) string {
	t.Helper()
	decoded, err := url.PathUnescape(path)
	if err != nil {
		t.Fatal(err)
	}
	return decoded
}
