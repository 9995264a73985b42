package challenge

import (
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"edge.svc/caddy/exchange"
)

// pass makes a pass for the visitor of the vectors, changed as wanted.
func pass(keys *keySet, level Level, issued, expires int64) string {
	b := bind("site-1", vectorClient, vectorAgent)
	return string(appendPass(nil, keys.current, &b, level, issued, expires))
}

func TestOnlyAWholePassOfThisVisitorIsGood(t *testing.T) {
	keys := vectorKeys(t)
	other, err := newKeySet(Keys{Version: 1, Current: &Key{ID: "k1", Secret: secretFrom(9)}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	b := bind("site-1", vectorClient, vectorAgent)
	sections := strings.Split(vectorPass, ".")
	join := func(change func(s []string)) string {
		s := append([]string(nil), sections...)
		change(s)
		return strings.Join(s, ".")
	}
	const now = vectorTime + 60
	for name, value := range map[string]string{
		"empty":                      "",
		"dots":                       "...",
		"without a version":          strings.TrimPrefix(vectorPass, "v1."),
		"another version":            "v2" + vectorPass[2:],
		"an unknown key":             join(func(s []string) { s[1] = "k2" }),
		"forged with another secret": pass(other, JS, vectorTime, vectorTime+1800),
		"without a signature":        strings.Join(sections[:3], "."),
		"with an empty signature":    join(func(s []string) { s[3] = "" }),
		"with a shorter signature":   vectorPass[:len(vectorPass)-1],
		"with a longer signature":    vectorPass + "A",
		"with padding":               vectorPass + "=",
		"the signature of another":   join(func(s []string) { s[3] = "A" + s[3][1:] }),
		"another spelling of it":     vectorPass[:len(vectorPass)-1] + "Z",
		"one character changed":      join(func(s []string) { s[2] = s[2][:10] + "A" + s[2][11:] }),
		"a level raised":             join(func(s []string) { s[2] = strings.Replace(s[2], "fDJ8", "fDR8", 1) }),
		"a payload cut":              join(func(s []string) { s[2] = s[2][:40] }),
		"a token instead":            vectorJS,
		"too long":                   vectorPass + strings.Repeat("A", 1024),
		"over":                       pass(keys, JS, vectorTime-1800, now),
		"with too long a life":       pass(keys, JS, now-10, now-10+86_401),
		"from the far future":        pass(keys, JS, now+301, now+1800),
		"of level 0":                 pass(keys, Normal, vectorTime, vectorTime+1800),
		"of level 5":                 pass(keys, Captcha+1, vectorTime, vectorTime+1800),
	} {
		if held, ok := checkPass(keys, &b, value, now); ok || held != (heldPass{}) {
			t.Errorf("%s is good: %q", name, value)
		}
	}
	for name, stranger := range map[string]binding{
		"site":       bind("site-2", vectorClient, vectorAgent),
		"network":    bind("site-1", mustAddr("192.0.3.7"), vectorAgent),
		"browser":    bind("site-1", vectorClient, vectorAgent+"x"),
		"no browser": bind("site-1", vectorClient, ""),
		"no address": binding{site: "site-1", agent: b.agent},
	} {
		if _, ok := checkPass(keys, &stranger, vectorPass, now); ok {
			t.Errorf("a pass of another %s is good", name)
		}
	}
	neighbour := bind("site-1", mustAddr("::ffff:192.0.2.250"), vectorAgent)
	if _, ok := checkPass(keys, &neighbour, vectorPass, now); !ok {
		t.Error("a pass is not good in its network, however the address is written")
	}
}

// Clocks of two nodes differ by two minutes at most.
func TestPassesUnderClockSkew(t *testing.T) {
	keys := vectorKeys(t)
	b := bind("site-1", vectorClient, vectorAgent)
	value := pass(keys, JS, vectorTime, vectorTime+300)
	for _, skew := range []int64{-120, 0, 120} {
		if _, ok := checkPass(keys, &b, value, vectorTime+skew); !ok {
			t.Errorf("refused at %d s", skew)
		}
	}
}

func TestRotationKeepsPasses(t *testing.T) {
	n := newNode(t)
	n.setKeys(1, "k1", "k2")
	n.headers["Cookie"] = []string{exchange.PassCookie + "=" + pass(n.keys.Load(), Pow, vectorTime, vectorTime+1800)}
	for _, c := range []struct {
		name string
		ids  []string
		good bool
	}{
		{"current", []string{"k1", "k2"}, true},
		{"previous", []string{"k2", "k3", "k1"}, true},
		{"next, at a node that is behind", []string{"k4", "k1"}, true},
		{"gone", []string{"k3", "k4", "k2"}, false},
	} {
		n.setKeys(2, c.ids...)
		if n.passes(Pow) != c.good {
			t.Errorf("signed with a key that is %s: %v", c.name, !c.good)
		}
	}
}

func TestAPassIsGoodUpToItsLevel(t *testing.T) {
	n := newNode(t)
	for held := Cookie302; held <= Captcha; held++ {
		n.headers["Cookie"] = []string{exchange.PassCookie + "=" + pass(n.keys.Load(), held, vectorTime, vectorTime+1800)}
		for wanted := Cookie302; wanted <= Captcha; wanted++ {
			if n.passes(wanted) != (held >= wanted) {
				t.Errorf("level %d where %d is wanted", held, wanted)
			}
		}
	}
}

func TestPassIsFoundAmongCookies(t *testing.T) {
	n := newNode(t)
	good := exchange.PassCookie + "=" + pass(n.keys.Load(), Pow, vectorTime, vectorTime+1800)
	lower := exchange.PassCookie + "=" + pass(n.keys.Load(), JS, vectorTime, vectorTime+1800)
	plain := "ew_pass_http" + good[len(exchange.PassCookie):]
	bad := exchange.PassCookie + "=v1.k1.x.y"
	for _, c := range []struct {
		name    string
		headers []string
		good    bool
	}{
		{"alone", []string{good}, true},
		{"among others", []string{"a=b; " + good + "; c=d"}, true},
		{"without blanks", []string{"a=b;" + good + ";c"}, true},
		{"in a second header", []string{"a=b", good}, true},
		{"after one of a sibling", []string{bad + "; " + good}, true},
		{"after a lower one", []string{lower + "; " + good}, true},
		{"before a lower one", []string{good + "; " + lower}, true},
		{"as the fourth", []string{bad + "; " + bad, bad + ";" + good}, true},
		{"as the fifth", []string{bad + "; " + bad + "; " + bad, bad + "; " + good}, false},
		{"under another name", []string{"x" + good, strings.ToUpper(exchange.PassCookie) + good[len(exchange.PassCookie):]}, false},
		{"in quotes", []string{exchange.PassCookie + `="` + good[len(exchange.PassCookie)+1:] + `"`}, false},
		{"under the name for plain HTTP", []string{plain}, true},
		{"for plain HTTP, beside a lower one", []string{lower + "; " + plain}, true},
		{"beside a lower one for plain HTTP", []string{"ew_pass_http=" + lower[len(exchange.PassCookie)+1:] + "; " + good}, true},
		{"for plain HTTP, after four of a sibling", []string{strings.Repeat(bad+"; ", 4) + plain}, true},
		{"after four of a sibling for plain HTTP", []string{strings.Repeat("ew_pass_http=v1.k1.x.y; ", 4) + good}, true},
		{"for plain HTTP, as the fifth", []string{strings.Repeat("ew_pass_http=v1.k1.x.y; ", 4) + plain}, false},
		{"nothing", []string{"", ";", "=", "; ;=;"}, false},
	} {
		n.headers["Cookie"] = c.headers
		if n.passes(Pow) != c.good {
			t.Errorf("%s: %v", c.name, !c.good)
		}
	}
}

func TestAttributesOfThePass(t *testing.T) {
	for name, pass := range map[string]func(*node) *httptest.ResponseRecorder{
		"redirect": func(n *node) *httptest.ResponseRecorder {
			w, _ := n.admit("GET", "/", Demand{Level: Cookie302})
			return w
		},
		"redirects without end": func(n *node) (w *httptest.ResponseRecorder) {
			for range maxRedirects + 1 {
				w, _ = n.admit("GET", "/", Demand{Level: Cookie302})
			}
			return w
		},
		"answer": func(n *node) *httptest.ResponseRecorder {
			token := n.challenge(Demand{Level: JS})
			return n.post(url.Values{"t": {token}, "a": {n.solve(token)}})
		},
	} {
		for _, secure := range []bool{false, true} {
			n := newNode(t)
			n.visit.Secure, n.visit.PassTTL = secure, 300*time.Second
			cookies := pass(n).Result().Cookies()
			names := []string{"__ew_pass"}
			if !secure {
				names = append(names, "ew_pass_http")
			}
			if len(cookies) != len(names) {
				t.Fatalf("%s, secure %v: %v", name, secure, cookies)
			}
			for i, cookie := range cookies {
				if cookie.Name != names[i] || cookie.Path != "/" || cookie.MaxAge != 300 || !cookie.HttpOnly || cookie.SameSite != http.SameSiteLaxMode ||
					cookie.Secure != secure || cookie.Domain != "" || cookie.Value != cookies[0].Value {
					t.Errorf("%s: %v", name, cookie)
				}
				if len(cookie.Value) > maxPassBytes {
					t.Errorf("%d bytes", len(cookie.Value))
				}
			}
		}
	}
}

// A browser that holds a pass as a Secure cookie keeps and sends none of that name over plain HTTP (RFC 6265bis §5.7).
func TestAPassOverHTTPSDoesNotHideTheOneOverHTTP(t *testing.T) {
	for _, first := range []string{"https", "http"} {
		for _, demand := range []Demand{{Level: Cookie302}, {Level: JS}, {Level: Captcha, HighPow: true}} {
			n := newNode(t)
			jar, err := cookiejar.New(nil)
			if err != nil {
				t.Fatal(err)
			}
			visit := func(scheme string) (challenged bool) {
				site := &url.URL{Scheme: scheme, Host: "site.test", Path: "/"}
				n.visit.Secure = scheme == "https"
				n.headers.Del("Cookie")
				for _, cookie := range jar.Cookies(site) {
					n.headers["Cookie"] = append(n.headers["Cookie"], cookie.Name+"="+cookie.Value)
				}
				w, admitted := n.admit("GET", "/", demand)
				if admitted {
					return false
				}
				if demand.Level > Cookie302 {
					token := tokenOf(t, w.Body.String())
					w = n.post(url.Values{"t": {token}, "a": {n.solve(token)}})
				}
				for _, cookie := range w.Result().Cookies() {
					held := slices.ContainsFunc(jar.Cookies(&url.URL{Scheme: "https", Host: "site.test", Path: "/"}), func(c *http.Cookie) bool { return c.Name == cookie.Name })
					if scheme == "https" || !held || cookie.Name == "ew_pass_http" {
						jar.SetCookies(site, []*http.Cookie{cookie})
					}
				}
				return true
			}
			if !visit(first) || visit(first) {
				t.Errorf("level %v over %s alone", demand.Level, first)
			}
			for _, scheme := range []string{"http", "https"} {
				visit(scheme)
				if visit(scheme) {
					t.Errorf("level %v: challenged again over %s after %s", demand.Level, scheme, first)
				}
			}
		}
	}
}

func TestKeysAreChecked(t *testing.T) {
	n := New(Options{})
	key := func(id string, bytes int) *Key { return &Key{ID: id, Secret: make([]byte, bytes)} }
	for name, keys := range map[string]Keys{
		"no current":      {Version: 1, Next: key("a", 32)},
		"short secret":    {Version: 1, Current: key("a", 15)},
		"long secret":     {Version: 1, Current: key("a", 257)},
		"no id":           {Version: 1, Current: key("", 32)},
		"long id":         {Version: 1, Current: key(strings.Repeat("a", 33), 32)},
		"dot in an id":    {Version: 1, Current: key("a.b", 32)},
		"id in two roles": {Version: 1, Current: key("a", 32), Previous: key("a", 32)},
	} {
		if err := n.SetKeys(keys); err == nil || n.KeysVersion() != 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := n.SetKeys(Keys{Version: 7, Current: key("a", 16), Next: key(strings.Repeat("_", 32), 256)}); err != nil || n.KeysVersion() != 7 {
		t.Errorf("%v %d", err, n.KeysVersion())
	}
	if err := n.SetKeys(Keys{}); err != nil || n.KeysVersion() != 0 {
		t.Errorf("%v %d", err, n.KeysVersion())
	}
}

func BenchmarkPassCheck(b *testing.B) {
	keys := vectorKeys(b)
	agent := "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36"
	site := "0193f2a4-8c1e-7b3a-9d52-6f1e2a3b4c5d"
	mine := bind(site, vectorClient, agent)
	cookies := []string{"session=abcdefghijklmnop; theme=dark; " + exchange.PassCookie + "=" + string(appendPass(nil, keys.current, &mine, Pow, vectorTime, vectorTime+1800))}
	b.ReportAllocs()
	used := processorTime()
	for b.Loop() {
		bound := bind(site, vectorClient, agent)
		if bestPass(keys, &bound, cookies, vectorTime+100).level != Pow {
			b.Fatal("refused")
		}
	}
	// On a busy machine the time by the clock says little.
	b.ReportMetric(float64((processorTime()-used).Nanoseconds())/float64(b.N), "cpu-ns/op")
}

func processorTime() time.Duration {
	var usage syscall.Rusage
	// Fails for no process that asks about itself.
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func FuzzPass(f *testing.F) {
	f.Add(vectorPass, "a=b; __ew_pass="+vectorPass)
	f.Add("v1.k1..", "__ew_pass=;__ew_pass")
	f.Add("v1.k1.fHx8fHw.AAAA", ";;;=")
	keys := vectorKeys(f)
	b := bind("site-1", vectorClient, vectorAgent)
	f.Fuzz(func(t *testing.T, value, header string) {
		// What is signed has one spelling only.
		if _, ok := checkPass(keys, &b, value, vectorTime); ok && value != vectorPass {
			t.Errorf("%q is good", value)
		}
		bestPass(keys, &b, []string{header, value}, vectorTime)
	})
}
