package edge

import (
	"net"
	"net/http"
	"os"
	"strings"
	"testing"

	"edge.svc/caddy/exchange"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
	"edge.svc/caddy/internal/edgetest"
	"edge.svc/caddy/pages"
)

// reached says how a code is reached: by a request to a site with these entries, or in another test.
type reached struct {
	entries []*configv1.Entry
	request *http.Request
	prepare func(h *edge)
	// The file of the other test, where more than a request is needed.
	elsewhere string
	status    int
}

func TestEveryCodeIsReached(t *testing.T) {
	silent := silentOrigin(t)
	local := edgetest.Entry("origin-policy", "", &configv1.OriginPolicy{AllowedCidrs: []string{"127.0.0.0/8"}})
	with := func(change func(*configv1.Site)) []*configv1.Entry {
		s := edgetest.Site(0, "a.com")
		change(s)
		return []*configv1.Entry{edgetest.Entry("site", "a", s), local}
	}
	plain := []*configv1.Entry{site(), local}
	get := func(target string, change ...func(*http.Request)) *http.Request {
		r := request("GET", "a.com", target)
		for _, each := range change {
			each(r)
		}
		return r
	}
	post := func(target, body string) *http.Request {
		r, _ := http.NewRequest("POST", target, strings.NewReader(body))
		r.Host, r.RemoteAddr, r.RequestURI = "a.com", "192.0.2.1:1234", target
		return r
	}
	table := map[string]reached{
		pages.BadRequest: {entries: plain, status: 400, request: get("/", func(r *http.Request) {
			r.ProtoMajor, r.ProtoMinor = 2, 0
			r.Header["Content-Length"] = []string{"1", "2"}
		})},
		pages.BodyTooLarge: {entries: with(func(s *configv1.Site) { s.RequestBodyLimit = 2 }), status: 413, request: post("/", "abc")},
		pages.ChallengeUnavailable: {entries: append([]*configv1.Entry{siteProtection(configv1.ChallengeType_CHALLENGE_TYPE_JS)}, plain...), status: 503,
			request: get("/")},
		pages.ClientCertRequired: {elsewhere: "../features/handshake/stage_test.go"},
		pages.EdgeBusy:           {elsewhere: "../program/inflight_test.go"},
		pages.HTTPSRequired:      {elsewhere: "../listen/ports_test.go"},
		pages.HeaderTooLarge:     {entries: plain, status: 431, request: get("/", func(r *http.Request) { r.Header.Set("Cookie", strings.Repeat("x", 9000)) })},
		pages.IPBanned:           {entries: plain, status: 403, request: get("/"), prepare: func(h *edge) { h.ban(t, "", "192.0.2.0/24") }},
		pages.InternalError: {entries: plain, status: 500, request: get("/"), prepare: func(h *edge) {
			h.replace("fetch", func(*exchange.Exchange) *exchange.Answer { panic("a bug") })
		}},
		pages.LoopDetected:     {entries: plain, status: 508, request: get("/")},
		pages.Maintenance:      {entries: append([]*configv1.Entry{maintained()}, plain...), status: 503, request: get("/")},
		pages.MethodNotAllowed: {entries: plain, status: 405, request: request("TRACE", "a.com", "/")},
		pages.NoOrigin:         {entries: with(func(s *configv1.Site) { s.Origins = nil }), status: 502, request: get("/")},
		pages.NotFound:         {entries: plain, status: 404, request: get("/.svc/x")},
		pages.OriginBusy:       {elsewhere: "../features/origin/capacity_test.go"},
		pages.OriginError:      {elsewhere: "pages_test.go"},
		pages.OriginTimeout: {entries: with(func(s *configv1.Site) {
			s.Origins[0].Address, s.Origins[0].Port = "127.0.0.1", silent
			s.Pool.ReadTimeoutMs = 20
		}), status: 504, request: get("/")},
		pages.OriginUnreachable: {entries: with(func(s *configv1.Site) { s.Origins[0].Address, s.Origins[0].Port = "127.0.0.1", 1 }), status: 502, request: get("/")},
		pages.PathAmbiguous: {entries: append([]*configv1.Entry{edgetest.Entry("site-requests", "a", &configv1.SiteRequests{PathNormalization: true})}, plain...),
			status: 400, request: get("/x%5c..%5cadmin")},
		pages.PolicyDenied: {entries: append([]*configv1.Entry{siteRules(blockAll())}, plain...), status: 451, request: get("/")},
		pages.PolicyUnavailable: {entries: plain, status: 503, request: get("/"), prepare: func(h *edge) {
			h.replace("rules", func(*exchange.Exchange) *exchange.Answer { panic("a bug") })
		}},
		pages.PurgeKeyInvalid:  {elsewhere: "../features/purgemethod/stage_test.go"},
		pages.PurgeRateLimited: {elsewhere: "../features/purgemethod/stage_test.go"},
		pages.PurgeUnavailable: {elsewhere: "../features/purgemethod/stage_test.go"},
		pages.PurgeURLInvalid:  {elsewhere: "../features/purgemethod/stage_test.go"},
		pages.SNIHostMismatch:  {elsewhere: "protocols_same_test.go"},
		pages.SiteDisabled:     {entries: with(func(s *configv1.Site) { s.Disabled = true }), status: 503, request: get("/")},
		pages.TooLarge:         {entries: plain, status: 413, request: post("/.svc/challenge/verify", strings.Repeat("x", 64<<10))},
		pages.URITooLong:       {entries: plain, status: 414, request: get("/" + strings.Repeat("x", 9000))},
		pages.UnknownHost:      {status: 404, request: get("/")},
		pages.WAFBlocked: {entries: append([]*configv1.Entry{edgetest.Entry("site-waf", "a", wafSettings(block, sameWAF))}, plain...), status: 403,
			request: get(attackOnSQL)},
		pages.WAFBusy: {elsewhere: "waf_streams_test.go"},
		pages.WebSocketDisabled: {entries: with(func(s *configv1.Site) { s.Pool.Websocket = false }), status: 403, request: get("/", func(r *http.Request) {
			for name, value := range map[string]string{"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="} {
				r.Header.Set(name, value)
			}
		})},
	}
	for _, code := range pages.Codes() {
		how, ok := table[code]
		switch {
		case !ok:
			t.Errorf("nothing says how %s is reached", code)
		case how.elsewhere != "":
			if text, err := os.ReadFile(how.elsewhere); err != nil || !strings.Contains(string(text), code) {
				t.Errorf("%s does not reach %s: %v", how.elsewhere, code, err)
			}
		default:
			h := newHandler(t, how.entries...)
			if how.prepare != nil {
				how.prepare(h)
			}
			if code == pages.LoopDetected {
				how.request.Header.Set("Cdn-Loop", h.core.LoopID())
			}
			if w, _ := h.send(how.request); w.Code != how.status || w.Header().Get("X-Svc-Error") != code {
				t.Errorf("%s: %d %v", code, w.Code, w.Header())
			}
		}
	}
}

// silentOrigin accepts connections and says nothing.
func silentOrigin(t *testing.T) (port uint32) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return uint32(l.Addr().(*net.TCPAddr).Port)
}
