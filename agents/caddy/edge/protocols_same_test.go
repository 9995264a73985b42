package edge

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
	nodev1 "edge.svc/caddy/gen/svc/node/v1"
	"edge.svc/caddy/internal/edgetest"
	"edge.svc/caddy/internal/ruletest"
)

const visitorAddress = "203.0.113.7"

// overEach serves the same edge over every protocol, before an origin that answers what it got.
func overEach(t *testing.T, check func(t *testing.T, h *edge, e *protocolEdge)) {
	for _, protocol := range []int{1, 2, 3} {
		t.Run(fmt.Sprintf("HTTP %d", protocol), func(t *testing.T) {
			origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				n, _ := io.Copy(io.Discard, r.Body)
				w.Header().Set("Alt-Svc", `h3=":1"`)
				fmt.Fprint(w, r.Method, " ", n, " ", r.Header.Get("X-Fingerprint"), strings.Repeat("x", 5000))
			}))
			t.Cleanup(origin.Close)
			a := edgetest.Site(uint32(origin.Listener.Addr().(*net.TCPAddr).Port), "a.com")
			a.RequestBodyLimit = 2000
			h := newHandler(t,
				edgetest.Entry("origin-policy", "", &configv1.OriginPolicy{AllowedCidrs: []string{"127.0.0.0/8"}}),
				edgetest.Entry("client-ip", "", &configv1.ClientIp{
					Mode: configv1.ClientIpMode_CLIENT_IP_MODE_HEADER, Header: "x-client", TrustedCidrs: []string{"127.0.0.0/8"},
				}),
				edgetest.Entry("site", "a", a))
			h.setKeys(t)
			check(t, h, serveProtocol(t, h, protocol, func(next http.Handler) http.Handler { return next }))
		})
	}
}

// ask sends a request of the visitor and returns the answer with its body.
func (e *protocolEdge) ask(t *testing.T, c *http.Client, method, path, host string, body io.Reader) (*http.Response, string) {
	t.Helper()
	response, content, err := e.try(t, c, method, path, host, body)
	if err != nil {
		t.Fatal(err)
	}
	return response, content
}

// try is ask where a failure is an outcome.
func (e *protocolEdge) try(t *testing.T, c *http.Client, method, path, host string, body io.Reader) (*http.Response, string, error) {
	t.Helper()
	r, err := http.NewRequest(method, e.url+path, body)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = host
	r.Header.Set("X-Client", visitorAddress)
	r.Header.Set("Accept", "text/html")
	response, err := c.Do(r)
	if err != nil {
		return nil, "", err
	}
	defer response.Body.Close()
	if response.ProtoMajor != e.protocol {
		t.Fatalf("answered over %s", response.Proto)
	}
	content, err := io.ReadAll(response.Body)
	return response, string(content), err
}

func told(response *http.Response) string {
	return fmt.Sprint(response.StatusCode, " ", response.Header.Get("X-Svc-Error"))
}

func TestEveryProtocolAnswersTheSame(t *testing.T) {
	overEach(t, func(t *testing.T, h *edge, e *protocolEdge) {
		c := e.client(t, "a.com")
		want := func(what, method, path, body, status string) *http.Response {
			t.Helper()
			var reader io.Reader
			if body != "" {
				reader = strings.NewReader(body)
			}
			response, _ := e.ask(t, c, method, path, "a.com", reader)
			if got := told(response); got != status {
				t.Errorf("%s: %s, not %s", what, got, status)
			}
			return response
		}
		if r := want("an origin's answer", "GET", "/", "", "200 "); r.Header.Get("Alt-Svc") != "" || r.Header.Get("X-Request-Id") == "" {
			t.Errorf("%v", r.Header)
		}
		want("a body", "POST", "/", strings.Repeat("b", 2000), "200 ")
		want("too large a body", "POST", "/", strings.Repeat("b", 2001), "413 body-too-large")
		want("a tunnel", "TRACE", "/", "", "405 method-not-allowed")

		h.change(t, siteRules(
			ruletest.When(ruletest.Eq("http.request.uri.path", "/old"), &configv1.RedirectAction{Target: ruletest.Text("/new"), Status: 308}),
			ruletest.When(ruletest.Eq("http.request.uri.path", "/no"), &configv1.BlockAction{Status: 451})))
		if r := want("a redirect", "GET", "/old", "", "308 "); r.Header.Get("Location") != "/new" {
			t.Errorf("%v", r.Header)
		}
		want("a block", "GET", "/no", "", "451 policy-denied")

		h.change(t, edgetest.Entry("protection", "a", &configv1.SiteProtection{UnderAttack: true, UnderAttackChallenge: js}))
		r, page := e.ask(t, c, "GET", "/", "a.com", nil)
		if told(r) != "403 " || !strings.Contains(page, "<script") || r.Header.Get("X-Svc-Challenge") != "js" {
			t.Errorf("a challenge: %s %v %.80s", told(r), r.Header, page)
		}
		h.change(t, edgetest.Entry("protection", "a", &configv1.SiteProtection{}))

		h.ban(t, "", visitorAddress+"/32")
		// What asks at the moment in which the ban ends what is open may be ended with it.
		var banned string
		for deadline := time.Now().Add(20 * time.Second); banned == "" && time.Now().Before(deadline); {
			if response, _, err := e.try(t, c, "GET", "/", "a.com", nil); err == nil {
				banned = told(response)
			}
		}
		if banned != "403 ip-banned" {
			t.Errorf("a banned visitor: %s", banned)
		}
	})
}

func TestEveryProtocolRunsPlatformRulesFirstAndThePhaseCache(t *testing.T) {
	overEach(t, func(t *testing.T, h *edge, e *protocolEdge) {
		c := e.client(t, "a.com")
		at := func(path string) ruletest.Node { return ruletest.Eq("http.request.uri.path", path) }
		mark := func(condition ruletest.Node, value string) *configv1.Rule {
			return ruletest.When(condition, &configv1.HeaderAction{Name: "x-fingerprint", Value: ruletest.Text(value)})
		}
		few := func(most uint64) *configv1.Rule {
			return ruletest.In(configv1.RulePhase_RULE_PHASE_CACHE, ruletest.When(at("/few"), &configv1.ConfigAction{RequestBodyLimit: &most}))
		}
		gzip := false
		h.change(t,
			platformRules(
				mark(ruletest.True(), "platform"),
				ruletest.When(at("/no"), &configv1.BlockAction{Status: 403}),
				ruletest.When(at("/moved"), &configv1.RedirectAction{Target: ruletest.Text("/there"), Status: 302}),
				few(1),
				ruletest.In(configv1.RulePhase_RULE_PHASE_CACHE, ruletest.When(at("/plain"), &configv1.ConfigAction{Gzip: &gzip}))),
			siteRules(
				mark(at("/told"), "site"),
				ruletest.When(at("/no"), &configv1.BlockAction{Status: 451}),
				ruletest.When(at("/moved"), &configv1.RedirectAction{Target: ruletest.Text("/elsewhere"), Status: 308}),
				few(3)))

		for _, q := range []struct{ path, body, told, got string }{
			{"/", "", "200 ", "GET 0 platformx"},
			{"/told", "", "200 ", "GET 0 sitex"},
			{"/no", "", "403 policy-denied", ""},
			{"/moved", "", "302 ", ""},
			// The later rule of a phase wins, and those of the site are later.
			{"/few", "abc", "200 ", "POST 3 platformx"},
			{"/few", "abcd", "413 body-too-large", ""},
			{"/", "abcd", "200 ", "POST 4 platformx"},
		} {
			method := "GET"
			if q.body != "" {
				method = "POST"
			}
			response, body := e.ask(t, c, method, q.path, "a.com", strings.NewReader(q.body))
			if told(response) != q.told || !strings.HasPrefix(body, q.got) {
				t.Errorf("%s %q: %s %.40q", q.path, q.body, told(response), body)
			}
			if q.path == "/moved" && response.Header.Get("Location") != "/there" {
				t.Errorf("%v", response.Header)
			}
		}
		// Where answers may be packed they depend on what the client takes.
		for path, vary := range map[string]string{"/plain": "", "/": "Accept-Encoding"} {
			if response, _ := e.ask(t, c, "GET", path, "a.com", nil); response.Header.Get("Vary") != vary {
				t.Errorf("%s: %v", path, response.Header)
			}
		}
	})
}

func TestEveryProtocolCountsClientsAndTheirTraffic(t *testing.T) {
	overEach(t, func(t *testing.T, h *edge, e *protocolEdge) {
		c := e.client(t, "a.com")
		h.change(t, oneASecond("a"))
		var codes []string
		for range 7 {
			code := "403 ip-banned"
			// What asks at the moment in which the ban ends what is open may be ended with it.
			if r, _, err := e.try(t, c, "GET", "/", "a.com", nil); err == nil {
				code = told(r)
			} else if len(codes) < 5 {
				t.Fatal(err)
			}
			codes = append(codes, code)
		}
		if got := strings.Join(codes, ","); got != "200 ,200 ,200 ,200 ,200 ,403 ip-banned,403 ip-banned" {
			t.Errorf("%s", got)
		}
		sums, acknowledged := map[string]*nodev1.SiteMinute{"a": {}}, uint64(0)
		drainInto(h, sums, &acknowledged)
		// Five answers of 5,000 bytes and more, and two pages.
		if a := sums["a"]; a.GetRequests() != 7 || a.GetBytesSent() < 25_000 || a.GetBytesSent() > 60_000 || a.GetBytesReceived() < 7*60 || a.GetBytesReceived() > 7*400 {
			t.Errorf("%v", a)
		}
	})
}

func TestEveryProtocolOverTLSRefusesHostsOfAnotherHandshake(t *testing.T) {
	overEach(t, func(t *testing.T, h *edge, e *protocolEdge) {
		if e.protocol == 1 {
			return
		}
		h.change(t, edgetest.Entry("site", "b", edgetest.Site(0, "b.com")))
		c := e.client(t, "a.com")
		if r, _ := e.ask(t, c, "GET", "/", "b.com", nil); told(r) != "421 sni-host-mismatch" {
			t.Error(told(r))
		}
		if r, _ := e.ask(t, c, "GET", "/", "a.com", nil); told(r) != "200 " {
			t.Error(told(r))
		}
	})
}

// A connection that names no site, as checks of balancers make them, is answered for the node itself alone.
func TestConnectionsOfNoNameAnswerHealthAlone(t *testing.T) {
	for _, protocol := range []int{1, 2, 3} {
		h := newHandler(t, edgetest.Entry("site", "a", edgetest.Site(0, "a.com")))
		e := serveBy(t, h, core.Find[exchange.TLS](h.core), protocol, func(next http.Handler) http.Handler { return next })
		// No client sends an address as a name.
		for _, name := range []string{"", "health.svc.invalid"} {
			c := e.client(t, name)
			for _, host := range []string{"192.0.2.9", "health.svc.invalid"} {
				if r, body := e.ask(t, c, "GET", healthPath, host, nil); told(r) != "200 " || body != "ok" {
					t.Errorf("HTTP %d, %q, %s: %s %q", protocol, name, host, told(r), body)
				}
			}
			if r, _ := e.ask(t, c, "GET", healthPath, "a.com", nil); told(r) != "421 sni-host-mismatch" {
				t.Errorf("HTTP %d, %q: the health on a site's host: %s", protocol, name, told(r))
			}
			if r, _ := e.ask(t, c, "GET", "/", "a.com", nil); told(r) != "421 sni-host-mismatch" {
				t.Errorf("HTTP %d, %q: %s", protocol, name, told(r))
			}
		}
		if _, _, err := e.try(t, e.client(t, "a.com"), "GET", healthPath, "a.com", nil); err == nil {
			t.Errorf("HTTP %d: a site without HTTPS", protocol)
		}
	}
}

func TestRulesTellClientsApartByTheirFingerprint(t *testing.T) {
	overEach(t, func(t *testing.T, h *edge, e *protocolEdge) {
		h.change(t, siteRules(ruletest.Rule(&configv1.HeaderAction{
			Name: "x-fingerprint", Value: ruletest.Computed(ruletest.Field("tls.ja4")),
		})))
		_, body := e.ask(t, e.client(t, "a.com"), "GET", "/", "a.com", nil)
		told := strings.TrimRight(strings.TrimPrefix(body, "GET 0 "), "x")
		switch {
		case e.protocol == 1 && told != "":
			t.Errorf("without TLS %q", told)
		case e.protocol == 2 && (!strings.HasPrefix(told, "t13d") || told[8:10] != "h2"),
			e.protocol == 3 && (!strings.HasPrefix(told, "q13d") || told[8:10] != "h3"):
			t.Errorf("%q", told)
		}
	})
}
