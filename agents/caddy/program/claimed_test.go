package program_test

import (
	"strings"
	"testing"

	configv1 "edge.svc/caddy/gen/svc/config/v1"
	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
	nodev1 "edge.svc/caddy/gen/svc/node/v1"
	"edge.svc/caddy/internal/edgetest"
	"edge.svc/caddy/program/live"
)

// claims are an edge in proxy_protocol mode with everything that an allow list exempts from, and a list with the
// addresses of 198.51.100.0/24 and all peers of the tests.
func claims(t *testing.T, wrapper map[string]any) *live.Edge {
	t.Helper()
	port := live.StartOrigin(t)
	list := func(id string, kind configv1.IpListKind, cidrs ...string) []*configv1.Entry {
		return []*configv1.Entry{
			edgetest.Entry("ip-list", id, &configv1.IpList{ListKind: kind, EntryCount: uint32(len(cidrs))}),
			edgetest.Entry("ip-list-chunk", id+"/0", &configv1.IpListChunk{ListId: id, Cidrs: cidrs}),
		}
	}
	entries := []*configv1.Entry{
		live.OriginPolicy(),
		edgetest.Entry("client-ip", "", &configv1.ClientIp{Mode: configv1.ClientIpMode_CLIENT_IP_MODE_PROXY_PROTOCOL}),
		edgetest.Entry("site", "site-a", edgetest.Site(port, "a.test")),
		edgetest.Entry("site", "site-b", edgetest.Site(port, "b.test")),
		edgetest.Entry("protection", "site-b", &configv1.SiteProtection{UnderAttack: true, UnderAttackChallenge: configv1.ChallengeType_CHALLENGE_TYPE_JS}),
		edgetest.Entry("site", "site-c", edgetest.Site(port, "c.test")),
		edgetest.Entry("protection", "site-c", &configv1.SiteProtection{Cc: &configv1.CcPolicy{Thresholds: &configv1.CcThresholds{
			MaxLevel: 4, WindowSeconds: 60, IpQps: 1, IpBanSeconds: 600, OriginErrorPercent: 50, EscalateAfterSeconds: 10, CooldownSeconds: 60,
		}}}),
	}
	entries = append(entries, list("allow", configv1.IpListKind_IP_LIST_KIND_ALLOW, "198.51.100.0/24", "127.0.0.0/8")...)
	entries = append(entries, list("block", configv1.IpListKind_IP_LIST_KIND_BLOCK, "198.51.100.3/32", "203.0.113.3/32")...)
	return live.Start(t, wrapper,
		[]*edgev1.JournalRecord{edgetest.Header("node-1"), edgetest.Config(1, entries)},
		[]*edgev1.JournalRecord{edgetest.Header("node-1"), edgetest.Bans(1, []*nodev1.Ban{live.Ban("b1", "", "198.51.100.7/32"), live.Ban("b2", "", "203.0.113.7/32")})})
}

// as asks for the front page of a site for a client that the PROXY header names, and returns the code of the answer, ""
// for the origin's.
func as(e *live.Edge, client, host string) string {
	e.T.Helper()
	header := "PROXY UNKNOWN\r\n"
	if client != "" {
		header = "PROXY TCP4 " + client + " 127.0.0.1 1234 80\r\n"
	}
	answer := e.Raw(header + "GET / HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n\r\n")
	if _, code, ok := strings.Cut(answer, "\r\nX-Svc-Error: "); ok {
		code, _, _ = strings.Cut(code, "\r\n")
		return code
	}
	if !strings.HasPrefix(answer, "HTTP/1.1 200 ") {
		e.T.Fatalf("%s for %s: %q", host, client, answer)
	}
	return ""
}

// Without proxy peers whoever connects names any client: what is named counts for bans, lists, challenges and limits, and
// exempts from none of them.
func TestClaimedAddressesAreNeverExempt(t *testing.T) {
	e := claims(t, nil)
	for _, c := range []struct{ name, client, host, want string }{
		{"a ban of an allowed address", "198.51.100.7", "a.test", "ip-banned"},
		{"a ban of another", "203.0.113.7", "a.test", "ip-banned"},
		{"a block list that an allow list overrules", "198.51.100.3", "a.test", "policy-denied"},
		{"a block list", "203.0.113.3", "a.test", "policy-denied"},
		{"a challenge of an allowed address", "198.51.100.1", "b.test", "challenge-unavailable"},
		{"an allowed address that nothing stands against", "198.51.100.1", "a.test", ""},
		{"a peer on the allow list, asking for itself", "", "b.test", ""},
		{"a peer on the allow list that names itself", "127.0.0.1", "b.test", ""},
	} {
		if got := as(e, c.client, c.host); got != c.want {
			t.Errorf("%s: %q", c.name, got)
		}
	}
	e.Until("an allowed address is banned for its rate", func() bool { return as(e, "198.51.100.2", "c.test") == "ip-banned" })
}

func TestAddressesOfProxyPeersAreExempt(t *testing.T) {
	e := claims(t, map[string]any{"proxy_peers": []string{"127.0.0.0/8"}})
	for _, c := range []struct{ name, client, host, want string }{
		{"a banned address", "198.51.100.7", "a.test", ""},
		{"a blocked address", "198.51.100.3", "a.test", ""},
		{"a challenged address", "198.51.100.1", "b.test", ""},
		{"a banned address that is not allowed", "203.0.113.7", "a.test", "ip-banned"},
	} {
		if got := as(e, c.client, c.host); got != c.want {
			t.Errorf("%s: %q", c.name, got)
		}
	}
	// The next one would be over 1 a second in 60 seconds.
	for range 70 {
		if got := as(e, "198.51.100.2", "c.test"); got != "" {
			t.Fatalf("an allowed address got %q for its rate", got)
		}
	}
}
