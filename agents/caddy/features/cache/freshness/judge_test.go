package freshness

import (
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"
)

var now = time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)

func stamp(d time.Duration) string { return now.Add(d).Format(http.TimeFormat) }

// fields makes a header of lines "Name: value".
func fields(lines ...string) http.Header {
	h := http.Header{}
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ": ")
		h.Add(name, value)
	}
	return h
}

var rule = Policy{TTL: 3600 * s}

func TestWhatIsStoredAndForHowLong(t *testing.T) {
	tagged := `Etag: "a"`
	override := Policy{Override: true, TTL: 60 * s}
	listed := Policy{TTL: 3600 * s, HasStatuses: true}
	authorized := Policy{TTL: 3600 * s, Authorized: true}
	stale := Policy{TTL: 3600 * s, StaleWhileRevalidate: 5 * s, StaleIfError: 7 * s}
	for _, c := range []struct {
		says             string
		policy           Policy
		status           int
		request, headers http.Header
		reason           Reason
		lifetime         time.Duration
	}{
		{"§2.6 respect: the TTL of the rule if the origin sent neither Cache-Control nor Expires", rule, 200, nil, nil, Stored, 3600 * s},
		{"§2.6: Cache-Control without a lifetime is not cached", rule, 200, nil, fields("Cache-Control: public"), ByNoLifetime, 0},
		{"§2.6: cacheable statuses without a list", rule, 404, nil, nil, ByStatus, 0},
		{"§2.6: a list of statuses", listed, 404, nil, nil, Stored, 3600 * s},
		{"also with an explicit lifetime", rule, 404, nil, fields("Cache-Control: max-age=5"), ByStatus, 0},
		{"a list may have any final status", listed, 599, nil, fields("Cache-Control: max-age=5"), Stored, 5 * s},
		{"§2.6 override ignores no-store and private", override, 200, nil, fields("Cache-Control: no-store, private"), Stored, 60 * s},
		{"§2.6 override: statuses without a list", override, 404, nil, fields("Cache-Control: max-age=5"), ByStatus, 0},
		{"override without a TTL", Policy{Override: true}, 200, nil, nil, ByNoLifetime, 0},
		{"a TTL of 0", Policy{}, 200, nil, fields(tagged), ByNoLifetime, 0},
		{"RFC 9111 4.2.1: s-maxage before max-age", rule, 200, nil, fields("Cache-Control: max-age=5, s-maxage=7"), Stored, 7 * s},
		{"4.2.1: max-age before Expires", rule, 200, nil, fields("Cache-Control: max-age=5", "Expires: "+stamp(9*s)), Stored, 5 * s},
		{"4.2.1: Expires minus Date", rule, 200, nil, fields("Expires: "+stamp(9*s), "Date: "+stamp(-2*s)), Stored, 11 * s},
		{"Expires without Date", rule, 200, nil, fields("Expires: " + stamp(9*s)), Stored, 9 * s},
		{"5.3: an Expires that is not valid is of the past", rule, 200, nil, fields("Expires: 0"), ByNoValidator, 0},
		{"two of them", rule, 200, nil, fields("Expires: "+stamp(9*s), "Expires: "+stamp(9*s), tagged), Stored, 0},
		{"Expires beside a Cache-Control without a lifetime", rule, 200, nil, fields("Cache-Control: public", "Expires: "+stamp(9*s)), Stored, 9 * s},
		{"5.2.2.5: no-store", rule, 200, nil, fields("Cache-Control: max-age=5, no-store"), ByNoStore, 0},
		{"5.2.2.3: must-understand takes the effect of no-store away", rule, 200, nil, fields("Cache-Control: max-age=5, no-store, must-understand"), Stored, 5 * s},
		{"5.2.2.3: but not for a status that is not understood", listed, 299, nil, fields("Cache-Control: max-age=5, must-understand"), ByStatus, 0},
		{"5.2.2.7: private", rule, 200, nil, fields("Cache-Control: max-age=5, private"), ByPrivate, 0},
		{"5.2.2.7: private with fields", rule, 200, nil, fields(`Cache-Control: max-age=5, private="x-a"`), Stored, 5 * s},
		{"5.2.2.4: no-cache is stored with a validator", rule, 200, nil, fields("Cache-Control: no-cache", tagged), Stored, 0},
		{"but not without", rule, 200, nil, fields("Cache-Control: no-cache, max-age=5"), ByNoValidator, 0},
		{"max-age=0 with a validator", rule, 200, nil, fields("Cache-Control: max-age=0", tagged), Stored, 0},
		{"max-age=0 without", rule, 200, nil, fields("Cache-Control: max-age=0"), ByNoValidator, 0},
		{"max-age=0 with a time to be served stale", rule, 200, nil, fields("Cache-Control: max-age=0, stale-while-revalidate=9"), Stored, 0},
		{"SWR and SIE of a rule do nothing with TTL 0", stale, 200, nil, fields("Cache-Control: max-age=0"), ByNoValidator, 0},
		{"RFC 9213: CDN-Cache-Control alone counts", rule, 200, nil, fields("CDN-Cache-Control: max-age=9", "Cache-Control: no-store", "Expires: 0"), Stored, 9 * s},
		{"it forbids, too", rule, 200, nil, fields("CDN-Cache-Control: no-store", "Cache-Control: max-age=5"), ByNoStore, 0},
		{"one that is not valid does not count", rule, 200, nil, fields("CDN-Cache-Control: max-age=9,", "Cache-Control: max-age=5"), Stored, 5 * s},
		{"without a lifetime Expires does not count", rule, 200, nil, fields("CDN-Cache-Control: public", "Expires: "+stamp(9*s)), ByNoLifetime, 0},
		{"3.5: Authorization bypasses unless the flag", rule, 200, fields("Authorization: x"), fields("Cache-Control: public, max-age=5"), ByAuthorized, 0},
		{"3.5: with the flag the response must allow it", authorized, 200, fields("Authorization: x"), fields("Cache-Control: max-age=5"), ByAuthorized, 0},
		{"3.5: public", authorized, 200, fields("Authorization: x"), fields("Cache-Control: max-age=5, public"), Stored, 5 * s},
		{"3.5: must-revalidate", authorized, 200, fields("Authorization: x"), fields("Cache-Control: max-age=5, must-revalidate"), Stored, 5 * s},
		{"3.5: s-maxage", authorized, 200, fields("Authorization: x"), fields("Cache-Control: s-maxage=5"), Stored, 5 * s},
		{"the TTL of the rule does not allow it", authorized, 200, fields("Authorization: x"), nil, ByAuthorized, 0},
		{"override with the flag does", Policy{Override: true, TTL: s, Authorized: true}, 200, fields("Authorization: x"), nil, Stored, s},
		{"§2.6: Set-Cookie is never cached unless the flag", rule, 200, nil, fields("Set-Cookie: a=b", "Cache-Control: max-age=5"), BySetCookie, 0},
		{"also with override", override, 200, nil, fields("Set-Cookie: a=b"), BySetCookie, 0},
		{"the flag", Policy{TTL: s, SetCookie: true}, 200, nil, fields("Set-Cookie: a=b"), Stored, s},
		{"4.1: Vary * never matches", override, 200, nil, fields("Vary: a, *"), ByVary, 0},
		{"Vary is bounded", override, 200, nil, fields("Vary: a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q"), ByVary, 0},
		{"4.3.4: 304 is none to store", override, 304, nil, nil, ByStatus, 0},
	} {
		v := Judge("GET", c.request, c.status, c.headers, &c.policy, now)
		if v.Reason != c.reason || v.Lifetime != c.lifetime {
			t.Errorf("%s: %+v", c.says, v)
		}
	}
	if v := Judge("POST", nil, 200, fields("Cache-Control: max-age=5"), &rule, now); v.Store() {
		t.Error("a POST is stored")
	}
}

func TestHowLongAStoredResponseIsServedStale(t *testing.T) {
	p := Policy{TTL: 60 * s, StaleWhileRevalidate: 5 * s, StaleIfError: 7 * s}
	for _, c := range []struct {
		says, control string
		revalidate    time.Duration
		onError       time.Duration
	}{
		{"the rule's", "max-age=9", 5 * s, 7 * s},
		{"RFC 5861: the origin's", "max-age=9, stale-while-revalidate=1, stale-if-error=2", s, 2 * s},
		{"the origin's 0", "max-age=9, stale-while-revalidate=0, stale-if-error=0", 0, 0},
		{"RFC 9111 5.2.2.2: must-revalidate", "max-age=9, must-revalidate, stale-while-revalidate=1", 0, 0},
		{"5.2.2.8: proxy-revalidate", "max-age=9, proxy-revalidate", 0, 0},
		{"5.2.2.10: s-maxage forbids the rule's", "s-maxage=9", 0, 0},
		{"but not the origin's own", "s-maxage=9, stale-while-revalidate=1", s, 0},
	} {
		v := Judge("GET", nil, 200, fields("Cache-Control: "+c.control), &p, now)
		if !v.Store() || v.StaleWhileRevalidate != c.revalidate || v.StaleIfError != c.onError {
			t.Errorf("%s: %+v", c.says, v)
		}
	}
	p.Override = true
	if v := Judge("GET", nil, 200, fields("Cache-Control: must-revalidate"), &p, now); v.StaleIfError != 7*s {
		t.Errorf("override: %+v", v)
	}
}

func TestUseOfAStoredResponse(t *testing.T) {
	held := Held{InitialAge: 10 * s, Received: now, Lifetime: 60 * s, StaleWhileRevalidate: 5 * s, StaleIfError: 20 * s}
	for _, c := range []struct {
		after time.Duration
		use   Use
		error bool
	}{{0, Fresh, true}, {49 * s, Fresh, true}, {50 * s, StaleWhileValidating, true}, {55 * s, Validate, true}, {70 * s, Validate, false}} {
		use, age := held.Use(now.Add(c.after))
		if use != c.use || age != 10*s+c.after || held.StaleOnError(now.Add(c.after)) != c.error {
			t.Errorf("after %v: %v, age %v", c.after, use, age)
		}
	}
	held.NoCache = true
	if use, _ := held.Use(now); use != Validate || held.StaleOnError(now) {
		t.Error("no-cache is used without a validation")
	}
	for says, c := range map[string]struct {
		header http.Header
		want   time.Duration
	}{
		"the field and the time of the request": {fields("Age: 5"), 7 * s},
		"the time since Date":                   {fields("Age: 5", "Date: "+stamp(-30*s)), 30 * s},
		"a Date of the future":                  {fields("Date: " + stamp(30*s)), 2 * s},
	} {
		if got := InitialAge(c.header, now.Add(-2*s), now); got != c.want {
			t.Errorf("4.2.3, %s: %v", says, got)
		}
	}
}

func TestDirectivesOfRequestsThatAreHonored(t *testing.T) {
	held := Held{Received: now, Lifetime: 60 * s}
	for _, c := range []struct {
		control string
		age     time.Duration
		want    Use
	}{
		{"max-age=10", 10 * s, Fresh}, {"max-age=10", 11 * s, Validate}, {"no-cache", 0, Validate}, {"min-fresh=10", 50 * s, Fresh},
		{"min-fresh=11", 50 * s, Validate}, {"max-stale=5", 65 * s, Fresh}, {"max-stale=5", 66 * s, Validate}, {"max-stale", 9999 * s, Fresh},
	} {
		w := WishOf(fields("Cache-Control: " + c.control))
		use, age := held.Use(now.Add(c.age))
		if got := w.Accepts(use, age, &held, false); got != c.want {
			t.Errorf("%s at the age %v: %v", c.control, c.age, got)
		}
	}
	w := WishOf(fields("Cache-Control: max-stale"))
	if w.Accepts(Validate, 99*s, &held, true) != Validate {
		t.Error("max-stale wins over must-revalidate")
	}
	if w := WishOf(fields("Pragma: No-Cache")); !w.NoCache {
		t.Error("5.4: Pragma without Cache-Control")
	}
	if w := WishOf(fields("Pragma: no-cache", "Cache-Control: max-age=9")); w.NoCache {
		t.Error("5.4: Pragma beside Cache-Control")
	}
}

func TestVaryMatchesByRFC9111Section41(t *testing.T) {
	names := VaryNames(fields("Vary: B, a", "Vary: A"))
	if !reflect.DeepEqual(names, []string{"A", "B"}) {
		t.Fatal(names)
	}
	variant := func(lines ...string) string {
		h := fields(lines...)
		return string(AppendVariant(nil, names, func(name string) []string { return h[name] }))
	}
	if variant("A: 1, 2") != variant("A: 1", "A:  2 ") {
		t.Error("lines and white space matter")
	}
	for _, other := range []string{variant("A: 1", "B: 2"), variant("B: 1"), variant("A: "), variant(), variant("A: 12")} {
		if other == variant("A: 1, 2") || other == variant("A: 1") {
			t.Errorf("%q matches", other)
		}
	}
}
