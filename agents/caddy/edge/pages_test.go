package edge

import (
	"bytes"
	"compress/gzip"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
	"edge.svc/caddy/internal/edgetest"
	"edge.svc/caddy/internal/ruletest"
	"edge.svc/caddy/pages"
)

func template(status uint32, text string, change ...func(*configv1.ErrorPage)) *configv1.ErrorPage {
	m := &configv1.ErrorPage{Status: status, Page: &configv1.ErrorPage_Template{Template: text}}
	for _, each := range change {
		each(m)
	}
	return m
}

func redirectPage(status uint32, url string) *configv1.ErrorPage {
	return &configv1.ErrorPage{Status: status, Page: &configv1.ErrorPage_RedirectUrl{RedirectUrl: url}}
}

func sitePages(intercept bool, pages ...*configv1.ErrorPage) *configv1.Entry {
	return edgetest.Entry("site-pages", "a", &configv1.SitePages{Pages: pages, InterceptOriginErrors: intercept})
}

// startFailing is a site before an origin that fails as the path says.
func startFailing(t *testing.T, entries ...*configv1.Entry) *edge {
	t.Helper()
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status := map[string]int{"/401": 401, "/404": 404, "/418": 418, "/500": 500, "/503": 503, "/grpc": 503}[r.URL.Path]
		h := w.Header()
		h.Set("Content-Type", "text/plain")
		h.Set("Etag", `"1"`)
		h.Set("Last-Modified", "Mon, 02 Nov 2026 00:00:00 GMT")
		h.Set("Www-Authenticate", "Basic")
		h.Set("Allow", "GET")
		h.Set("Retry-After", "7")
		h.Set("Access-Control-Allow-Origin", "https://b.com")
		h.Set("Set-Cookie", "a=b")
		h.Set("Expires", "0")
		if r.URL.Path == "/grpc" {
			h.Set("Content-Type", "application/grpc")
		}
		var text bytes.Buffer
		if r.URL.Path == "/500" {
			h.Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(&text)
			_, _ = z.Write([]byte("of the origin"))
			_ = z.Close()
		} else {
			text.WriteString("of the origin")
		}
		if status == 0 {
			status = 200
		}
		w.WriteHeader(status)
		_, _ = w.Write(text.Bytes())
	}))
	t.Cleanup(origin.Close)
	return newHandler(t, append(entries,
		edgetest.Entry("origin-policy", "", &configv1.OriginPolicy{AllowedCidrs: []string{"127.0.0.0/8"}}),
		edgetest.Entry("site", "a", edgetest.Site(uint32(origin.Listener.Addr().(*net.TCPAddr).Port), "a.com")))...)
}

func TestErrorsOfTheEdgeGetThePagesOfTheirSite(t *testing.T) {
	h := newHandler(t, site(), siteRules(ruletest.When(ruletest.Call("starts_with", ruletest.Field("http.request.uri.path"), ruletest.Literal("/no")), &configv1.BlockAction{Status: 451})),
		sitePages(false, template(404, "own {{status}} {{path}}"), template(4, "class {{status}}"), template(502, "gone {{host}}", func(m *configv1.ErrorPage) { m.ResponseStatus = 200 })))
	for _, c := range []struct {
		method, target string
		status         int
		code, body     string
	}{
		{"GET", "/.svc/<x>", 404, "not-found", "own 404 /.svc/&lt;x&gt;"},
		{"HEAD", "/.svc/x", 404, "not-found", ""},
		{"GET", "/no", 451, "policy-denied", "class 451"},
		// The status of the response is the operator's, the one in the page is the error's.
		{"GET", "/", 200, "no-origin", "gone a.com"},
	} {
		w, _ := h.send(request(c.method, "a.com", c.target))
		if w.Code != c.status || w.Header().Get("X-Svc-Error") != c.code || w.Body.String() != c.body || w.Header().Get("Cache-Control") != "no-store" ||
			w.Header().Get("Content-Length") == "0" || w.Header().Get("X-Request-Id") == "" {
			t.Errorf("%s: %d %v %q", c.target, w.Code, w.Header(), w.Body)
		}
	}
	// Without a page for the class, it is the edge's own; other sites have none of it.
	h.change(t, sitePages(false, template(404, "own")), edgetest.Entry("site", "b", edgetest.Site(0, "b.com")))
	for host, target := range map[string]string{"a.com": "/no", "b.com": "/.svc/x"} {
		if w, _ := h.send(request("GET", host, target)); !strings.Contains(w.Body.String(), "<main>") {
			t.Errorf("%s: %q", host, w.Body)
		}
	}
	edgetest.Change(t, h.core, nil, edgetest.Key("site-pages", "a"))
	if w, _ := h.send(request("GET", "a.com", "/.svc/x")); !strings.Contains(w.Body.String(), "<main>") {
		t.Errorf("%q", w.Body)
	}
}

func TestErrorsOfOriginsAreReplacedWhereTheSiteWantsIt(t *testing.T) {
	h := startFailing(t, sitePages(false, template(4, "4xx {{status}}"), template(5, "5xx {{status}}")))
	for _, target := range []string{"/404", "/500"} {
		if w, _ := h.send(request("GET", "a.com", target)); w.Header().Get("X-Svc-Error") != "" || w.Header().Get("Etag") == "" || strings.Contains(w.Body.String(), "xx") {
			t.Errorf("%s: %d %v %q", target, w.Code, w.Header(), w.Body)
		}
	}
	h.change(t, sitePages(true, template(401, "login"), template(4, "4xx {{status}}"), template(500, "5xx {{status}}", func(m *configv1.ErrorPage) { m.ResponseStatus = 200 })))
	for _, c := range []struct {
		method, target string
		status         int
		code, body     string
	}{
		{"GET", "/401", 401, "origin-error", "login"},
		{"GET", "/404", 404, "origin-error", "4xx 404"},
		{"HEAD", "/404", 404, "origin-error", ""},
		{"GET", "/418", 418, "origin-error", "4xx 418"},
		{"GET", "/500", 200, "origin-error", "5xx 500"},
		// No page of this status.
		{"GET", "/503", 503, "", "of the origin"},
		{"GET", "/", 200, "", "of the origin"},
	} {
		w, _ := h.send(request(c.method, "a.com", c.target))
		if w.Code != c.status || w.Header().Get("X-Svc-Error") != c.code || w.Body.String() != c.body {
			t.Errorf("%s: %d %v %q", c.target, w.Code, w.Header(), w.Body)
		}
		for _, name := range []string{"Www-Authenticate", "Allow", "Retry-After", "Access-Control-Allow-Origin", "Set-Cookie"} {
			if w.Header().Get(name) == "" {
				t.Errorf("%s: %s is gone", c.target, name)
			}
		}
		for _, name := range []string{"Etag", "Last-Modified", "Content-Encoding", "Expires"} {
			if c.code != "" && w.Header().Get(name) != "" {
				t.Errorf("%s: %s is left", c.target, name)
			}
		}
	}
	h.change(t, sitePages(true, template(5, "5xx")))
	if w, _ := h.send(request("GET", "a.com", "/grpc")); w.Body.String() != "of the origin" {
		t.Errorf("gRPC: %q", w.Body)
	}
	r := request("POST", "a.com", "/503")
	r.Header.Set("Content-Type", "application/grpc+proto")
	if w, _ := h.send(r); w.Body.String() != "of the origin" {
		t.Errorf("gRPC: %q", w.Body)
	}
}

func TestErrorPagesRedirect(t *testing.T) {
	h := startFailing(t, sitePages(true, redirectPage(404, "/sorry?s={{status}}&id={{request_id}}#{{host}}"), redirectPage(5, "https://status.example/{{request_id}}")))
	r := request("GET", "a.com", "/404")
	r.Header.Set("X-Request-Id", "abc:12345")
	w, _ := h.send(r)
	if w.Code != 302 || w.Header().Get("Location") != "/sorry?s=404&id=abc%3A12345#{{host}}" || w.Body.Len() != 0 || w.Header().Get("X-Svc-Error") != "origin-error" ||
		w.Header().Get("Cache-Control") != "no-store" || w.Header().Get("Content-Type") != "" || w.Header().Get("Retry-After") != "7" {
		t.Errorf("%d %v %q", w.Code, w.Header(), w.Body)
	}
	if w, _ := h.send(request("GET", "a.com", "/503")); w.Code != 302 || len(w.Header().Get("Location")) != len("https://status.example/")+32 {
		t.Errorf("%d %v", w.Code, w.Header())
	}
	// The target of a redirect that fails itself is not redirected in circles.
	h.change(t, sitePages(true, redirectPage(404, "/404?x")))
	if w, _ := h.send(request("GET", "a.com", "/404")); w.Code != 404 {
		t.Errorf("%d %v", w.Code, w.Header())
	}
}

func TestPagesOfThePlatform(t *testing.T) {
	off := edgetest.Site(0, "off.com")
	off.Disabled = true
	h := newHandler(t, edgetest.Entry("site", "a", off), sitePages(false, template(5, "of the site")),
		edgetest.Entry("platform-pages", "", &configv1.PlatformPages{UnknownHost: "who is {{host}}?", SiteDisabled: "closed {{status}}"}))
	expect := func(host string, status int, code, body string) {
		t.Helper()
		if w, _ := h.send(request("GET", host, "/")); w.Code != status || w.Header().Get("X-Svc-Error") != code || !strings.Contains(w.Body.String(), body) {
			t.Errorf("%d %v %q", w.Code, w.Header(), w.Body)
		}
	}
	expect("b.com", 404, "unknown-host", "who is b.com?")
	expect("off.com", 503, "site-disabled", "closed 503")
	h.change(t, edgetest.Entry("platform-pages", "", &configv1.PlatformPages{UnknownHost: "who?"}))
	expect("off.com", 503, "site-disabled", "Website disabled")
	edgetest.Change(t, h.core, nil, edgetest.Key("platform-pages", ""))
	expect("b.com", 404, "unknown-host", "Unknown website")
}

func TestChallengesAndAnswersToProgramsKeepTheirBodies(t *testing.T) {
	h := startFailing(t, sitePages(true, template(4, "page"), template(5, "page")), siteProtection(configv1.ChallengeType_CHALLENGE_TYPE_JS))
	h.setKeys(t)
	r := request("GET", "a.com", "/")
	r.Header.Set("Accept", "text/html")
	if w, _ := h.send(r); w.Body.String() == "page" || w.Header().Get("X-Svc-Challenge") == "" {
		t.Errorf("%d %v %q", w.Code, w.Header(), w.Body)
	}
	r = request("GET", "a.com", "/")
	r.Header.Set("Cdn-Loop", h.core.LoopID())
	if w, _ := h.send(r); w.Code != 508 || w.Body.String() == "page" {
		t.Errorf("%d %q", w.Code, w.Body)
	}
}

func TestPagesThatCannotBeAreRefused(t *testing.T) {
	for name, entry := range map[string]*configv1.Entry{
		"two of a status":    sitePages(false, template(404, "x"), template(404, "y")),
		"a success":          sitePages(false, template(200, "x")),
		"a class":            sitePages(false, template(3, "x")),
		"no template":        sitePages(false, template(404, "")),
		"a large template":   sitePages(false, template(404, strings.Repeat("x", pages.MaxTemplateBytes+1))),
		"no redirect":        sitePages(false, redirectPage(404, "//b.com")),
		"a script":           sitePages(false, redirectPage(404, "javascript:alert(1)")),
		"a split line":       sitePages(false, redirectPage(404, "/a\r\nX: y")),
		"a status":           sitePages(false, template(404, "x", func(m *configv1.ErrorPage) { m.ResponseStatus = 199 })),
		"a platform page":    edgetest.Entry("platform-pages", "", &configv1.PlatformPages{UnknownHost: strings.Repeat("x", pages.MaxTemplateBytes+1)}),
		"no network":         maintained(func(m *configv1.SiteMaintenance) { m.AllowedCidrs = []string{"a"} }),
		"no path":            maintained(func(m *configv1.SiteMaintenance) { m.AllowedPathPrefixes = []string{"a"} }),
		"a long maintenance": maintained(func(m *configv1.SiteMaintenance) { m.RetryAfterSeconds = 86_401 }),
	} {
		if failed := edgetest.Change(t, newHandler(t, site()).core, []*configv1.Entry{entry}); len(failed) != 1 {
			t.Errorf("%s: %v", name, failed)
		}
	}
	largest := make([]*configv1.ErrorPage, 0, 13)
	for _, status := range []uint32{400, 401, 403, 404, 405, 410, 429, 500, 502, 503, 504, 4, 5} {
		largest = append(largest, template(status, strings.Repeat("x", pages.MaxTemplateBytes)))
	}
	newHandler(t, site()).change(t, sitePages(true, largest...))
}

// A site without pages pays for none.
func TestPagesCostNothingWhereThereAreNone(t *testing.T) {
	h := newHandler(t, site())
	stage := h.pipeline.response[1]
	if stage.name != "pages" {
		t.Fatal(stage.name)
	}
	x := new(exchange.Exchange)
	x.Begin(httptest.NewRecorder(), request("GET", "a.com", "/"))
	x.Tables = h.core.Tables()
	x.Plan = core.PlanOfHost(x.Tables, "a.com")
	a := pages.Respond(x, 502, pages.NoOrigin)
	if n := testing.AllocsPerRun(100, func() { stage.run(x, a) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func maintained(change ...func(*configv1.SiteMaintenance)) *configv1.Entry {
	m := new(configv1.SiteMaintenance)
	for _, each := range change {
		each(m)
	}
	return edgetest.Entry("site-maintenance", "a", m)
}

func TestMaintenance(t *testing.T) {
	h := startFailing(t, sitePages(true, template(5, "of the site")), maintained())
	w, _ := h.send(request("GET", "a.com", "/"))
	if w.Code != 503 || w.Header().Get("X-Svc-Error") != "maintenance" || w.Header().Get("Retry-After") != "" || !strings.Contains(w.Body.String(), "Down for maintenance") {
		t.Errorf("%d %v %q", w.Code, w.Header(), w.Body)
	}
	prefixes := []string{"/404", "/ü/", "/%C3%A9", "/a b", "/100%", "/x%2fy"}
	h.change(t, maintained(func(m *configv1.SiteMaintenance) {
		m.Template, m.RetryAfterSeconds = "back at {{time}} for {{client_ip}}", 600
		m.AllowedCidrs = []string{"198.51.100.0/24", "2001:db8::/64"}
		m.AllowedPathPrefixes = prefixes
	}))
	w, _ = h.send(request("GET", "a.com", "/"))
	if w.Code != 503 || w.Header().Get("X-Svc-Error") != "maintenance" || w.Header().Get("Retry-After") != "600" || !strings.HasPrefix(w.Body.String(), "back at 20") {
		t.Errorf("%d %v %q", w.Code, w.Header(), w.Body)
	}
	ask := func(method, from, target string) string {
		r := request(method, "a.com", target)
		r.RemoteAddr = from
		w, _ := h.send(r)
		return w.Header().Get("X-Svc-Error")
	}
	const maintenance, client = "maintenance", "192.0.2.1:1"
	for from, want := range map[string]string{"198.51.100.7:1": "", "[::ffff:198.51.100.7]:1": "", "[2001:db8::9]:1": "", "[2001:db8:1::9]:1": maintenance, client: maintenance} {
		if got := ask("HEAD", from, "/"); got != want {
			t.Errorf("%s: %q", from, got)
		}
	}
	for target, want := range map[string]string{
		"/%C3%BC/x": "", "/%C3%A9t%C3%A9": "", "/a%20b": "", "/100%25": "",
		"/404/../": maintenance, "/404%2f..%2fadmin": maintenance, "/404/..;/admin": maintenance, "/404/%2e%2e/admin": maintenance,
		`/404\..\admin`: maintenance, "/%34%30%34": maintenance, "//404": maintenance, "/x/../404": maintenance, "/x/y": maintenance,
		"/x%2fy": maintenance, "/a%2e%2e/": maintenance, "/u": maintenance, "/100": maintenance,
		// Visitors of an exempt path may meet a challenge.
		"/.svc/challenge/none":                  "not-found",
		"/.well-known/acme-challenge/unknown-1": "",
	} {
		if got := ask("GET", client, target); got != want {
			t.Errorf("%s: %q, not %q", target, got, want)
		}
	}
	// Nobody vouches for this address.
	h.replace("client", func(x *exchange.Exchange) *exchange.Answer {
		x.In.Client, x.In.Claimed = netip.MustParseAddr("198.51.100.7"), true
		return nil
	})
	if got := ask("GET", client, "/"); got != maintenance {
		t.Errorf("a claimed address: %q", got)
	}
	edgetest.Change(t, h.core, nil, edgetest.Key("site-maintenance", "a"))
	if got := ask("GET", client, "/"); got != "" {
		t.Errorf("after it: %q", got)
	}
}

// A banned client learns nothing of the maintenance, and no rule runs in it.
func TestPlaceOfMaintenance(t *testing.T) {
	h := newHandler(t, site(), siteRules(blockAll()), maintained())
	if got := h.statusOf(request("GET", "a.com", "/.svc/x")); got != "503 maintenance" {
		t.Error(got)
	}
	h.ban(t, "a", "192.0.2.0/24")
	if got := h.statusOf(request("GET", "a.com", "/")); got != "403 ip-banned" {
		t.Error(got)
	}
}
