package cache

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"edge.svc/caddy/exchange"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
)

// keyOf is the key of a request of a site whose key has the header X-Key and the cookie lang. Two parts that are "-" are missing.
func keyOf(t testing.TB, path, query, header, cookie, claim string) (text string, ok bool) {
	k, err := compileKey(&configv1.CacheKey{Headers: []string{"x-key"}, Cookies: []string{"lang"}})
	if err != nil {
		t.Fatal(err)
	}
	raw := path
	if query != "-" {
		raw += "?" + query
	} else {
		query = ""
	}
	x := &exchange.Exchange{}
	x.Plan = &exchange.Plan{SiteID: "a"}
	x.In = exchange.Inbound{Scheme: "http", Host: "a.com", Target: exchange.Target{Raw: raw, Query: query}, Header: http.Header{}}
	for name, value := range map[string]string{"X-Key": header, "X-Host": claim} {
		if value != "-" {
			x.In.Header[name] = []string{value}
		}
	}
	if cookie != "-" {
		x.In.Header["Cookie"] = []string{"lang=" + cookie}
	}
	key, ok := k.of(x)
	return key.text, ok
}

// plainText reports whether a server of HTTP lets a text through as a part of a target or a field.
func plainText(text string, target bool) bool {
	for i := range len(text) {
		if c := text[i]; c < 0x20 && c != '\t' || c == 0x7f || target && (c == ' ' || c == '?' || c == '#' || c == '\t') {
			return false
		}
	}
	return target || strings.Trim(text, " \t") == text
}

// No part of a key can imitate another: requests that differ in what the key has differ in the key.
func FuzzKey(f *testing.F) {
	for _, texts := range [][]string{
		{"/", "-", "-", "-", "-"}, {"/x", "a=1", "1", "en", "b.com"}, {"/xq1:a", "", "n", "nm", "m"}, {"/xq0:h1:1", "q1:a", "h1:1", "c2:en", "x6:X-Host"},
		{"/|", "p1:/", "1c2:en", "v1:a", "1"}, {"/%00", "%00", "\xff", "\xff", "\xff"},
	} {
		for _, other := range [][]string{{"/x", "-", "-", "-", "-"}, {"/", "q0:", "c1:1", "1n", "n"}} {
			f.Add(texts[0], texts[1], texts[2], texts[3], texts[4], other[0], other[1], other[2], other[3], other[4])
		}
	}
	f.Fuzz(func(t *testing.T, p1, q1, h1, c1, x1, p2, q2, h2, c2, x2 string) {
		a, b := []string{p1, q1, h1, c1, x1}, []string{p2, q2, h2, c2, x2}
		for _, texts := range [][]string{a, b} {
			for i, text := range texts {
				if !plainText(text, i < 2) || i == 3 && strings.ContainsAny(text, ";,") {
					return
				}
			}
			// An empty query is none.
			if texts[1] == "-" {
				texts[1] = ""
			}
		}
		first, ok := keyOf(t, a[0], a[1], a[2], a[3], a[4])
		second, ok2 := keyOf(t, b[0], b[1], b[2], b[3], b[4])
		if ok && ok2 && (first == second) != slices.Equal(a, b) {
			t.Errorf("%q and %q have the keys %q and %q", a, b, first, second)
		}
	})
}

func TestAParameterDoesNotHideInAnother(t *testing.T) {
	for _, c := range []struct {
		query      configv1.CacheQuery
		text, want string
	}{
		{configv1.CacheQuery_CACHE_QUERY_INCLUDE, "x=1&a=2", "a=2"},
		{configv1.CacheQuery_CACHE_QUERY_INCLUDE, "x=1;a=2", "x=1;a=2"},
		{configv1.CacheQuery_CACHE_QUERY_INCLUDE, "%61=2&b=1", "%61=2"},
		{configv1.CacheQuery_CACHE_QUERY_EXCLUDE, "a=1;b=2&c=3", "a=1;b=2&c=3"},
		{configv1.CacheQuery_CACHE_QUERY_EXCLUDE, "a=1&b=2&%61=3", "b=2"},
	} {
		k, err := compileKey(&configv1.CacheKey{Query: c.query, QueryParams: []string{"a"}})
		if got := k.QueryOf(c.text); err != nil || got != c.want {
			t.Errorf("%v %q: %q %v", c.query, c.text, got, err)
		}
	}
}
