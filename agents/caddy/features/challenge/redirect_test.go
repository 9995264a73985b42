package challenge

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

func TestCookie302LeadsBackWithAPass(t *testing.T) {
	for _, target := range []string{"/", "/a%2fb/../c;d?e=%zz;f&g=//h", "/?", "/%E4%BD%A0", "/" + strings.Repeat("x", 5000)} {
		n := newNode(t)
		w, admitted := n.admit("GET", target, Demand{Level: Cookie302})
		if admitted || w.Code != http.StatusFound || w.Header().Get("Location") != target || w.Header().Get("X-Svc-Challenge") != "cookie302" ||
			w.Header().Get("Cache-Control") != "no-store, private" || w.Body.Len() != 0 {
			t.Fatalf("%q: %d %v", target, w.Code, w.Header())
		}
		if !n.keep(w) || !n.passes(Cookie302) || n.passes(JS) {
			t.Error("the pass is of another level")
		}
	}
}

// What browsers would take for another host comes back as a path of this site.
func TestCookie302StaysOnTheSite(t *testing.T) {
	for _, target := range []string{"//evil.test", "//evil.test/x?y", "///evil.test", `/\evil.test`, `/\/evil.test`, "//"} {
		n := newNode(t)
		r, _ := http.NewRequest("GET", "http://site.test/", nil)
		r.RequestURI, r.Header = target, n.headers.Clone()
		w, _ := n.admitRequest(r, Demand{Level: Cookie302})
		location := w.Header().Get("Location")
		if location != "/."+target {
			t.Errorf("%q leads to %q", target, location)
		}
		base := &url.URL{Scheme: "http", Host: "site.test", Path: "/"}
		if to, err := base.Parse(strings.ReplaceAll(location, `\`, "/")); err != nil || to.Host != "site.test" {
			t.Errorf("%q leads to %v", target, to)
		}
	}
}

func TestWhoKeepsNoCookiesIsToldSo(t *testing.T) {
	n := newNode(t)
	level1 := Demand{Level: Cookie302}
	for i := range 3 {
		if w, _ := n.admit("GET", "/x", level1); w.Code != http.StatusFound {
			t.Fatalf("redirect %d: %d", i+1, w.Code)
		}
	}
	w, _ := n.admit("GET", "/x", level1)
	if w.Code != http.StatusForbidden || w.Header().Get("X-Svc-Challenge") != "cookie302" || !strings.Contains(w.Body.String(), "Cookies are needed") ||
		!strings.Contains(w.Body.String(), `href="/x"`) || !strings.Contains(w.Body.String(), "request-1") {
		t.Fatalf("%d %v %s", w.Code, w.Header(), w.Body)
	}
	// Another person behind the same address may well keep them.
	if !n.keep(w) || !n.passes(Cookie302) {
		t.Error("the page carries no pass")
	}
	n.headers.Del("Cookie")
	for name, change := range map[string]func(){
		"another page":    func() { w, _ = n.admit("GET", "/y", level1) },
		"another network": func() { n.visit.Client = mustAddr("198.51.100.7"); w, _ = n.admit("GET", "/x", level1) },
		"another browser": func() { n.headers.Set("User-Agent", "other"); w, _ = n.admit("GET", "/x", level1) },
		"another site":    func() { n.visit.SiteID = "site-2"; w, _ = n.admit("GET", "/x", level1) },
		"ten seconds on":  func() { n.clock = n.clock.Add(10 * time.Second); w, _ = n.admit("GET", "/x", level1) },
	} {
		if change(); w.Code != http.StatusFound {
			t.Errorf("%s: %d", name, w.Code)
		}
	}
}

// Visitors who come back with the pass do not count, however many they are.
func TestThoseWhoKeepCookiesDoNotCount(t *testing.T) {
	n := newNode(t)
	for i := range 20 {
		n.headers.Del("Cookie")
		w, _ := n.admit("GET", "/x", Demand{Level: Cookie302})
		if w.Code != http.StatusFound {
			t.Fatalf("visitor %d: %d", i, w.Code)
		}
		n.keep(w)
		if _, admitted := n.admit("GET", "/x", Demand{Level: Cookie302}); !admitted {
			t.Fatal("refused")
		}
	}
	if got := n.Counters(); got.Served[0] != 20 || got.Passed[0] != 20 {
		t.Errorf("%+v", got)
	}
}

// Who passed a moment ago and is back without a pass would be challenged for ever.
func TestWhoLostThePassIsToldSo(t *testing.T) {
	verify := func(n *node) {
		token := n.challenge(Demand{Level: JS})
		if w := n.post(url.Values{"t": {token}, "a": {n.solve(token)}}); w.Code != http.StatusSeeOther {
			t.Fatal(w.Code)
		}
	}
	told := func(n *node) bool {
		w, _ := n.admit("GET", "/", Demand{Level: JS})
		notice := strings.Contains(w.Body.String(), "did not keep the cookie")
		return notice
	}
	n := newNode(t)
	if told(n) {
		t.Error("told without a reason")
	}
	verify(n)
	if !told(n) {
		t.Error("not told")
	}
	if told(n) {
		t.Error("told twice for one time")
	}
	verify(n)
	if n.clock = n.clock.Add(time.Minute); told(n) {
		t.Error("told after a minute")
	}
	verify(n)
	n.visit.Client = mustAddr("192.0.2.8")
	if told(n) {
		t.Error("a neighbour was told")
	}
	n = newNode(t)
	token := n.challenge(Demand{Level: JS})
	n.keep(n.post(url.Values{"t": {token}, "a": {n.solve(token)}}))
	if !n.passes(JS) {
		t.Error("refused")
	}
	n.headers.Del("Cookie")
	if told(n) {
		t.Error("one behind the same address was told for another who kept the cookie")
	}
}

// A flood takes over the slots of the table, and no more memory.
func TestCountsOfManyAreBounded(t *testing.T) {
	r := newRecent(10)
	b := bind("site-1", vectorClient, vectorAgent)
	for i := range 200_000 {
		r.add(r.key(&b, vectorClient, fmt.Sprint(i)), vectorTime)
	}
	key := r.key(&b, vectorClient, "mine")
	for want := 1; want <= 300; want++ {
		if got := r.add(key, vectorTime); got != min(want, 255) {
			t.Fatalf("%d, not %d", got, want)
		}
	}
	if !r.take(key, vectorTime+9) || r.take(key, vectorTime+9) {
		t.Error("it is not forgotten once taken")
	}
}
