package challenge

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"edge.svc/caddy/exchange"
)

var demands = map[string]Demand{
	"js": {Level: JS}, "pow": {Level: Pow}, "captcha": {Level: Captcha}, "high pow": {Level: Captcha, HighPow: true},
}

func TestEveryLevelCanBePassed(t *testing.T) {
	for name, demand := range demands {
		n := newNode(t)
		token := n.challenge(demand)
		w := n.post(url.Values{"t": {token}, "a": {n.solve(token)}, "r": {"/back?x=1"}})
		if w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/back?x=1" || w.Header().Get("Cache-Control") != "no-store, private" || !n.keep(w) {
			t.Fatalf("%s: %d %v", name, w.Code, w.Header())
		}
		if !n.passes(demand.Level) || demand.Level < Captcha && n.passes(demand.Level+1) {
			t.Errorf("%s: the pass is of another level", name)
		}
		got := n.Counters()
		if got.Served[demand.Level-1] == 0 || got.Passed[demand.Level-1] != 1 || got.Failed != 0 || got.FromElsewhere != 0 {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestAnAnswerIsTakenOnce(t *testing.T) {
	for name, demand := range demands {
		n := newNode(t)
		token := n.challenge(demand)
		form := url.Values{"t": {token}, "a": {n.solve(token)}, "r": {"/"}}
		if w := n.post(form); !n.keep(w) {
			t.Fatalf("%s: refused", name)
		}
		n.headers.Del("Cookie")
		n.clock = n.clock.Add(299 * time.Second)
		if w := n.post(form); w.Code != http.StatusSeeOther || n.keep(w) {
			t.Errorf("%s: a second time: %d %v", name, w.Code, w.Header())
		}
		if n.Counters().Replayed != 1 {
			t.Errorf("%s: %+v", name, n.Counters())
		}
	}
}

// A wrong answer to a computed challenge may be corrected; an image is shown for one answer.
func TestAWrongAnswerGetsANewPage(t *testing.T) {
	for name, demand := range demands {
		n := newNode(t)
		token := n.challenge(demand)
		right := n.solve(token)
		wrong := right + "0"
		if first, err := strconv.Atoi(right); err == nil {
			// Longer ones may be work, too; those before the first are not.
			wrong = strconv.Itoa(first - 1)
		}
		for _, answer := range []string{"", "x", "ABCDEF", "-1", "12345678901234567", strings.Repeat("9", 300), wrong} {
			w := n.post(url.Values{"t": {token}, "a": {answer}, "r": {"/back"}})
			if n.keep(w) {
				t.Fatalf("%s: %q is right", name, answer)
			}
			if demand != demands["captcha"] || answer == "" {
				if w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), "not right") || tokenOf(t, w.Body.String()) == token {
					t.Errorf("%s: %q: %d %s", name, answer, w.Code, w.Body)
				}
			}
		}
		w := n.post(url.Values{"t": {token}, "a": {right}, "r": {"/back"}})
		if once := demand == demands["captcha"]; w.Code != http.StatusSeeOther || n.keep(w) == once {
			t.Errorf("%s: the right answer afterwards: %d %v", name, w.Code, w.Header())
		}
	}
}

func TestCaptchaIsReadAsPeopleType(t *testing.T) {
	n := newNode(t)
	token := n.challenge(demands["captcha"])
	answer := n.solve(token)
	if w := n.post(url.Values{"t": {token}, "a": {" " + strings.ToLower(answer[:2]) + " " + answer[2:] + "\t"}}); !n.keep(w) {
		t.Errorf("%d %v", w.Code, w.Header())
	}
}

func TestComputingInsteadOfTyping(t *testing.T) {
	n := newNode(t)
	n.visit.PowHighBits = 10
	token := n.challenge(demands["captcha"])
	w := n.post(url.Values{"t": {token}, "a": {""}, "alt": {"pow"}, "r": {"/deep?x=%22"}})
	if w.Code != http.StatusForbidden || w.Header().Get("X-Svc-Challenge") != "pow" || !strings.Contains(w.Body.String(), `data-r="/deep?x=%22"`) {
		t.Fatalf("%d %v %s", w.Code, w.Header(), w.Body)
	}
	computed := tokenOf(t, w.Body.String())
	if w = n.post(url.Values{"t": {computed}, "a": {n.solve(computed)}}); !n.keep(w) || !n.passes(Captcha) {
		t.Errorf("%d %v", w.Code, w.Header())
	}
	// The image is still there to be typed.
	if w = n.post(url.Values{"t": {token}, "a": {n.solve(token)}}); !n.keep(w) {
		t.Errorf("%d %v", w.Code, w.Header())
	}
	// Only an image has the alternative.
	n.headers.Del("Cookie")
	js := n.challenge(Demand{Level: JS})
	if w = n.post(url.Values{"t": {js}, "a": {n.solve(js)}, "alt": {"pow"}}); !n.keep(w) || n.passes(Pow) {
		t.Errorf("%d %v", w.Code, w.Header())
	}
}

func TestAHigherPassIsKept(t *testing.T) {
	n := newNode(t)
	n.headers["Cookie"] = []string{exchange.PassCookie + "=" + pass(n.keys.Load(), Pow, vectorTime, vectorTime+1800)}
	token := n.challengeOf(JS)
	if w := n.post(url.Values{"t": {token}, "a": {n.solve(token)}}); !n.keep(w) || !n.passes(Pow) {
		t.Errorf("%d %v", w.Code, w.Header())
	}
}

// challengeOf makes a token without a request that would be let through.
func (n *node) challengeOf(level Level) string {
	without := n.headers["Cookie"]
	n.headers.Del("Cookie")
	defer func() { n.headers["Cookie"] = without }()
	return n.challenge(Demand{Level: level})
}

func TestWorthlessTokensLeadBackToAChallenge(t *testing.T) {
	n := newNode(t)
	token := n.challenge(Demand{Level: JS})
	answer := n.solve(token)
	sections := strings.Split(token, ".")
	for name, c := range map[string]struct {
		token  string
		change func()
	}{
		"missing":                {"", nil},
		"cut":                    {token[:len(token)-1], nil},
		"with a changed payload": {sections[0] + "." + sections[1][:5] + "x" + sections[1][6:] + "." + sections[2], nil},
		"with another signature": {sections[0] + "." + sections[1] + "." + strings.Repeat("A", 43), nil},
		"of an unknown key":      {"k9." + sections[1] + "." + sections[2], nil},
		"that is a pass":         {vectorPass, nil},
		"far too long":           {strings.Repeat("A", 2049), nil},
		"of another site":        {token, func() { n.visit.SiteID = "site-2" }},
		"of another network":     {token, func() { n.visit.Client = mustAddr("198.51.100.1") }},
		"of another browser":     {token, func() { n.headers.Set("User-Agent", "other") }},
		"that expired":           {token, func() { n.clock = n.clock.Add(300 * time.Second) }},
	} {
		visit, headers, clock := n.visit, n.headers.Clone(), n.clock
		if c.change != nil {
			c.change()
		}
		w := n.post(url.Values{"t": {c.token}, "a": {answer}, "r": {"/back"}})
		if w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/back" || n.keep(w) {
			t.Errorf("a token %s: %d %v", name, w.Code, w.Header())
		}
		n.visit, n.headers, n.clock = visit, headers, clock
	}
	if w := n.post(url.Values{"t": {token}, "a": {answer}}); !n.keep(w) {
		t.Error("the token itself is not good any more")
	}
}

// The signature covers what an answer is worth, so it cannot be lowered.
func TestDifficultyIsThatOfTheToken(t *testing.T) {
	n := newNode(t)
	token := n.challenge(Demand{Level: Pow})
	n.visit.PowBits = 24
	if w := n.post(url.Values{"t": {token}, "a": {n.solve(token)}, "d": {"0"}}); !n.keep(w) {
		t.Error("a later change of the setting made a page worthless")
	}
	for _, answer := range []string{"0085885", "85885.0", "+85885", "8588５"} {
		if right := isWork(vectorPow, answer, 16); right {
			t.Errorf("%q", answer)
		}
	}
}

func TestRotationDuringAChallenge(t *testing.T) {
	n := newNode(t)
	n.setKeys(1, "k1", "k2")
	token := n.challenge(Demand{Level: Pow})
	captcha := n.challenge(demands["captcha"])
	n.setKeys(2, "k2", "k3", "k1")
	for _, text := range []string{token, captcha} {
		n.headers.Del("Cookie")
		if w := n.post(url.Values{"t": {text}, "a": {n.solve(text)}}); !n.keep(w) || !strings.HasPrefix(n.headers.Get("Cookie"), "__ew_pass=v1.k2.") {
			t.Errorf("%d %v", w.Code, w.Header())
		}
	}
	n.headers.Del("Cookie")
	token = n.challenge(Demand{Level: JS})
	answer := n.solve(token)
	n.setKeys(4, "k4", "k5", "k3")
	if w := n.post(url.Values{"t": {token}, "a": {answer}}); n.keep(w) {
		t.Error("a key that is gone is still good")
	}
}

// Nodes share keys, not the memory of what was answered: an answer is good once on each, for the visitor it was made
// for and nobody else, and each node counts those that were not its own.
func TestAnswerAtAnotherNodeOfTheCluster(t *testing.T) {
	for _, skew := range []time.Duration{-2 * time.Minute, 0, 2 * time.Minute} {
		here, there := newNode(t), newNode(t)
		there.clock = there.clock.Add(skew)
		token := here.challenge(Demand{Level: Pow})
		form := url.Values{"t": {token}, "a": {here.solve(token)}}
		for name, change := range map[string]func(){
			"site":    func() { there.visit.SiteID = "site-2" },
			"network": func() { there.visit.Client = mustAddr("2001:db8::1") },
			"browser": func() { there.headers.Set("User-Agent", "other") },
		} {
			visit, headers := there.visit, there.headers.Clone()
			change()
			if w := there.post(form); there.keep(w) {
				t.Errorf("another %s got a pass", name)
			}
			there.visit, there.headers = visit, headers
		}
		if w := here.post(form); !here.keep(w) {
			t.Error("refused where it was made")
		}
		if w := there.post(form); !there.keep(w) || !there.passes(Pow) {
			t.Errorf("refused at another node, %v", skew)
		}
		there.headers.Del("Cookie")
		// As long as the token lives by the clock there.
		there.clock = here.clock.Add(299*time.Second + min(skew, 0))
		if w := there.post(form); there.keep(w) {
			t.Errorf("taken twice at another node, %v", skew)
		}
		if got := there.Counters(); got.FromElsewhere != 1 || got.Replayed != 1 || here.Counters().FromElsewhere != 0 {
			t.Errorf("%+v", got)
		}
	}
}

// A pass of a higher level is worth what was solved for it, and no lower answer makes it live longer.
func TestAHigherPassKeepsItsExpiry(t *testing.T) {
	const life, later = 30 * time.Minute, 20 * time.Minute
	for _, held := range []Level{Cookie302, JS, Pow, Captcha} {
		for name, demand := range demands {
			n := newNode(t)
			n.headers.Set("Cookie", exchange.PassCookie+"="+pass(n.keys.Load(), held, vectorTime, vectorTime+int64(life/time.Second)))
			cookie := n.headers.Get("Cookie")
			n.clock = n.clock.Add(later)
			n.headers.Del("Cookie")
			token := n.challenge(demand)
			n.headers.Set("Cookie", cookie)
			w := n.post(url.Values{"t": {token}, "a": {n.solve(token)}})
			if !n.keep(w) {
				t.Fatalf("%s: %d", name, w.Code)
			}
			best, left := max(held, demand.Level), life
			if held > demand.Level {
				left = life - later
			}
			if got := w.Result().Cookies()[0].MaxAge; got != int(left/time.Second) {
				t.Errorf("%v held, %s solved: the cookie lives %d s", held, name, got)
			}
			n.clock = n.clock.Add(left - time.Second)
			if !n.passes(best) {
				t.Errorf("%v held, %s solved: the pass ends early", held, name)
			}
			if n.clock = n.clock.Add(time.Second); n.passes(Cookie302) {
				t.Errorf("%v held, %s solved: the pass lives longer", held, name)
			}
		}
	}
}

// Of several passes of a level, the one that lives longest counts.
func TestTheLongestOfEqualPassesIsKept(t *testing.T) {
	n := newNode(t)
	keys := n.keys.Load()
	short, long := pass(keys, Captcha, vectorTime, vectorTime+60), pass(keys, Captcha, vectorTime, vectorTime+600)
	for _, cookies := range []string{exchange.PassCookie + "=" + short + "; " + exchange.PassCookie + "=" + long, exchange.PassCookie + "=" + long + "; " + exchange.PassCookie + "=" + short} {
		n.headers.Del("Cookie")
		token := n.challenge(Demand{Level: JS})
		n.headers.Set("Cookie", cookies)
		if got := n.post(url.Values{"t": {token}, "a": {n.solve(token)}}).Result().Cookies()[0].MaxAge; got != 600 {
			t.Errorf("%d s", got)
		}
	}
}

func TestFormsThatAreTooLarge(t *testing.T) {
	n := newNode(t)
	token := n.challenge(Demand{Level: JS})
	body := url.Values{"t": {token}, "a": {n.solve(token)}}.Encode()
	for name, c := range map[string]struct {
		size      int
		announced bool
		status    int
	}{
		"announced": {4097, true, 413}, "not announced": {4097, false, 413}, "just not": {4096, false, 303},
	} {
		text := body + "&x=" + strings.Repeat("y", c.size-len(body)-3)
		r := httptest.NewRequest("POST", VerifyPath, io.MultiReader(strings.NewReader(text)))
		r.ContentLength = -1
		if c.announced {
			r.ContentLength = int64(len(text))
		}
		r.Header = n.headers.Clone()
		w := httptest.NewRecorder()
		n.verify(w, r)
		if w.Code != c.status || c.status == 413 && w.Header().Get("X-Svc-Error") != "too-large" {
			t.Errorf("%s: %d %v", name, w.Code, w.Header())
		}
	}
}

func TestWithoutKeysNobodyPasses(t *testing.T) {
	n := newNode(t)
	token := n.challenge(Demand{Level: JS})
	form := url.Values{"t": {token}, "a": {n.solve(token)}}
	if err := n.SetKeys(Keys{}); err != nil {
		t.Fatal(err)
	}
	for _, method := range []string{"GET", "HEAD", "POST"} {
		if w, admitted := n.admit(method, "/", Demand{Level: Cookie302}); admitted || w.Code != 503 || w.Header().Get("X-Svc-Error") != "challenge-unavailable" {
			t.Errorf("%s: %d %v", method, w.Code, w.Header())
		}
	}
	if w := n.post(form); w.Code != 503 || w.Header().Get("X-Svc-Error") != "challenge-unavailable" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
	if _, admitted := n.admit("GET", "/", Demand{}); !admitted {
		t.Error("a request of which nothing is asked was stopped")
	}
}

// Where it cannot be told whether an answer was given before, what is cheap to compute passes and nothing else.
func TestFullStore(t *testing.T) {
	for name, demand := range demands {
		n := newNode(t)
		n.spent = newReplayStore(1)
		fill(n.spent, vectorTime+300)
		token := n.challenge(demand)
		w := n.post(url.Values{"t": {token}, "a": {n.solve(token)}})
		if passed := n.keep(w); passed != (name == "js") || !passed && w.Code != http.StatusForbidden {
			t.Errorf("%s: %d %v", name, w.Code, w.Header())
		}
		if n.Counters().Overflowed != 1 {
			t.Errorf("%s: %+v", name, n.Counters())
		}
	}
}

// Paths that browsers would read as another site, or that lead nowhere.
func TestTheWayBackStaysOnTheSite(t *testing.T) {
	for path, want := range map[string]string{
		"/":                             "/",
		"/a/b?c=d&e=//x":                "/a/b?c=d&e=//x",
		"/%2f/evil.test":                "/%2f/evil.test",
		"/a//b":                         "/a//b",
		"":                              "/",
		"//evil.test":                   "/",
		"///evil.test":                  "/",
		`/\evil.test`:                   "/",
		`\\evil.test`:                   "/",
		`/a\..\\evil.test`:              "/",
		"https://evil.test":             "/",
		"http:/evil.test":               "/",
		"javascript:alert(1)":           "/",
		"data:text/html,x":              "/",
		"evil.test":                     "/",
		"?x":                            "/",
		"#x":                            "/",
		"/\t/evil.test":                 "/",
		"\t//evil.test":                 "/",
		" //evil.test":                  "/",
		"/\n/evil.test":                 "/",
		"/x\r\nSet-Cookie: a=b":         "/",
		"/x\x00":                        "/",
		"/x\x7f":                        "/",
		"/x y":                          "/",
		"/.svc/challenge/verify":        "/",
		"/.svc/":                        "/",
		"/.svcx":                        "/.svcx",
		"/" + strings.Repeat("a", 2047): "/" + strings.Repeat("a", 2047),
		"/" + strings.Repeat("a", 2048): "/",
		"@evil.test":                    "/",
		"/@evil.test":                   "/@evil.test",
		"/;@evil.test":                  "/;@evil.test",
	} {
		if got := returnPath(path); got != want {
			t.Errorf("%q leads to %q", path, got)
		}
		n := newNode(t)
		w := n.post(url.Values{"r": {path}})
		base := &url.URL{Scheme: "http", Host: "site.test", Path: "/x"}
		location, err := base.Parse(w.Header().Get("Location"))
		if w.Code != http.StatusSeeOther || err != nil || location.Host != "site.test" || location.Scheme != "http" {
			t.Errorf("%q leads to %v, %v", path, location, err)
		}
	}
}

func FuzzToken(f *testing.F) {
	f.Add(vectorJS, vectorSum)
	f.Add(vectorPow, "85885")
	f.Add("k1..", "")
	keys := vectorKeys(f)
	b := bind("site-1", vectorClient, vectorAgent)
	f.Fuzz(func(t *testing.T, text, answer string) {
		c, key := checkToken(keys, &b, text, vectorTime)
		if key == nil {
			return
		}
		if text != vectorJS && text != vectorPow {
			t.Errorf("%q is good", text)
		}
		c.solves(key, text, answer)
	})
}

func FuzzForm(f *testing.F) {
	f.Add("t=a.b.c&a=1&r=%2Fx%3Fy&alt=pow")
	f.Add("t=%&a=%4&r=+&alt")
	f.Add("r=%2F%2Fevil&&=&t")
	f.Fuzz(func(t *testing.T, body string) {
		form := readForm(body)
		back := returnPath(form.back)
		base := &url.URL{Scheme: "http", Host: "site.test", Path: "/"}
		if location, err := base.Parse(back); err == nil && location.Host != "site.test" {
			t.Errorf("%q leads to %v", body, location)
		}
		// Well-formed bodies mean what every other reader takes them for.
		if values, err := url.ParseQuery(body); err == nil && !strings.Contains(body, "%74") && values.Get("t") != form.token && strings.HasPrefix(body, "t=") {
			t.Errorf("%q: token %q, not %q", body, form.token, values.Get("t"))
		}
	})
}

// BenchmarkVerify is right answers at once on every core, with 2.4 million remembered. Its mutex profile tells whether
// they wait for one another.
func BenchmarkVerify(b *testing.B) {
	n := newNode(b)
	for i := range uint64(2_400_000) {
		n.spent.spend(numbered(i), vectorTime+tokenSeconds, vectorTime)
	}
	keys := n.keys.Load()
	bound := bind("site-1", vectorClient, vectorAgent)
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		w := &discard{header: http.Header{}}
		for pb.Next() {
			t := token{kind: typeJS, level: JS, issued: vectorTime, expires: vectorTime + tokenSeconds}
			n.nonce(&t.nonce)
			text := string(appendToken(nil, keys.current, &bound, &t))
			sum := sha256.Sum256([]byte(text))
			r := httptest.NewRequest("POST", VerifyPath, strings.NewReader("t="+text+"&a="+hex.EncodeToString(sum[:])+"&r=%2F"))
			r.Header = n.headers
			clear(w.header)
			if n.verify(w, r); w.header["Set-Cookie"] == nil {
				b.Fatal("refused")
			}
		}
	})
}
