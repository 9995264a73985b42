package edge

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.uber.org/zap"

	"edge.svc/caddy/exchange"
	"edge.svc/caddy/features/bans"
	_ "edge.svc/caddy/features/rate"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
	"edge.svc/caddy/internal/edgetest"
	"edge.svc/caddy/internal/ruletest"
)

func siteRules(rules ...*configv1.Rule) *configv1.Entry {
	return edgetest.Entry("site-rules", "a", ruletest.Site(rules...))
}

func platformRules(rules ...*configv1.Rule) *configv1.Entry {
	return edgetest.Entry("platform-rules", "", ruletest.Platform(rules...))
}

func site() *configv1.Entry { return edgetest.Entry("site", "a", edgetest.Site(0, "a.com")) }

// blockAll has a code of its own among what refuses a request.
func blockAll() *configv1.Rule { return ruletest.Rule(&configv1.BlockAction{Status: 451}) }

func (h *edge) statusOf(r *http.Request) string {
	w, _ := h.send(r)
	return fmt.Sprint(w.Code, " ", w.Header().Get("X-Svc-Error"))
}

func TestPlaceOfTheRules(t *testing.T) {
	h := newHandler(t, site(), siteRules(blockAll()))
	h.setKeys(t)
	for target, want := range map[string]string{
		"/":            "451 policy-denied",
		"/.svc/x":      "404 not-found",
		"/.svc/health": "404 not-found",
	} {
		if got := h.statusOf(request("GET", "a.com", target)); got != want {
			t.Errorf("%s: %s, not %s", target, got, want)
		}
	}
	if got := h.statusOf(request("GET", "b.com", "/")); got != "404 unknown-host" {
		t.Errorf("a host of no site: %s", got)
	}
	// A block list comes first, an allow list spares no rule.
	list := func(kind configv1.IpListKind) []*configv1.Entry {
		return []*configv1.Entry{
			edgetest.Entry("ip-list", "l", &configv1.IpList{ListKind: kind, EntryCount: 1}),
			edgetest.Entry("ip-list-chunk", "l/0", &configv1.IpListChunk{ListId: "l", Cidrs: []string{"192.0.2.1/32"}}),
		}
	}
	for kind, want := range map[configv1.IpListKind]string{
		configv1.IpListKind_IP_LIST_KIND_BLOCK: "403 policy-denied",
		configv1.IpListKind_IP_LIST_KIND_ALLOW: "451 policy-denied",
	} {
		h.change(t, list(kind)...)
		if got := h.statusOf(request("GET", "a.com", "/")); got != want {
			t.Errorf("%v: %s, not %s", kind, got, want)
		}
	}
	h.change(t, list(configv1.IpListKind_IP_LIST_KIND_COLLECTION)...)
	// Rules come before challenges, bans before rules.
	h.change(t, platform(js))
	if got := h.statusOf(request("GET", "a.com", "/")); got != "451 policy-denied" {
		t.Errorf("under attack: %s", got)
	}
	h.ban(t, "", "192.0.2.0/24")
	if got := h.statusOf(request("GET", "a.com", "/")); got != "403 ip-banned" {
		t.Errorf("banned: %s", got)
	}
}

// What rules refuse is counted for the client all the same, so that a flood of it is banned.
func TestClientsAreCountedBeforeRulesAnswer(t *testing.T) {
	h := newHandler(t, site(), oneASecond("a"), siteRules(blockAll()))
	got := h.codes(7, func(int, *http.Request) {})
	if want := strings.Repeat("policy-denied ", 5) + "ip-banned ip-banned"; got != want {
		t.Errorf("%s, not %s", got, want)
	}
	if n := bans.Of(h.core).State().GetEntries(); n != 1 {
		t.Errorf("%d bans", n)
	}
	// A list that rules ask is not one that spares.
	spared := newHandler(t, site(), oneASecond("a"), siteRules(ruletest.Rule(&configv1.AllowAction{})))
	if got := spared.codes(7, func(int, *http.Request) {}); !strings.HasSuffix(got, "ip-banned ip-banned") {
		t.Errorf("an allow rule spared a ban: %s", got)
	}
}

func TestChallengesOfRules(t *testing.T) {
	demand := ruletest.Rule(&configv1.ChallengeAction{Type: cookie302})
	h := newHandler(t, site(), siteRules(demand, blockAll()))
	if got := h.statusOf(request("GET", "a.com", "/")); got != "503 challenge-unavailable" {
		t.Errorf("without keys: %s", got)
	}
	h.setKeys(t)
	w, _ := h.send(request("GET", "a.com", "/"))
	if w.Code != 302 || challengeOf(w) != "cookie302" {
		t.Fatalf("%d %v", w.Code, w.Header())
	}
	// Whoever has the pass meets the rules after it.
	r := request("GET", "a.com", "/")
	cookie, _, _ := strings.Cut(w.Header().Get("Set-Cookie"), ";")
	r.Header.Set("Cookie", cookie)
	if got := h.statusOf(r); got != "451 policy-denied" {
		t.Errorf("with a pass: %s", got)
	}
	// An allow rule spares Under Attack, and no challenge of a rule before it.
	allow := ruletest.Rule(&configv1.AllowAction{})
	h.change(t, platform(js), siteRules(allow))
	if w, _ := h.send(request("GET", "a.com", "/")); challengeOf(w) != "" {
		t.Errorf("an allowed request got %s", challengeOf(w))
	}
	h.change(t, siteRules(demand, allow))
	if w, _ := h.send(r); challengeOf(w) != "" {
		t.Errorf("an allowed request with the pass of a rule got %s", challengeOf(w))
	}
	if w, _ := h.send(request("GET", "a.com", "/")); challengeOf(w) != "js" {
		t.Errorf("a challenge before allow: %s", challengeOf(w))
	}
}

func TestRateLimitsOfRules(t *testing.T) {
	limit := func(status uint32) *configv1.Rule {
		return ruletest.Rule(&configv1.RateLimitAction{Limit: 3, WindowSeconds: 3600, Key: configv1.RateLimitKey_RATE_LIMIT_KEY_ADDRESS, Status: status})
	}
	h := newHandler(t, site(), siteRules(limit(429)))
	for i := range 5 {
		w, _ := h.send(request("GET", "a.com", "/"))
		if over := i >= 3; (w.Code == 429) != over || over && (w.Header().Get("Retry-After") != "3600" || w.Header().Get("X-Svc-Error") != "policy-denied") {
			t.Errorf("%d: %d %v", i, w.Code, w.Header())
		}
	}
	other := request("GET", "a.com", "/")
	other.RemoteAddr = "192.0.2.2:1"
	if got := h.statusOf(other); got != "502 no-origin" {
		t.Errorf("another client: %s", got)
	}
}

// Where rules cannot be used the ones before go on; with none before nothing is let in.
func TestRulesThatCannotBeUsed(t *testing.T) {
	bad := siteRules(ruletest.Rule(&configv1.BlockAction{Status: 200}))
	h := newHandler(t, site())
	for _, step := range []struct {
		entry *configv1.Entry
		fails bool
		want  string
	}{
		{bad, true, "503 policy-unavailable"},
		{siteRules(blockAll()), false, "451 policy-denied"},
		{bad, true, "451 policy-denied"},
		{siteRules(ruletest.Rule(&configv1.LogAction{})), false, "502 no-origin"},
	} {
		if failed := edgetest.Change(t, h.core, []*configv1.Entry{step.entry}); (len(failed) > 0) != step.fails {
			t.Errorf("%v", failed)
		}
		if got := h.statusOf(request("GET", "a.com", "/")); got != step.want {
			t.Errorf("%s, not %s", got, step.want)
		}
	}
}

// A panic in a rule is no way around it.
func TestRulesThatPanicRefuse(t *testing.T) {
	h := newHandler(t, site())
	h.replace("rules", func(*exchange.Exchange) *exchange.Answer { panic("in a rule") })
	if got := h.statusOf(request("GET", "a.com", "/")); got != "503 policy-unavailable" {
		t.Error(got)
	}
}

// The node's own requests are refused by no rule, and are redirected and changed as those of visitors.
func TestRulesOfTheNodesOwnRequests(t *testing.T) {
	h := newHandler(t, site(), siteRules(
		blockAll(), ruletest.Rule(&configv1.ChallengeAction{Type: pow}),
		ruletest.Rule(&configv1.RateLimitAction{Limit: 1, WindowSeconds: 3600, Key: configv1.RateLimitKey_RATE_LIMIT_KEY_HOST, Status: 429}),
		ruletest.When(ruletest.Eq("http.request.uri.path", "/old"), &configv1.RedirectAction{Target: ruletest.Text("/new"), Status: 308}),
		ruletest.WhenAnswered(ruletest.True(), &configv1.HeaderAction{Name: "x-seen", Value: ruletest.Text("yes")})))
	h.pipeline = newPipeline(h.core, zap.NewNop(), true)
	for range 3 {
		if w, _ := h.send(request("GET", "a.com", "/")); w.Header().Get("X-Svc-Error") != "no-origin" || w.Header().Get("X-Seen") != "yes" {
			t.Errorf("%d %v", w.Code, w.Header())
		}
	}
	if w, _ := h.send(request("GET", "a.com", "/old")); w.Code != 308 || w.Header().Get("Location") != "/new" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
}

// Answers that the edge made keep what they need, and those of no site meet no rule.
func TestResponseRulesOfAnswersOfTheEdge(t *testing.T) {
	set := func(name string) *configv1.Rule {
		return ruletest.WhenAnswered(ruletest.True(), &configv1.HeaderAction{Name: name, Value: ruletest.Text("changed")})
	}
	h := newHandler(t, site(), platformRules(
		set("cache-control"), set("content-security-policy"), set("location"), set("retry-after"), set("x-request-id"), set("x-frame-options")))
	for target, changed := range map[string]bool{"/": true, "/.svc/health": false, "/.svc/x": false} {
		w, _ := h.send(request("GET", "a.com", target))
		for name, values := range w.Header() {
			if got := values[0] == "changed"; got != (changed && name == "X-Frame-Options") {
				t.Errorf("%s: %s is %q", target, name, values)
			}
		}
		if got := w.Header().Get("X-Frame-Options") != ""; got != changed {
			t.Errorf("%s: %v", target, w.Header())
		}
	}
	h.ban(t, "", "192.0.2.0/24")
	if w, _ := h.send(request("GET", "a.com", "/")); w.Header().Get("X-Frame-Options") != "" {
		t.Errorf("a ban: %v", w.Header())
	}
}

// recorder is an origin that keeps what it gets as it comes, and answers without reading more than a header.
type recorder struct {
	net.Listener
	heads chan string
}

func startRecorder(t *testing.T) *recorder {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	o := &recorder{ln, make(chan string, 16)}
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			go o.serve(conn)
		}
	}()
	return o
}

func (o *recorder) serve(conn net.Conn) {
	defer conn.Close()
	r := bufio.NewReader(conn)
	for {
		var head strings.Builder
		for !strings.HasSuffix(head.String(), "\r\n\r\n") {
			line, err := r.ReadString('\n')
			if err != nil {
				return
			}
			head.WriteString(line)
		}
		o.heads <- head.String()
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Type: Text/HTML; charset=utf-8\r\nX-Origin: 1\r\nX-Origin: 2\r\nSet-Cookie: a=1\r\n\r\nok")
	}
}

// toRecorder is a server with a site whose origin records; say sends bytes and returns the answer and what the origin got.
func toRecorder(t *testing.T, entries ...*configv1.Entry) (say func(text string) (*http.Response, string)) {
	origin := startRecorder(t)
	port := origin.Addr().(*net.TCPAddr).Port
	h := newHandler(t, append(entries,
		edgetest.Entry("origin-policy", "", &configv1.OriginPolicy{AllowedCidrs: []string{"127.0.0.0/8"}}),
		edgetest.Entry("site", "a", edgetest.Site(uint32(port), "a.com")))...)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _ = h.ServeHTTP(w, r, nil) }))
	t.Cleanup(server.Close)
	return func(text string) (*http.Response, string) {
		conn, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, text)
		response, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		_, _ = io.Copy(io.Discard, response.Body)
		select {
		case head := <-origin.heads:
			return response, head
		default:
			return response, ""
		}
	}
}

// Whatever is asked for, a rewrite makes one request line of it.
func TestRewritesSplitNoRequestLine(t *testing.T) {
	rewrite := &configv1.RewriteAction{
		Target: ruletest.Computed(ruletest.Call("concat", "/v2", ruletest.Field("http.request.uri.path"))), Query: &configv1.QueryEdit{Preserve: true},
	}
	say := toRecorder(t, siteRules(ruletest.Rule(rewrite)))
	for target, want := range map[string]string{
		"/":                           "/v2/",
		"/a%20HTTP/1.1":               "/v2/a%20HTTP/1.1",
		"/a%0d%0aHost:%20b.com%0d%0a": "/v2/a%0D%0AHost:%20b.com%0D%0A",
		"/a%3Fb=c?d":                  "/v2/a%3Fb=c?d",
		"/a%23b":                      "/v2/a%23b",
		"/%252F":                      "/v2/%252F",
		"/a%2Fb":                      "/v2/a/b",
		"/a/../b":                     "/v2/b",
		"/%c3%bc?q=%c3%bc&r=[1]":      "/v2/%C3%BC?q=%c3%bc&r=%5B1%5D",
		"http://a.com/a%20b?c=d":      "/v2/a%20b?c=d",
		"http://a.com?c=d":            "/v2/?c=d",
		"/a?http://b.com/%20HTTP/1.1": "/v2/a?http://b.com/%20HTTP/1.1",
		"/..%2f..%2f.svc%2fx":         "reserved",
		"/a;b=c,d":                    "/v2/a;b=c,d",
	} {
		response, head := say("GET " + target + " HTTP/1.1\r\nHost: a.com\r\n\r\n")
		line, _, _ := strings.Cut(head, "\r\n")
		switch {
		case want == "reserved":
			if head != "" || response.StatusCode != 404 {
				t.Errorf("%s: %d %q", target, response.StatusCode, head)
			}
		case line != "GET "+want+" HTTP/1.1" || strings.Count(head, "\r\n\r\n") != 1 || strings.Count(head, "\r\nHost: ") != 1:
			t.Errorf("%s: %q", target, head)
		}
	}
}

// What rules make of a request is what the origin gets, and what they make of its answer is what the client gets.
func TestRulesFromClientToOriginAndBack(t *testing.T) {
	header := func(name string, v *configv1.RuleValue) *configv1.HeaderAction {
		return &configv1.HeaderAction{Name: name, Value: v}
	}
	say := toRecorder(t,
		platformRules(
			ruletest.Rule(header("x-tier", ruletest.Text("one"))),
			ruletest.WhenAnswered(ruletest.Eq("http.response.headers[x-origin]", "1, 2"), header("x-origin", ruletest.Text("joined")))),
		siteRules(
			ruletest.When(ruletest.Eq("http.request.headers[x-tier]", "one"), header("x-tier", ruletest.Text("two"))),
			ruletest.Rule(header("x-secret", nil)),
			ruletest.When(ruletest.Eq("http.user_agent", "old"), header("user-agent", ruletest.Text("new"))),
			ruletest.In(configv1.RulePhase_RULE_PHASE_ORIGIN, ruletest.When(ruletest.Eq("http.user_agent", "new"),
				header("x-agent", ruletest.Computed(ruletest.Field("http.user_agent"))))),
			ruletest.WhenAnswered(ruletest.And(ruletest.Eq("http.response.code", 200), ruletest.Eq("http.response.content_type.media_type", "text/html")),
				&configv1.HeaderAction{Name: "x-origin", Value: ruletest.Text("more"), Append: true}),
			ruletest.WhenAnswered(ruletest.True(), header("cache-control", ruletest.Text("no-cache")))))
	response, head := say("GET /x HTTP/1.1\r\nHost: a.com\r\nUser-Agent: old\r\nX-Secret: 1\r\nX-Tier: none\r\n\r\n")
	for _, want := range []string{"X-Tier: two\r\n", "User-Agent: new\r\n", "X-Agent: new\r\n"} {
		if strings.Count(head, want) != 1 {
			t.Errorf("no %q in %q", want, head)
		}
	}
	if strings.Contains(head, "X-Secret") || strings.Count(head, "X-Tier") != 1 {
		t.Errorf("%q", head)
	}
	if got := strings.Join(response.Header["X-Origin"], "|"); got != "joined|more" || response.Header.Get("Cache-Control") != "no-cache" {
		t.Errorf("%v", response.Header)
	}
}
