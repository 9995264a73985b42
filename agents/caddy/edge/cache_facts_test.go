package edge

import (
	"testing"

	configv1 "edge.svc/caddy/gen/svc/config/v1"
	"edge.svc/caddy/internal/edgetest"
	"edge.svc/caddy/internal/ruletest"
)

func TestResponseRulesSeeTheCacheStatus(t *testing.T) {
	e := newCachingEdge(t, func(*configv1.SiteCache) {})
	var rules []*configv1.Rule
	for _, word := range []string{"HIT", "MISS", "BYPASS", ""} {
		rules = append(rules, ruletest.WhenAnswered(ruletest.Eq("http.response.cache_status", word),
			&configv1.HeaderAction{Name: "x-seen", Value: ruletest.Text("saw " + word)}))
	}
	e.change(t, edgetest.Entry("site-rules", "a", ruletest.Site(rules...)))
	e.respond(says("hello"))
	e.stored("/x")
	for _, c := range []struct{ method, target, word string }{
		{"GET", "/x", "HIT"}, {"HEAD", "/x", "HIT"}, {"GET", "/y", "MISS"}, {"POST", "/x", "BYPASS"},
	} {
		if w, word := e.get(c.method, c.target); word != c.word || w.Header().Get("X-Seen") != "saw "+c.word {
			t.Errorf("%s %s: %s, the rule %q", c.method, c.target, word, w.Header().Get("X-Seen"))
		}
	}
}

// With the query left out of the key, an attack asks for what is stored.
func TestTheWAFInspectsRequestsForStoredResponses(t *testing.T) {
	e := newCachingEdge(t, func(s *configv1.SiteCache) {
		s.Key = &configv1.CacheKey{Query: configv1.CacheQuery_CACHE_QUERY_IGNORE}
	})
	e.change(t, edgetest.Entry("site-waf", "a", wafSettings(block, sameWAF)))
	e.respond(says("hello"))
	browser := []string{"User-Agent: Mozilla/5.0", "Accept: */*"}
	e.stored("/", browser...)
	asked := e.asked.Load()
	if w, word := e.get("GET", attackOnSQL, browser...); w.Code != 403 || word != "" || w.Header().Get("X-Svc-Error") != "waf-blocked" {
		t.Error(w.Code, word, w.Header())
	}
	if w, word := e.get("GET", "/?q=1", browser...); word != "HIT" || w.Body.String() != "hello" || e.asked.Load() != asked {
		t.Error("after an attack:", word, w.Body)
	}
}

func TestChallengesNeitherFillTheCacheNorLetItRespond(t *testing.T) {
	e := newCachingEdge(t, func(*configv1.SiteCache) {})
	e.setKeys(t)
	e.respond(says("hello"))
	e.stored("/x")
	e.change(t, siteProtection(js))
	asked := e.asked.Load()
	for _, target := range []string{"/x", "/new", "/new"} {
		if w, word := e.get("GET", target); challengeOf(w) != "js" || word != "" || w.Header().Get("Cache-Control") != "no-store, private" {
			t.Error(target, challengeOf(w), word, w.Header())
		}
	}
	if e.asked.Load() != asked {
		t.Error("a challenged request reached the origin")
	}
	e.change(t, siteProtection(calm))
	for target, want := range map[string]string{"/x": "HIT", "/new": "MISS"} {
		if w, word := e.get("GET", target); word != want || w.Body.String() != "hello" {
			t.Error(target, word, w.Body)
		}
	}
}
