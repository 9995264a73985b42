package edge

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
	"edge.svc/caddy/features/requestlog"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
	nodev1 "edge.svc/caddy/gen/svc/node/v1"
	"edge.svc/caddy/internal/edgetest"
	"edge.svc/caddy/internal/ruletest"
)

// logged takes the rows out as the agent does.
func (h *edge) logged(t *testing.T) (rows []*nodev1.LogRow, losses []*nodev1.LogLoss) {
	t.Helper()
	response := requestlog.Of(h.core).Drain(&edgev1.DrainLogsRequest{})
	for _, encoded := range response.GetRows() {
		row := &nodev1.LogRow{}
		if err := proto.Unmarshal(encoded, row); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, row)
	}
	requestlog.Of(h.core).Drain(&edgev1.DrainLogsRequest{Ring: response.GetRing(), Acknowledged: response.GetPosition()})
	return rows, response.GetLosses()
}

func siteLogs(m *configv1.SiteLogs) *configv1.Entry { return edgetest.Entry("site-logs", "a", m) }

var logAll = &configv1.SiteLogs{SampleRate: exchange.SampleParts}

// A row has every field of the request, and what needs a switch with it alone.
func TestALoggedRequestHasEachField(t *testing.T) {
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.WriteHeader(http.StatusTeapot)
		_, _ = io.WriteString(w, "some body")
	}))
	t.Cleanup(origin.Close)
	port := uint32(origin.Listener.Addr().(*net.TCPAddr).Port)
	h := newHandler(t, edgetest.Entry("origin-policy", "", &configv1.OriginPolicy{AllowedCidrs: []string{"127.0.0.0/8"}}),
		edgetest.Entry("site", "a", edgetest.Site(port, "a.com")), siteLogs(logAll))
	ask := func() *nodev1.LogRow {
		t.Helper()
		r := request("POST", "a.com", "/a%20path?secret=1")
		r.Header.Set("User-Agent", "agent")
		r.Header.Set("Referer", "https://b.com/page?token=secret#part")
		r.Header.Set("Cookie", "session=secret")
		r.Header.Set("Authorization", "Bearer secret")
		r.Header.Set("Accept-Language", "de")
		h.send(r)
		rows, _ := h.logged(t)
		if len(rows) != 1 {
			t.Fatalf("%d rows", len(rows))
		}
		return rows[0]
	}
	row := ask()
	if row.GetSiteId() != "a" || row.GetMethod() != "POST" || row.GetHost() != "a.com" || row.GetPath() != "/a%20path" ||
		row.GetStatus() != 418 || row.GetUserAgent() != "agent" || row.GetReferer() != "https://b.com/page" ||
		row.GetSampleRate() != 10_000 || row.GetContentType() != "text/html" || row.GetHttpVersion() != "1.1" ||
		row.GetUpstreamStatus() != 418 || !strings.HasPrefix(row.GetUpstream(), "127.0.0.1:") ||
		!slices.Equal(row.GetClient(), []byte{192, 0, 2, 1}) || row.GetRequestId() == "" || row.GetBoot() == 0 ||
		row.GetRow() == 0 || row.GetAtMs() == 0 || row.GetBytesSent() == 0 || row.GetBytesReceived() == 0 || row.GetBlockReason() != "" {
		t.Errorf("%v", row)
	}
	if strings.Contains(row.String(), "secret") || len(row.GetPeer()) > 0 || len(row.GetHeaders()) > 0 {
		t.Errorf("says too much: %v", row)
	}
	h.change(t, siteLogs(&configv1.SiteLogs{SampleRate: 10_000, LogQuery: true, LogPeer: true, Headers: []string{"accept-language", "x-none"}}))
	row = ask()
	if row.GetQuery() != "secret=1" || len(row.GetPeer()) != 4 || len(row.GetHeaders()) != 1 ||
		row.GetHeaders()[0].GetName() != "accept-language" || row.GetHeaders()[0].GetValue() != "de" {
		t.Errorf("%v", row)
	}
	if text := row.String(); strings.Contains(text, "session") || strings.Contains(text, "Bearer") {
		t.Errorf("says too much: %v", row)
	}
}

// Headers that carry credentials are logged for no site, whatever its entry says.
func TestHeadersWithCredentialsAreNeverLogged(t *testing.T) {
	h := newHandler(t, edgetest.Entry("site", "a", edgetest.Site(0, "a.com")))
	for _, name := range []string{"Authorization", "cookie", "PROXY-Authorization"} {
		base := h.core.Status().Position
		_, failed, err := h.core.Apply(base, edgetest.Position(base.GetRevision()+1),
			[]*configv1.Entry{siteLogs(&configv1.SiteLogs{SampleRate: 1, Headers: []string{name}})}, nil)
		if err != nil || len(failed) != 1 {
			t.Errorf("%s: %v %v", name, failed, err)
		}
	}
}

// Requests that the edge refused are logged whatever the sample is, with the reason; others are not.
func TestRefusedRequestsAreLoggedWithTheReason(t *testing.T) {
	list := []*configv1.Entry{
		edgetest.Entry("ip-list", "l", &configv1.IpList{ListKind: configv1.IpListKind_IP_LIST_KIND_BLOCK, EntryCount: 1}),
		edgetest.Entry("ip-list-chunk", "l/0", &configv1.IpListChunk{ListId: "l", Cidrs: []string{"192.0.2.1/32"}}),
	}
	at := func(path string) ruletest.Node { return ruletest.Eq("http.request.uri.path", path) }
	attack := "/?a=%27%20OR%201%3D1%20--%20%3Cscript%3Ealert(1)%3C/script%3E"
	for _, c := range []struct {
		name, path   string
		entries      []*configv1.Entry
		ban          string
		reason, rule string
	}{
		{"nothing", "/", nil, "none", "", ""},
		{"a ban", "/", nil, "a", "ip_banned", ""},
		{"a block list", "/", list, "none", "ip_blocked", ""},
		{"a rule", "/no", []*configv1.Entry{siteRules(ruletest.When(at("/no"), &configv1.BlockAction{Status: 451}))}, "none", "rule", "s1"},
		{"a challenge", "/", []*configv1.Entry{edgetest.Entry("protection", "a", &configv1.SiteProtection{UnderAttack: true, UnderAttackChallenge: js})}, "none", "challenge", ""},
		{"the WAF", attack, []*configv1.Entry{edgetest.Entry("site-waf", "a", wafSettings(block, sameWAF))}, "none", "crs", ""},
		{"maintenance", "/", []*configv1.Entry{edgetest.Entry("site-maintenance", "a", &configv1.SiteMaintenance{})}, "none", "maintenance", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHandler(t, edgetest.Entry("site", "a", edgetest.Site(0, "a.com")))
			h.setKeys(t)
			h.change(t, c.entries...)
			if c.ban != "none" {
				h.ban(t, c.ban, "192.0.2.1/32")
			}
			h.send(request("GET", "a.com", c.path))
			h.change(t, siteLogs(&configv1.SiteLogs{LogBlocked: true}))
			h.send(request("GET", "a.com", c.path))
			rows, _ := h.logged(t)
			if c.reason == "" {
				if len(rows) != 0 {
					t.Errorf("%v", rows)
				}
				return
			}
			if len(rows) != 1 || rows[0].GetBlockReason() != c.reason || rows[0].GetBlockRuleId() != c.rule || rows[0].GetSampleRate() != 10_000 {
				t.Fatalf("%v", rows)
			}
			if c.reason == "crs" && (!rows[0].GetWafBlocked() || len(rows[0].GetWafRuleIds()) == 0) {
				t.Errorf("%v", rows[0])
			}
		})
	}
}

// A config rule takes the place of the site's sample rate, also for a site that logs nothing; log rules force rows.
func TestRulesDecideWhatIsLogged(t *testing.T) {
	at := func(path string) ruletest.Node { return ruletest.Eq("http.request.uri.path", path) }
	h := newHandler(t, edgetest.Entry("site", "a", edgetest.Site(0, "a.com")), siteRules(
		ruletest.When(at("/yes"), &configv1.ConfigAction{LogSampleRate: proto.Uint32(10_000)}),
		ruletest.When(at("/no"), &configv1.ConfigAction{LogSampleRate: proto.Uint32(0)}),
		ruletest.When(at("/forced"), &configv1.LogAction{})))
	paths := func() (seen []string) {
		for _, path := range []string{"/yes", "/no", "/forced", "/other"} {
			h.send(request("GET", "a.com", path))
		}
		rows, _ := h.logged(t)
		for _, row := range rows {
			seen = append(seen, row.GetPath()+strings.Join(row.GetRuleIds(), ","))
		}
		return seen
	}
	if got := paths(); !slices.Equal(got, []string{"/yess1"}) {
		t.Errorf("without settings: %v", got)
	}
	h.change(t, siteLogs(&configv1.SiteLogs{LogBlocked: true}))
	if got := paths(); !slices.Equal(got, []string{"/yess1", "/forceds3"}) {
		t.Errorf("with a rate of 0: %v", got)
	}
	h.change(t, siteLogs(logAll))
	if got := paths(); !slices.Equal(got, []string{"/yess1", "/forceds3", "/other"}) {
		t.Errorf("with all: %v", got)
	}
}

// Of refused requests a site has 100 rows a second; each one beyond counts as lost.
func TestRefusedRequestsAreLoggedAtABoundedRate(t *testing.T) {
	h := newHandler(t, edgetest.Entry("site", "a", edgetest.Site(0, "a.com")), siteLogs(&configv1.SiteLogs{LogBlocked: true}),
		edgetest.Entry("site-maintenance", "a", &configv1.SiteMaintenance{}))
	const sent = 450
	for range sent {
		h.send(request("GET", "a.com", "/"))
	}
	rows, losses := h.logged(t)
	if len(losses) != 1 || losses[0].GetSiteId() != "a" || uint64(len(rows))+losses[0].GetRows() != sent || len(rows) < 100 {
		t.Errorf("%d rows and losses %v", len(rows), losses)
	}
}

// What logging costs a request at its end: of a site that logs nothing, and of one that logs each.
func BenchmarkRequestLog(b *testing.B) {
	for _, c := range []struct {
		name    string
		entries []*configv1.Entry
	}{{"off", nil}, {"on", []*configv1.Entry{siteLogs(logAll)}}} {
		b.Run(c.name, func(b *testing.B) {
			h := newHandler(b, append(c.entries, edgetest.Entry("site", "a", edgetest.Site(0, "a.com")))...)
			log := requestlog.Of(h.core)
			finish := requestlog.Finish(h.core)
			x := &exchange.Exchange{}
			w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/some/path/of/the/site?with=query", nil)
			r.Header.Set("User-Agent", "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36")
			r.Header.Set("Referer", "https://www.example.com/another/page")
			x.Begin(w, r)
			x.In.Host, x.In.ID = "a.com", "0199f2c4-7a10-7c3e-9a55-2f1d6c0b8e21"
			x.Tables = h.core.Tables()
			x.Plan = core.PlanOfHost(x.Tables, "a.com")
			b.ReportAllocs()
			for i := range b.N {
				if i%10_000 == 9_999 {
					b.StopTimer()
					for {
						response := log.Drain(&edgev1.DrainLogsRequest{})
						if len(response.GetRows()) == 0 {
							break
						}
						log.Drain(&edgev1.DrainLogsRequest{Ring: response.GetRing(), Acknowledged: response.GetPosition()})
					}
					b.StartTimer()
				}
				finish(x)
			}
		})
	}
}
