package edge

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"edge.svc/caddy/exchange"
	"edge.svc/caddy/features/count"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
	"edge.svc/caddy/internal/edgetest"
	"edge.svc/caddy/internal/ruletest"
)

// ended is what logs could tell of an exchange.
type ended struct {
	status                  int
	received, sent          int64
	facts, row              string
	sampledAll, sampledNone bool
}

// told has every finished exchange tell itself.
func (h *edge) told() chan ended {
	all := make(chan ended, 100)
	h.pipeline.finish = append(h.pipeline.finish, func(x *exchange.Exchange) {
		e := ended{status: x.Status(), row: h.core.RowID(x), sampledAll: x.Sampled(exchange.SampleParts), sampledNone: x.Sampled(0)}
		e.received, e.sent = x.Traffic()
		var facts []string
		if at, known := exchange.Origin.Known(x); known {
			facts = append(facts, fmt.Sprintf("origin %q %v %d %q %d", at.Origin, at.Asked, at.Status, at.Error, at.Attempts))
		}
		if at, known := exchange.WAF.Known(x); known {
			facts = append(facts, fmt.Sprintf("waf %v %v", at.Blocked, len(at.Logged()) > 0))
		}
		if _, known := exchange.Matched.Known(x); known {
			for _, m := range exchange.Matched.Of(x).Logged() {
				facts = append(facts, fmt.Sprintf("rule %s %d", m.Rule.ID, m.Event))
			}
		}
		if at, known := exchange.Ban.Known(x); known {
			facts = append(facts, fmt.Sprintf("ban %v", at.Site))
		}
		if listed, known := exchange.BlockListed.Known(x); known {
			facts = append(facts, fmt.Sprintf("block list %v", listed))
		}
		if listed, known := exchange.AllowListed.Known(x); known {
			facts = append(facts, fmt.Sprintf("allow list %v", listed))
		}
		if at, known := exchange.Challenged.Known(x); known {
			facts = append(facts, fmt.Sprintf("challenge %s %s %v", at.Demand.Level, at.Pass, at.Met))
		}
		e.facts = strings.Join(facts, "; ")
		all <- e
	})
	return all
}

// What each stage found out is there at the end, over real requests.
func TestFactsAtTheEndOfAnExchange(t *testing.T) {
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/503" {
			w.WriteHeader(503)
		}
		if r.URL.Path == "/breaks" {
			w.Header().Set("Content-Length", "10")
			_, _ = io.WriteString(w, "12345")
		}
	}))
	t.Cleanup(origin.Close)
	port := uint32(origin.Listener.Addr().(*net.TCPAddr).Port)
	list := func(kind configv1.IpListKind) []*configv1.Entry {
		return []*configv1.Entry{
			edgetest.Entry("ip-list", "l", &configv1.IpList{ListKind: kind, EntryCount: 1}),
			edgetest.Entry("ip-list-chunk", "l/0", &configv1.IpListChunk{ListId: "l", Cidrs: []string{"192.0.2.1/32"}}),
		}
	}
	at := func(path string) ruletest.Node { return ruletest.Eq("http.request.uri.path", path) }
	waf := edgetest.Entry("site-waf", "a", wafSettings(block, sameWAF))
	for _, c := range []struct {
		name, path string
		entries    []*configv1.Entry
		ban        string
		status     int
		facts      string
	}{
		{"an origin responds", "/", nil, "none", 200, `origin "origin" true 200 "" 1`},
		{"an origin is ill", "/503", nil, "none", 503, `origin "origin" true 503 "upstream_status" 1`},
		{"an origin breaks off", "/breaks", nil, "none", 200, `origin "origin" true 200 "connect_failed" 1`},
		{"no origin", "/", []*configv1.Entry{edgetest.Entry("site", "a", edgetest.Site(9, "a.com"))}, "none", 502, `origin "origin" true 0 "connect_failed" 1`},
		{"a ban", "/", nil, "", 403, "ban false"},
		{"a ban of the site", "/", nil, "a", 403, "ban true"},
		{"a block list", "/", list(configv1.IpListKind_IP_LIST_KIND_BLOCK), "none", 403, "block list true"},
		{"an allow list", "/", list(configv1.IpListKind_IP_LIST_KIND_ALLOW), "none", 200, `origin "origin" true 200 "" 1; allow list true`},
		{"rules", "/no", []*configv1.Entry{siteRules(
			ruletest.Rule(&configv1.LogAction{}), ruletest.When(at("/no"), &configv1.BlockAction{Status: 451}))}, "none", 451, "rule s1 1; rule s2 3"},
		{"a challenge", "/", []*configv1.Entry{edgetest.Entry("protection", "a", &configv1.SiteProtection{UnderAttack: true, UnderAttackChallenge: js})},
			"none", 403, "challenge js normal false"},
		{"the WAF", "/?a=" + "%27%20OR%201%3D1%20--%20%3Cscript%3Ealert(1)%3C/script%3E", []*configv1.Entry{waf}, "none", 403, "waf true true"},
		{"a host of no site", "/unknown", nil, "none", 404, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHandler(t, edgetest.Entry("origin-policy", "", &configv1.OriginPolicy{AllowedCidrs: []string{"127.0.0.0/8"}}),
				edgetest.Entry("site", "a", edgetest.Site(port, "a.com")))
			h.setKeys(t)
			all := h.told()
			h.change(t, c.entries...)
			if c.ban != "none" {
				h.ban(t, c.ban, "192.0.2.1/32")
			}
			host := "a.com"
			if c.path == "/unknown" {
				host = "b.com"
			}
			w, _ := h.send(request("GET", host, c.path))
			e := <-all
			if e.status != c.status || w.Code != c.status || e.facts != c.facts || !e.sampledAll || e.sampledNone {
				t.Errorf("%d %d %q\n%+v", e.status, w.Code, e.facts, e)
			}
			h.send(request("GET", host, c.path))
			if again := <-all; again.row == e.row || !strings.Contains(e.row, h.core.InstanceID) || again.facts != e.facts {
				t.Errorf("%+v and %+v", e, again)
			}
		})
	}
}

// The same request and response have as many bytes on every protocol.
func TestTrafficOfAnExchangeIsTheSameOnEachProtocol(t *testing.T) {
	var first ended
	overEach(t, func(t *testing.T, h *edge, e *protocolEdge) {
		all := h.told()
		r, err := http.NewRequestWithContext(t.Context(), "POST", e.url+"/x", strings.NewReader("some body"))
		if err != nil {
			t.Fatal(err)
		}
		r.Host = "a.com"
		r.Header.Set("User-Agent", "the same")
		response, err := e.client(t, "a.com").Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		got := <-all
		if response.StatusCode != 200 || got.sent < int64(len(body)) || got.received < 9 {
			t.Errorf("%d %+v", response.StatusCode, got)
		}
		if first.sent == 0 {
			first = got
		}
		if got.received != first.received || got.sent != first.sent {
			t.Errorf("%d and %d bytes, not %d and %d", got.received, got.sent, first.received, first.sent)
		}
	})
}

// A response whose status changes on its way is counted, and told, by the last one.
func TestTheFinalStatusIsTold(t *testing.T) {
	h := newHandler(t, edgetest.Entry("site", "a", edgetest.Site(0, "a.com")))
	all := h.told()
	for i := range h.pipeline.response {
		if s := &h.pipeline.response[i]; s.name == "rules" {
			s.run = func(_ *exchange.Exchange, a *exchange.Answer) { a.Status = 404 }
		}
	}
	h.send(request("GET", "a.com", "/"))
	if e := <-all; e.status != 404 {
		t.Errorf("%+v", e)
	}
	minutes := count.Of(h.core).Drain(0).GetMinutes()
	if len(minutes) != 1 || len(minutes[0].GetStatuses()) != 1 || minutes[0].GetStatuses()[0].GetCode() != 404 {
		t.Error(minutes)
	}
}
