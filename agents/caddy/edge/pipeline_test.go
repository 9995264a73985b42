package edge

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
	"edge.svc/caddy/features/bans"
	"edge.svc/caddy/features/count"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
	nodev1 "edge.svc/caddy/gen/svc/node/v1"
	"edge.svc/caddy/internal/edgetest"
)

// edge is a handler with the core behind it.
type edge struct {
	Handler
	core *core.Core
}

// patternTime is how long an inspection may take, in milliseconds.
var patternTime = 60_000

func newHandler(t testing.TB, entries ...*configv1.Entry) *edge {
	t.Helper()
	c := core.New(core.Options{StateDir: t.TempDir(), Values: map[string]any{"ban_capacity": 100, "ban_max_mib": 1, "waf_pattern_ms": patternTime}})
	h := &edge{core: c}
	h.pipeline = newPipeline(c, zap.NewNop(), false)
	h.change(t, entries...)
	return h
}

func (h *edge) change(t testing.TB, entries ...*configv1.Entry) {
	t.Helper()
	base := h.core.Status().Position
	_, failed, err := h.core.Apply(base, edgetest.Position(base.GetRevision()+1), entries, nil)
	if err != nil || len(failed) > 0 {
		t.Fatal(failed, err)
	}
}

func (h *edge) ban(t *testing.T, siteID, cidr string) {
	t.Helper()
	base := bans.Of(h.core).State().GetPosition()
	target := proto.CloneOf(base)
	target.Sequence++
	ban := &nodev1.Ban{
		Id: "b", SiteId: siteID, Cidr: cidr, Source: nodev1.BanSource_BAN_SOURCE_MANUAL, ExpiresAtMs: time.Now().Add(time.Hour).UnixMilli(),
	}
	if _, err := bans.Of(h.core).Apply(base, target, []*nodev1.Ban{ban}, nil, nil); err != nil {
		t.Fatal(err)
	}
}

// send answers a request from 192.0.2.1, and reports whether the handler gave up the connection instead.
func (h *edge) send(r *http.Request) (w *httptest.ResponseRecorder, aborted bool) {
	w = httptest.NewRecorder()
	w.Header().Set("Server", "Caddy")
	defer func() {
		switch p := recover(); p {
		case nil:
		case http.ErrAbortHandler:
			aborted = true
		default:
			panic(p)
		}
	}()
	_ = h.ServeHTTP(w, r, nil)
	return w, false
}

func request(method, host, target string) *http.Request {
	r := httptest.NewRequest(method, target, nil)
	r.Host = host
	r.RemoteAddr = "192.0.2.1:1234"
	return r
}

// One request that every stage would refuse meets the stages in their order, as each is taken away in turn.
func TestOrderOfTheStages(t *testing.T) {
	site := func(change func(*configv1.Site)) *configv1.Entry {
		s := edgetest.Site(0, "a.com")
		s.Disabled = true
		s.RequestBodyLimit = 5
		s.Pool.Websocket = false
		change(s)
		return edgetest.Entry("site", "a", s)
	}
	h := newHandler(t)
	make1 := func(method, target string) *http.Request {
		r := request(method, "a.com", target)
		r.Header.Set("Cdn-Loop", h.core.LoopID())
		r.Header.Set("Connection", "Upgrade")
		r.Header.Set("Upgrade", "websocket")
		r.Header.Set("Sec-WebSocket-Version", "13")
		r.Header.Set("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")
		return r
	}
	expect := func(r *http.Request, status int, code string) {
		t.Helper()
		w, aborted := h.send(r)
		if aborted || w.Code != status || w.Header().Get("X-Svc-Error") != code || w.Header().Get("Server") != "" ||
			w.Header().Get("X-Request-Id") == "" || w.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("got %d %v, want %d %s", w.Code, w.Header(), status, code)
		}
	}
	h.ban(t, "", "192.0.2.0/24")
	block := []*configv1.Entry{
		edgetest.Entry("ip-list", "b", &configv1.IpList{ListKind: configv1.IpListKind_IP_LIST_KIND_BLOCK, EntryCount: 1}),
		edgetest.Entry("ip-list-chunk", "b/0", &configv1.IpListChunk{ListId: "b", Cidrs: []string{"192.0.2.1/32"}}),
	}
	h.change(t, block...)

	expect(make1("TRACE", "/.svc/x"), 405, "method-not-allowed")
	expect(make1("GET", "/.svc/x"), 508, "loop-detected")
	r := make1("GET", "/.svc/x")
	r.Header.Del("Cdn-Loop")
	expect(r, 404, "unknown-host")
	h.change(t, site(func(*configv1.Site) {}))
	expect(r, 503, "site-disabled")
	h.change(t, site(func(s *configv1.Site) { s.Disabled = false }))
	expect(r, 403, "ip-banned")
	state := bans.Of(h.core).State().GetPosition()
	lifted := proto.CloneOf(state)
	lifted.Sequence++
	if _, err := bans.Of(h.core).Apply(state, lifted, nil, []string{"b"}, nil); err != nil {
		t.Fatal(err)
	}
	expect(r, 404, "not-found")
	r = make1("GET", "/")
	r.Header.Del("Cdn-Loop")
	expect(r, 403, "policy-denied")
	h.change(t, edgetest.Entry("ip-list", "b", &configv1.IpList{ListKind: configv1.IpListKind_IP_LIST_KIND_COLLECTION, EntryCount: 1}))
	expect(r, 403, "websocket-disabled")
	r = request("POST", "a.com", "/")
	r.ContentLength, r.Body = 6, io.NopCloser(strings.NewReader("abcdef"))
	expect(r, 413, "body-too-large")
	// Loopback is not an address an origin may have, so the pool has nothing to try.
	expect(request("GET", "a.com", "/"), 502, "no-origin")
}

func TestAllowListsExempt(t *testing.T) {
	h := newHandler(t, edgetest.Entry("site", "a", edgetest.Site(0, "a.com")),
		edgetest.Entry("ip-list", "b", &configv1.IpList{ListKind: configv1.IpListKind_IP_LIST_KIND_BLOCK, EntryCount: 1}),
		edgetest.Entry("ip-list-chunk", "b/0", &configv1.IpListChunk{ListId: "b", Cidrs: []string{"192.0.2.0/24"}}),
		edgetest.Entry("ip-list", "a", &configv1.IpList{ListKind: configv1.IpListKind_IP_LIST_KIND_ALLOW, EntryCount: 1}),
		edgetest.Entry("ip-list-chunk", "a/0", &configv1.IpListChunk{ListId: "a", Cidrs: []string{"192.0.2.1/32"}}))
	h.ban(t, "", "192.0.2.0/24")
	if w, _ := h.send(request("GET", "a.com", "/")); w.Header().Get("X-Svc-Error") != "no-origin" {
		t.Errorf("an allowed client got %v", w.Header())
	}
	other := request("GET", "a.com", "/")
	other.RemoteAddr = "[::ffff:192.0.2.2]:1234"
	if w, _ := h.send(other); w.Header().Get("X-Svc-Error") != "ip-banned" || w.Header().Get("Connection") != "close" {
		t.Errorf("another got %v", w.Header())
	}
}

func TestUnknownHosts(t *testing.T) {
	const (
		page   = configv1.UnknownHostAction_UNKNOWN_HOST_ACTION_PAGE
		closed = configv1.UnknownHostAction_UNKNOWN_HOST_ACTION_CLOSE
		site   = configv1.UnknownHostAction_UNKNOWN_HOST_ACTION_SITE
	)
	disabled := edgetest.Site(0, "off.com")
	disabled.Disabled = true
	h := newHandler(t, edgetest.Entry("site", "a", edgetest.Site(0, "a.com")), edgetest.Entry("site", "off", disabled))
	for _, c := range []struct {
		name           string
		settings       *configv1.UnknownHosts
		host           string
		code           string
		aborted, warns bool
	}{
		{"nothing set", &configv1.UnknownHosts{}, "x.com", "unknown-host", false, false},
		{"page", &configv1.UnknownHosts{UnknownHost: page, IpAccess: closed}, "x.com", "unknown-host", false, false},
		{"page for what is no host", &configv1.UnknownHosts{UnknownHost: page, IpAccess: closed}, "", "unknown-host", false, false},
		{"close", &configv1.UnknownHosts{UnknownHost: closed, IpAccess: page}, "x.com", "", true, false},
		{"close for an address", &configv1.UnknownHosts{UnknownHost: page, IpAccess: closed}, "192.0.2.9:80", "", true, false},
		{"page for an address", &configv1.UnknownHosts{UnknownHost: closed, IpAccess: page}, "[2001:db8::1]", "unknown-host", false, false},
		{"site", &configv1.UnknownHosts{UnknownHost: site, IpAccess: page, DefaultSiteId: "a"}, "x.com", "no-origin", false, false},
		{"missing site", &configv1.UnknownHosts{UnknownHost: site, DefaultSiteId: "gone"}, "x.com", "unknown-host", false, true},
		{"disabled site", &configv1.UnknownHosts{UnknownHost: site, DefaultSiteId: "off"}, "x.com", "unknown-host", false, true},
	} {
		h.change(t, edgetest.Entry("unknown-hosts", "", c.settings))
		w, aborted := h.send(request("GET", c.host, "/"))
		if aborted != c.aborted || w.Header().Get("X-Svc-Error") != c.code {
			t.Errorf("%s: aborted %v, %v", c.name, aborted, w.Header())
		}
		if warnings := h.core.Report().GetWarnings(); (len(warnings) > 0) != c.warns {
			t.Errorf("%s: %q", c.name, warnings)
		}
	}
}

// A site that needs what this node lacks, and was never served here: it is answered at the names that the
// node understands.
func TestSitesThatCannotBeServedAsTheyAreMeant(t *testing.T) {
	held := func(disabled bool) *configv1.Entry {
		site := edgetest.Site(0, "held.com")
		site.Disabled = disabled
		entry := edgetest.Entry("site", "held", site)
		entry.Features = []string{"later-v1"}
		return entry
	}
	h := newHandler(t, held(false))
	for disabled, want := range map[bool]string{false: "policy-unavailable", true: "site-disabled"} {
		h.change(t, held(disabled))
		if w, _ := h.send(request("GET", "held.com", "/")); w.Code != 503 || w.Header().Get("X-Svc-Error") != want {
			t.Errorf("disabled %v: %d %v", disabled, w.Code, w.Header())
		}
	}
}

func TestHealthCountsForTheNodeAlone(t *testing.T) {
	h := newHandler(t, edgetest.Entry("site", "a", edgetest.Site(0, "a.com")))
	h.ban(t, "", "192.0.2.1/32")
	for method, body := range map[string]string{"GET": "ok", "HEAD": ""} {
		if w, _ := h.send(request(method, "192.0.2.9", "/.svc/health")); w.Code != 200 || w.Body.String() != body || w.Header().Get("Content-Length") != "2" {
			t.Errorf("%s: %d %q %v", method, w.Code, w.Body, w.Header())
		}
	}
	if minutes := count.Of(h.core).Drain(0).GetMinutes(); len(minutes) != 1 || minutes[0].GetSiteId() != "" || minutes[0].GetRequests() != 2 {
		t.Errorf("%v", minutes)
	}
}

// replace puts another stage into a place of the order.
func (h *edge) replace(row string, stage exchange.Stage) {
	for i := range h.pipeline.stages {
		if h.pipeline.stages[i].name == row {
			h.pipeline.stages[i].run = stage
		}
	}
}

func TestPanicStaysInItsRequest(t *testing.T) {
	h := newHandler(t, edgetest.Entry("site", "a", edgetest.Site(0, "a.com")))
	h.replace("disabled", func(*exchange.Exchange) *exchange.Answer { panic("before the answer") })
	w, aborted := h.send(request("GET", "a.com", "/"))
	if aborted || w.Code != 500 || w.Header().Get("X-Svc-Error") != "internal-error" || !strings.Contains(w.Body.String(), "Internal error") ||
		w.Header().Get("X-Request-Id") == "" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
	h.replace("disabled", func(x *exchange.Exchange) *exchange.Answer {
		a := x.RespondFrom(exchange.FromOrigin, 200)
		a.Body = panickingBody{}
		return a
	})
	if _, aborted := h.send(request("GET", "a.com", "/")); !aborted {
		t.Error("an answer that broke off ended as if it were whole")
	}
	// Nothing of it is left for the next request.
	h.replace("disabled", func(*exchange.Exchange) *exchange.Answer { return nil })
	if w, aborted := h.send(request("GET", "a.com", "/")); aborted || w.Header().Get("X-Svc-Error") != "no-origin" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
}

type panickingBody struct{}

// CopyTo panics in the middle of a body.
func (panickingBody) CopyTo(sink exchange.Sink) error {
	_ = sink.Write([]byte("half"))
	panic("in the middle of a body")
}

// Close has nothing to give up.
func (panickingBody) Close() {}
