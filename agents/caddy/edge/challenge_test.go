package edge

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"go.uber.org/zap"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
	"edge.svc/caddy/features/challenge"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
	"edge.svc/caddy/internal/edgetest"
	"edge.svc/caddy/internal/exchangetest"
)

const (
	calm      = configv1.ChallengeType_CHALLENGE_TYPE_UNSPECIFIED
	cookie302 = configv1.ChallengeType_CHALLENGE_TYPE_COOKIE302
	js        = configv1.ChallengeType_CHALLENGE_TYPE_JS
	pow       = configv1.ChallengeType_CHALLENGE_TYPE_POW
	captcha   = configv1.ChallengeType_CHALLENGE_TYPE_CAPTCHA
)

func platform(level configv1.ChallengeType) *configv1.Entry {
	return edgetest.Entry("platform-protection", "", &configv1.PlatformProtection{UnderAttack: level != calm, UnderAttackChallenge: level})
}

func siteProtection(level configv1.ChallengeType) *configv1.Entry {
	return edgetest.Entry("protection", "a", &configv1.SiteProtection{UnderAttack: level != calm, UnderAttackChallenge: level, PowDifficulty: 8, PowHighDifficulty: 9})
}

func newProtected(t testing.TB, entries ...*configv1.Entry) *edge {
	t.Helper()
	h := newHandler(t, append(entries, edgetest.Entry("site", "a", edgetest.Site(0, "a.com")))...)
	h.setKeys(t)
	return h
}

func (h *edge) setKeys(t testing.TB) {
	t.Helper()
	err := challenge.Of(h.core).SetKeys(challenge.Keys{Version: 1, Current: &challenge.Key{ID: "k1", Secret: make([]byte, 32)}})
	if err != nil {
		t.Fatal(err)
	}
}

// challengeOf is the challenge of an answer, "" for one that passed all stages.
func challengeOf(w *httptest.ResponseRecorder) string {
	if w.Header().Get("X-Svc-Error") == "no-origin" {
		return ""
	}
	return w.Header().Get("X-Svc-Challenge") + w.Header().Get("X-Svc-Error")
}

// The level required for a request is the highest of: global Under Attack, the site's, matching challenge rules, CC of
// the site and of the path.
func TestHighestDemandWins(t *testing.T) {
	type demand = challenge.Demand
	for _, c := range []struct {
		platform, site configv1.ChallengeType
		rules, cc      demand
		want           string
	}{
		{calm, calm, demand{}, demand{}, ""},
		{js, calm, demand{}, demand{}, "js"},
		{calm, pow, demand{}, demand{}, "pow"},
		{calm, calm, demand{}, demand{Level: challenge.Cookie302}, "cookie302"},
		{calm, calm, demand{Level: challenge.Captcha}, demand{}, "captcha"},
		{js, pow, demand{Level: challenge.Cookie302}, demand{}, "pow"},
		{pow, js, demand{}, demand{Level: challenge.JS}, "pow"},
		{js, cookie302, demand{Level: challenge.Pow}, demand{Level: challenge.Captcha}, "captcha"},
		{calm, js, demand{}, demand{Level: challenge.Captcha, HighPow: true}, "pow"},
		// Of equals the first says what it is.
		{captcha, calm, demand{}, demand{Level: challenge.Captcha, HighPow: true}, "captcha"},
		{calm, captcha, demand{}, demand{Level: challenge.Captcha, HighPow: true}, "captcha"},
	} {
		h := newProtected(t, platform(c.platform), siteProtection(c.site))
		x := h.beforeChallenge(request("GET", "a.com", "/"))
		*exchange.RuleDemand.Of(x), *exchange.FloodDemand.Of(x) = c.rules, c.cc
		if got := challenged(challenge.Stage(h.core)(x)); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}

// beforeChallenge is an exchange of a.com as it reaches the stage of challenges.
func (h *edge) beforeChallenge(r *http.Request) *exchange.Exchange {
	x := exchangetest.New(httptest.NewRecorder(), r)
	x.Tables = h.core.Tables()
	x.Plan, x.In.ID = core.PlanOfHost(x.Tables, "a.com"), "id"
	return x
}

// challenged is the challenge in an answer, "" without one.
func challenged(a *exchange.Answer) string {
	if a == nil {
		return ""
	}
	return a.Header.Get("X-Svc-Challenge")
}

func TestNeverChallenged(t *testing.T) {
	list := []*configv1.Entry{
		edgetest.Entry("ip-list", "l", &configv1.IpList{ListKind: configv1.IpListKind_IP_LIST_KIND_ALLOW, EntryCount: 1}),
		edgetest.Entry("ip-list-chunk", "l/0", &configv1.IpListChunk{ListId: "l", Cidrs: []string{"198.51.100.0/24"}}),
	}
	h := newProtected(t, append(list, platform(js))...)
	for _, c := range []struct{ client, target, want string }{
		{"192.0.2.1:1", "/", "js"},
		{"198.51.100.7:1", "/", ""},
		{"[::ffff:198.51.100.7]:1", "/", ""},
		{"192.0.2.1:1", "/.well-known/acme-challenge/Token_of-1", ""},
		{"192.0.2.1:1", "/.well-known/acme-challenge/", "js"},
		{"192.0.2.1:1", "/.well-known/acme-challenge/a/b", "js"},
		{"192.0.2.1:1", "/.well-known/acme-challenge/../../x", "js"},
		{"192.0.2.1:1", "/.well-known/acme-challenge/a%2f..%2f..%2fx", "js"},
		{"192.0.2.1:1", "/.well-known/acme-challenge/a.b", "js"},
		{"192.0.2.1:1", "/x/.well-known/acme-challenge/a", "js"},
	} {
		r := request("GET", "a.com", c.target)
		r.RemoteAddr = c.client
		w, _ := h.send(r)
		if got := challengeOf(w); got != c.want {
			t.Errorf("%s %s: %q, not %q", c.client, c.target, got, c.want)
		}
	}
	// The path that is looked at is the path that origins get.
	r, err := http.ReadRequest(bufio.NewReader(strings.NewReader("GET x:/.well-known/acme-challenge/t?://a.com/admin HTTP/1.1\r\nHost: a.com\r\n\r\n")))
	if err != nil {
		t.Fatal(err)
	}
	r.RemoteAddr = "192.0.2.1:1"
	if w, _ := h.send(r); w.Code != 400 || challengeOf(w) != "bad-request" {
		t.Errorf("a target of two readings: %d %q", w.Code, challengeOf(w))
	}
	// A rule was written for exactly those it matches, so no list takes it back.
	x := h.beforeChallenge(request("GET", "a.com", "/"))
	*exchange.RuleDemand.Of(x), *exchange.AllowListed.Of(x) = challenge.Demand{Level: challenge.Pow}, true
	if got := challenged(challenge.Stage(h.core)(x)); got != "pow" {
		t.Errorf("%q", got)
	}
}

func TestReservedPrefixUnderAttack(t *testing.T) {
	h := newProtected(t, platform(captcha))
	for _, c := range []struct {
		method, target string
		status         int
		code           string
	}{
		{"POST", "/.svc/challenge/verify", 303, ""},
		{"POST", "/.svc/challenge/verify?x=1", 303, ""},
		{"GET", "/.svc/challenge/verify", 404, "not-found"},
		{"PUT", "/.svc/challenge/verify", 404, "not-found"},
		{"GET", "/.svc/challenge/worker.js", 200, ""},
		{"GET", "/.svc/challenge/worker.js?v=abc", 200, ""},
		{"HEAD", "/.svc/challenge/worker.js", 200, ""},
		{"POST", "/.svc/challenge/worker.js", 404, "not-found"},
		{"GET", "/.svc/challenge/worker.js/", 404, "not-found"},
		{"POST", "/.svc/challenge//verify", 404, "not-found"},
		{"POST", "/x/../.svc/challenge/verify", 404, "not-found"},
		{"GET", "/.svc/", 404, "not-found"},
	} {
		w, _ := h.send(request(c.method, "a.com", c.target))
		if w.Code != c.status || w.Header().Get("X-Svc-Error") != c.code {
			t.Errorf("%s %s: %d %v", c.method, c.target, w.Code, w.Header())
		}
	}
}

// Bans come before challenges, block lists too; nothing else is learnt about the site without a pass.
func TestPlaceOfTheChallenge(t *testing.T) {
	site := edgetest.Site(0, "a.com")
	site.Pool.Websocket = false
	site.RequestBodyLimit = 5
	h := newProtected(t, platform(pow))
	h.change(t, edgetest.Entry("site", "a", site))
	upgrade := request("GET", "a.com", "/")
	for name, value := range map[string]string{"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="} {
		upgrade.Header.Set(name, value)
	}
	w, _ := h.send(upgrade)
	if challengeOf(w) != "pow" || !strings.HasPrefix(w.Body.String(), "A challenge") {
		t.Errorf("an upgrade got %v %s", w.Header(), w.Body)
	}
	// Not an upgrade to WebSocket, so somebody may be looking.
	h2c := request("GET", "a.com", "/")
	h2c.Header.Set("Connection", "Upgrade, HTTP2-Settings")
	h2c.Header.Set("Upgrade", "h2c")
	if w, _ = h.send(h2c); !strings.HasPrefix(w.Body.String(), "<!doctype html>") {
		t.Errorf("h2c got %s", w.Body)
	}
	large := request("POST", "a.com", "/")
	large.ContentLength = 6
	if w, _ = h.send(large); challengeOf(w) != "required" {
		t.Errorf("a large body got %v", w.Header())
	}
	preflight := request("OPTIONS", "a.com", "/")
	preflight.Header.Set("Origin", "https://other.test")
	preflight.Header.Set("Access-Control-Request-Method", "GET")
	if w, _ = h.send(preflight); w.Code != 403 || challengeOf(w) != "required" {
		t.Errorf("a preflight got %d %v", w.Code, w.Header())
	}
	h.change(t, edgetest.Entry("ip-list", "b", &configv1.IpList{ListKind: configv1.IpListKind_IP_LIST_KIND_BLOCK, EntryCount: 1}),
		edgetest.Entry("ip-list-chunk", "b/0", &configv1.IpListChunk{ListId: "b", Cidrs: []string{"192.0.2.1/32"}}))
	if w, _ = h.send(request("GET", "a.com", "/")); challengeOf(w) != "policy-denied" {
		t.Errorf("a blocked client got %v", w.Header())
	}
	h.ban(t, "a", "192.0.2.1/32")
	if w, _ = h.send(request("GET", "a.com", "/")); challengeOf(w) != "ip-banned" {
		t.Errorf("a banned client got %v", w.Header())
	}
}

// A browser's whole way: page, answer, pass, site; the pass of one site is nothing at another.
func TestWayThroughAChallenge(t *testing.T) {
	h := newProtected(t, siteProtection(js), edgetest.Entry("site", "b", edgetest.Site(0, "b.com")),
		edgetest.Entry("protection", "b", &configv1.SiteProtection{UnderAttack: true}))
	w, _ := h.send(request("GET", "a.com", "/x"))
	found := regexp.MustCompile(`data-t="([^"]*)"`).FindStringSubmatch(w.Body.String())
	if challengeOf(w) != "js" || found == nil || !strings.Contains(w.Body.String(), w.Header().Get("X-Request-Id")) {
		t.Fatalf("%v %s", w.Header(), w.Body)
	}
	sum := sha256.Sum256([]byte(found[1]))
	form := url.Values{"t": {found[1]}, "a": {hex.EncodeToString(sum[:])}, "r": {"/x"}}.Encode()
	r := httptest.NewRequest("POST", "/.svc/challenge/verify", strings.NewReader(form))
	r.Host, r.RemoteAddr = "a.com", "192.0.2.1:1234"
	w, _ = h.send(r)
	if w.Code != http.StatusSeeOther || len(w.Result().Cookies()) != 2 {
		t.Fatalf("%d %v", w.Code, w.Header())
	}
	cookie := w.Result().Cookies()[0]
	for host, want := range map[string]string{"a.com": "", "b.com": "js"} {
		r := request("GET", host, "/x")
		r.AddCookie(cookie)
		if w, _ = h.send(r); challengeOf(w) != want {
			t.Errorf("%s: %q", host, challengeOf(w))
		}
	}
	r = request("POST", "a.com", "/x")
	r.AddCookie(cookie)
	if w, _ = h.send(r); challengeOf(w) != "" {
		t.Errorf("POST with a pass: %q", challengeOf(w))
	}
}

func TestNoKeysNoEntry(t *testing.T) {
	h := newHandler(t, edgetest.Entry("site", "a", edgetest.Site(0, "a.com")), platform(cookie302))
	for _, method := range []string{"GET", "HEAD", "POST", "OPTIONS"} {
		if w, _ := h.send(request(method, "a.com", "/")); w.Code != 503 || challengeOf(w) != "challenge-unavailable" {
			t.Errorf("%s: %d %v", method, w.Code, w.Header())
		}
	}
}

// A fault where passes are checked opens nothing.
func TestPanicInTheChallengeFailsClosed(t *testing.T) {
	h := newHandler(t, edgetest.Entry("site", "a", edgetest.Site(0, "a.com")))
	for row, want := range map[string]string{"challenge": "challenge-unavailable", "reserved": "challenge-unavailable", "lists": "policy-unavailable"} {
		h.pipeline = newPipeline(h.core, zap.NewNop(), false)
		h.replace(row, func(*exchange.Exchange) *exchange.Answer { panic("in the stage") })
		if w, _ := h.send(request("GET", "a.com", "/")); w.Code != 503 || challengeOf(w) != want {
			t.Errorf("%s: %d %v", row, w.Code, w.Header())
		}
	}
}

// BenchmarkRequestWithPass is a request up to the proxy, once with everything asked of it and once with nothing.
func BenchmarkRequestWithPass(b *testing.B) {
	for name, level := range map[string]configv1.ChallengeType{"asked": cookie302, "not asked": calm} {
		b.Run(name, func(b *testing.B) {
			h := newProtected(b, platform(level))
			r := request("GET", "a.com", "/")
			r.Header.Set("User-Agent", "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36")
			w, _ := h.send(r)
			for _, cookie := range w.Result().Cookies() {
				r.AddCookie(cookie)
			}
			x, stage := h.beforeChallenge(r), challenge.Stage(h.core)
			b.ReportAllocs()
			for b.Loop() {
				if stage(x) != nil {
					b.Fatal("challenged")
				}
			}
		})
	}
}
