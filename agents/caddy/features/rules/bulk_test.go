package rules

import (
	"fmt"
	"strings"
	"testing"

	configv1 "edge.svc/caddy/gen/svc/config/v1"
	"edge.svc/caddy/internal/edgetest"
	"edge.svc/caddy/internal/ruletest"
)

func toNew(source string) *configv1.BulkRedirect {
	return &configv1.BulkRedirect{Source: source, Target: "/new", Status: 301}
}

func redirects(list ...*configv1.BulkRedirect) *configv1.BulkRedirects {
	return &configv1.BulkRedirects{SiteId: "a", Redirects: list}
}

// The client's own host and path decide, the host's redirect before that of all hosts.
func TestBulkRedirects(t *testing.T) {
	s := newRules(t, redirects(
		&configv1.BulkRedirect{Source: "/a", Target: "/of-all-hosts", Status: 302},
		&configv1.BulkRedirect{Source: "a.com/a", Target: "/of-this-host?x#f", Status: 301, PreserveQuery: true},
		&configv1.BulkRedirect{Source: "b.com/a", Target: "/of-another-host", Status: 301},
		&configv1.BulkRedirect{Source: "/b c", Target: "https://b.com/", Status: 308},
		toNew("/c/"), toNew("/"+strings.Repeat("x", 511))))
	for asked, want := range map[string]string{
		"/a?y=1":                        "301 /of-this-host?x&y=1#f",
		"/./a":                          "301 /of-this-host?x#f",
		"/%61":                          "301 /of-this-host?x#f",
		"/b%20c?d":                      "308 https://b.com/",
		"/c/":                           "301 /new",
		"/c":                            "",
		"/A":                            "",
		"/" + strings.Repeat("x", 511):  "301 /new",
		"/" + strings.Repeat("x", 512):  "",
		"/" + strings.Repeat("x", 6000): "",
	} {
		got := ""
		if _, a := s.ask(t, "GET", asked); a != nil {
			got = fmt.Sprint(a.Status, " ", a.Header.Get("Location"))
		}
		if got != want {
			t.Errorf("%.20s: %q, not %q", asked, got, want)
		}
	}
	// They come after the redirect rules of both scopes and see no rewrite.
	s.change(t, ruletest.Platform(
		always(&configv1.RewriteAction{Target: textOf("/a")}),
		when(ruletest.Eq("http.request.uri", "/a"), &configv1.RedirectAction{Target: textOf("/rule"), Status: 302})))
	for asked, want := range map[string]string{"/a": "/rule", "/z": "", "/c/": "/new"} {
		_, a := s.ask(t, "GET", asked)
		if got := a != nil; got != (want != "") || got && a.Header.Get("Location") != want {
			t.Errorf("%s: %+v", asked, a)
		}
	}
}

// Entries change apart from one another, and what moved between them is there once, whichever comes first.
func TestChunksOfBulkRedirects(t *testing.T) {
	s := newRules(t)
	chunk := func(n int, sources ...string) *configv1.Entry {
		var list []*configv1.BulkRedirect
		for _, source := range sources {
			list = append(list, toNew(source))
		}
		return edgetest.Entry("bulk-redirects", fmt.Sprint("a/", n), redirects(list...))
	}
	expect := func(step, sources string) {
		t.Helper()
		var found []string
		for _, source := range []string{"/1", "/2", "/3", "/4"} {
			if _, a := s.ask(t, "GET", source); a != nil {
				found = append(found, source)
			}
		}
		if got := strings.Join(found, " "); got != sources {
			t.Errorf("%s: %s, not %s", step, got, sources)
		}
	}
	change := func(upserts ...*configv1.Entry) {
		t.Helper()
		if failed := edgetest.Change(t, s.core, upserts); len(failed) > 0 {
			t.Fatal(failed)
		}
	}
	change(chunk(0, "/1", "/2"), chunk(255, "/3"))
	expect("two entries", "/1 /2 /3")
	before := bulkRedirects.Of(s.core.Tables())
	change(chunk(0, "/2"))
	expect("one goes", "/2 /3")
	if before.of("a").find("a.com", "/1") == nil {
		t.Error("a version that requests may hold was changed")
	}
	change(chunk(255, "/2", "/3"), chunk(0, "/4"))
	expect("one moves, and is new first", "/2 /3 /4")
	change(chunk(255, "/3"), chunk(0, "/2", "/4"))
	expect("it moves back, and is gone first", "/2 /3 /4")
	edgetest.Change(t, s.core, nil, edgetest.Key("bulk-redirects", "a/0"))
	expect("an entry goes", "/3")
	edgetest.Change(t, s.core, nil, edgetest.Key("bulk-redirects", "a/255"))
	expect("the last goes", "")
	if bulkRedirects.Of(s.core.Tables()) != nil {
		t.Error("something is left of no redirects")
	}
	// Those of a site that is not there yet wait for it.
	other := edgetest.Entry("bulk-redirects", "b/0", &configv1.BulkRedirects{SiteId: "b", Redirects: []*configv1.BulkRedirect{toNew("/1")}})
	change(other)
	expect("of another site", "")
}

func TestBulkRedirectsThatCannotBe(t *testing.T) {
	for name, list := range map[string]*configv1.BulkRedirects{
		"no path":               redirects(toNew("a.com")),
		"no source":             redirects(toNew("")),
		"a path with dots":      redirects(toNew("/a/../b")),
		"a host in capitals":    redirects(toNew("A.com/")),
		"a host that is none":   redirects(toNew("a b/")),
		"a host with a port":    redirects(toNew("a.com:80/")),
		"a long source":         redirects(toNew("/" + strings.Repeat("x", 512))),
		"twice":                 redirects(toNew("/a"), toNew("/a")),
		"a target that is none": redirects(&configv1.BulkRedirect{Source: "/a", Target: "x", Status: 301}),
		"a long target":         redirects(&configv1.BulkRedirect{Source: "/a", Target: "/" + strings.Repeat("x", 1024), Status: 301}),
		"a status of none":      redirects(&configv1.BulkRedirect{Source: "/a", Target: "/", Status: 303}),
		"too many":              redirects(make([]*configv1.BulkRedirect, 5001)...),
	} {
		if reasons := newRules(t).try(t, list); len(reasons) != 1 {
			t.Errorf("%s: %q", name, reasons)
		}
	}
	for _, id := range []string{"", "a", "a/", "a/256", "a/-1", "a/00", "a/x", "b/0", "/0"} {
		if failed := edgetest.Change(t, newRules(t).core, []*configv1.Entry{edgetest.Entry("bulk-redirects", id, redirects(toNew("/a")))}); len(failed) != 1 {
			t.Errorf("id %q: %v", id, failed)
		}
	}
}

// One of 5,000 that changes leaves all others where they are.
func TestOneRedirectOfManyChangesAlone(t *testing.T) {
	chunkOf := func(n int, target string) *configv1.Entry {
		var list []*configv1.BulkRedirect
		for i := range 20 {
			one := toNew(fmt.Sprintf("/%d/%d", n, i))
			if n == 7 && i == 3 {
				one.Target = target
			}
			list = append(list, one)
		}
		return edgetest.Entry("bulk-redirects", fmt.Sprint("a/", n), redirects(list...))
	}
	s := newRules(t)
	var all []*configv1.Entry
	for n := range 250 {
		all = append(all, chunkOf(n, "/new"))
	}
	edgetest.Change(t, s.core, all)
	before := bulkRedirects.Of(s.core.Tables()).of("a")
	edgetest.Change(t, s.core, []*configv1.Entry{chunkOf(7, "/newer")})
	after := bulkRedirects.Of(s.core.Tables()).of("a")
	changed := 0
	for source, to := range after.All {
		if was, _ := before.Get(source); was != to {
			changed++
			if source != "/7/3" || to.target != "/newer" || was.target != "/new" {
				t.Errorf("%s leads to %s, not %s", source, to.target, was.target)
			}
		}
	}
	if changed != 1 || after.Len() != 5000 {
		t.Errorf("%d of %d changed", changed, after.Len())
	}
}
