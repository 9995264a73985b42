package edge

import (
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
	"edge.svc/caddy/features/bans"
	"edge.svc/caddy/features/cc"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
	"edge.svc/caddy/internal/edgetest"
)

// oneASecond bans clients above 5 requests in 5 seconds.
func oneASecond(siteID string) *configv1.Entry {
	return edgetest.Entry("protection", siteID, &configv1.SiteProtection{Cc: &configv1.CcPolicy{Thresholds: &configv1.CcThresholds{
		MaxLevel: 4, WindowSeconds: 5, IpQps: 1, IpBanSeconds: 600, OriginErrorPercent: 50, EscalateAfterSeconds: 10, CooldownSeconds: 60,
	}}})
}

// codes are the codes of so many answers to the same request.
func (h *edge) codes(n int, change func(i int, r *http.Request)) string {
	var codes []string
	for i := range n {
		r := request("GET", "a.com", "/")
		change(i, r)
		w, _ := h.send(r)
		codes = append(codes, w.Header().Get("X-Svc-Error"))
	}
	return strings.Join(codes, " ")
}

const (
	within = "no-origin no-origin no-origin no-origin no-origin"
	beyond = within + " ip-banned ip-banned"
)

func TestClientOverItsRateIsAnsweredAsBanned(t *testing.T) {
	clientIP := func(c *configv1.ClientIp) *configv1.Entry { return edgetest.Entry("client-ip", "", c) }
	list := func(kind configv1.IpListKind, cidr string) []*configv1.Entry {
		return []*configv1.Entry{
			edgetest.Entry("ip-list", "l", &configv1.IpList{ListKind: kind, EntryCount: 1}),
			edgetest.Entry("ip-list-chunk", "l/0", &configv1.IpListChunk{ListId: "l", Cidrs: []string{cidr}}),
		}
	}
	header := &configv1.ClientIp{Mode: configv1.ClientIpMode_CLIENT_IP_MODE_HEADER, Header: "X-Real", TrustedCidrs: []string{"192.0.2.0/24"}}
	for _, c := range []struct {
		name    string
		entries []*configv1.Entry
		change  func(i int, r *http.Request)
		want    string
	}{
		{"a client", nil, func(int, *http.Request) {}, beyond},
		{"in direct mode X-Forwarded-For is nobody's address", nil, func(i int, r *http.Request) {
			r.Header.Set("X-Forwarded-For", fmt.Sprintf("203.0.113.%d", i))
			r.Header.Set("X-Real-IP", fmt.Sprintf("203.0.113.%d", i))
			r.Header.Set("Forwarded", fmt.Sprintf("for=203.0.113.%d", i))
		}, beyond},
		{"an IPv4-mapped address is the IPv4 address", nil, func(i int, r *http.Request) {
			if i%2 == 1 {
				r.RemoteAddr = "[::ffff:192.0.2.1]:99"
			}
		}, beyond},
		{"an IPv6 /64 is one client", nil, func(i int, r *http.Request) { r.RemoteAddr = fmt.Sprintf("[2001:db8::%d]:99", i) }, beyond},
		{"another address is another client", nil, func(i int, r *http.Request) { r.RemoteAddr = fmt.Sprintf("192.0.2.%d:99", i+1) }, within + " no-origin no-origin"},
		{"loopback", nil, func(i int, r *http.Request) { r.RemoteAddr = "127.0.0.1:99" }, within + " no-origin no-origin"},
		{"an allowed address", list(configv1.IpListKind_IP_LIST_KIND_ALLOW, "192.0.2.0/24"), func(int, *http.Request) {}, within + " no-origin no-origin"},
		{"a trusted proxy", []*configv1.Entry{clientIP(header)}, func(int, *http.Request) {}, within + " no-origin no-origin"},
		{"clients behind a trusted proxy", []*configv1.Entry{clientIP(header)}, func(i int, r *http.Request) { r.Header.Set("X-Real", "198.51.100.1") }, beyond},
		{"what is under the reserved prefix counts", nil, func(i int, r *http.Request) { r.URL.Path = "/.svc/x" }, strings.ReplaceAll(beyond, "no-origin", "not-found")},
	} {
		h := newHandler(t, append(c.entries, edgetest.Entry("site", "a", edgetest.Site(0, "a.com")), oneASecond("a"))...)
		if got := h.codes(7, c.change); got != c.want {
			t.Errorf("%s: %s", c.name, got)
		}
	}
}

func TestBanOfAClientIsOfItsSite(t *testing.T) {
	h := newHandler(t, edgetest.Entry("site", "a", edgetest.Site(0, "a.com")), edgetest.Entry("site", "b", edgetest.Site(0, "b.com")), oneASecond("a"))
	h.codes(6, func(int, *http.Request) {})
	if w, _ := h.send(request("GET", "a.com", "/")); w.Code != 403 || w.Header().Get("Connection") != "close" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
	if w, _ := h.send(request("GET", "b.com", "/")); w.Header().Get("X-Svc-Error") != "no-origin" {
		t.Errorf("%v", w.Header())
	}
	if state := bans.Of(h.core).State(); state.GetEntries() != 1 {
		t.Errorf("%v", state)
	}
}

func TestLevelOfASiteChallenges(t *testing.T) {
	h := newHandler(t, edgetest.Entry("site", "a", edgetest.Site(0, "a.com")), oneASecond("a"))
	cc.Of(h.core).RestoreLevels([]*edgev1.SiteLevelState{{SiteId: "a", Site: &edgev1.LevelState{}, Paths: []*edgev1.PathLevelState{
		{Path: "/login", State: &edgev1.LevelState{Level: 2}},
	}}})
	for target, want := range map[string]string{"/": "no-origin", "/login": "challenge-unavailable", "/x/..//login": "challenge-unavailable", "/login/": "no-origin"} {
		if w, _ := h.send(request("GET", "a.com", target)); w.Header().Get("X-Svc-Error") != want {
			t.Errorf("%s: %d %v", target, w.Code, w.Header())
		}
	}
	// Without a policy nothing is left of it.
	h.change(t, edgetest.Entry("protection", "a", &configv1.SiteProtection{}))
	if w, _ := h.send(request("GET", "a.com", "/login")); w.Header().Get("X-Svc-Error") != "no-origin" {
		t.Errorf("%v", w.Header())
	}
}

func TestScannersOfUnknownHosts(t *testing.T) {
	scan := func(host, address configv1.UnknownHostAction) *configv1.Entry {
		return edgetest.Entry("unknown-hosts", "", &configv1.UnknownHosts{
			UnknownHost: host, IpAccess: address, DefaultSiteId: "a", Scan: &configv1.ScanProtection{Enabled: true, Threshold: 10, BanSeconds: 60},
		})
	}
	const (
		page   = configv1.UnknownHostAction_UNKNOWN_HOST_ACTION_PAGE
		closed = configv1.UnknownHostAction_UNKNOWN_HOST_ACTION_CLOSE
		site   = configv1.UnknownHostAction_UNKNOWN_HOST_ACTION_SITE
	)
	for _, c := range []struct {
		name   string
		action configv1.UnknownHostAction
		host   string
		banned bool
	}{
		{"pages", page, "x.com", true}, {"no answer", closed, "x.com", true}, {"the default site", site, "x.com", true},
		{"by address", page, "192.0.2.77", true}, {"no host", page, "", true}, {"a known host", page, "a.com", false},
	} {
		h := newHandler(t, edgetest.Entry("site", "a", edgetest.Site(0, "a.com")), scan(c.action, c.action))
		for range 10 {
			h.send(request("GET", c.host, "/"))
		}
		if n := bans.Of(h.core).State().GetEntries(); n != 0 {
			t.Errorf("%s: banned at the threshold", c.name)
		}
		h.send(request("GET", c.host, "/"))
		if n := bans.Of(h.core).State().GetEntries(); (n == 1) != c.banned {
			t.Errorf("%s: %d bans", c.name, n)
		}
		w, _ := h.send(request("GET", "a.com", "/"))
		if got := w.Header().Get("X-Svc-Error") == "ip-banned"; got != c.banned {
			t.Errorf("%s: %v", c.name, w.Header())
		}
	}
	off := newHandler(t, edgetest.Entry("unknown-hosts", "", &configv1.UnknownHosts{Scan: &configv1.ScanProtection{Threshold: 10, BanSeconds: 60}}))
	proxy := newHandler(t, scan(page, page), edgetest.Entry("client-ip", "", &configv1.ClientIp{
		Mode: configv1.ClientIpMode_CLIENT_IP_MODE_HEADER, Header: "X-Real", TrustedCidrs: []string{"192.0.2.1/32"},
	}))
	for range 50 {
		off.send(request("GET", "x.com", "/"))
		proxy.send(request("GET", "x.com", "/"))
	}
	if bans.Of(off.core).State().GetEntries()+bans.Of(proxy.core).State().GetEntries() != 0 {
		t.Error("banned without scan protection, or a trusted proxy")
	}
}

func TestScanProtectionOutOfRangeFails(t *testing.T) {
	for _, s := range []*configv1.ScanProtection{
		{Enabled: true, Threshold: 9, BanSeconds: 60}, {Enabled: true, Threshold: 10_001, BanSeconds: 60},
		{Enabled: true, Threshold: 10, BanSeconds: 59}, {Enabled: true, Threshold: 10, BanSeconds: 86_401},
	} {
		c := core.New(core.Options{StateDir: t.TempDir(), Values: map[string]any{"ban_capacity": 10, "ban_max_mib": 1}})
		entry := edgetest.Entry("unknown-hosts", "", &configv1.UnknownHosts{Scan: s})
		if _, failed, err := c.Apply(c.Status().Position, edgetest.Position(1), []*configv1.Entry{entry}, nil); err != nil || len(failed) != 1 {
			t.Errorf("%v: %v %v", s, failed, err)
		}
	}
}

// Where any peer may send a PROXY header, whoever connects can have any address banned everywhere: 20 a minute must do.
func TestScanBansAreLimitedWithoutProxyPeers(t *testing.T) {
	for claimed, want := range map[bool]uint64{true: 20, false: 30} {
		h := newHandler(t,
			edgetest.Entry("client-ip", "", &configv1.ClientIp{Mode: configv1.ClientIpMode_CLIENT_IP_MODE_PROXY_PROTOCOL}),
			edgetest.Entry("unknown-hosts", "", &configv1.UnknownHosts{Scan: &configv1.ScanProtection{Enabled: true, Threshold: 10, BanSeconds: 600}}))
		h.replace("client", func(x *exchange.Exchange) *exchange.Answer {
			x.In.Client, x.In.Claimed = netip.MustParseAddrPort(x.In.Remote).Addr(), claimed
			return nil
		})
		for i := range 30 {
			for range 11 {
				r := request("GET", "x.com", "/")
				r.RemoteAddr = fmt.Sprintf("192.0.2.%d:99", i+1)
				h.send(r)
			}
		}
		if n := bans.Of(h.core).State().GetEntries(); n != want {
			t.Errorf("claimed %v: %d bans, not %d", claimed, n, want)
		}
	}
}
