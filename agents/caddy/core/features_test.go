package core_test

import (
	"strings"
	"testing"

	"edge.svc/caddy/core"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
	"edge.svc/caddy/internal/edgetest"

	// What entries are checked by.
	_ "edge.svc/caddy/features/bans"
	_ "edge.svc/caddy/features/cc"
	_ "edge.svc/caddy/features/challenge"
	_ "edge.svc/caddy/features/lists"
	_ "edge.svc/caddy/features/origin"
	_ "edge.svc/caddy/features/sites"
	_ "edge.svc/caddy/listen"
)

func TestEntriesThatCannotBeUsed(t *testing.T) {
	c := core.New(core.Options{StateDir: t.TempDir()})
	needy := edgetest.Entry("site", "needy", edgetest.Site(0, "needy.com"))
	needy.Features = []string{"domains-v2", "waf-v9"}
	edgetest.Change(t, c, []*configv1.Entry{
		needy,
		{Kind: "from-the-future", Id: "x"},
		{Kind: "site", Id: "garbage", Body: []byte{0xff, 0xff}},
		{Kind: "site", Id: ""},
		edgetest.Entry("client-ip", "second", &configv1.ClientIp{}),
		edgetest.Entry("unknown-hosts", "", &configv1.UnknownHosts{UnknownHost: 99}),
		edgetest.Entry("origin-policy", "", &configv1.OriginPolicy{AllowedCidrs: []string{"nonsense"}}),
		edgetest.Entry("ip-list", "l", &configv1.IpList{ListKind: 99}),
		edgetest.Entry("ip-list-chunk", "l/0", &configv1.IpListChunk{ListId: "other"}),
		edgetest.Entry("ip-list-chunk", "l/1", &configv1.IpListChunk{ListId: "l", Cidrs: []string{"1.2.3.4/99"}}),
		edgetest.Entry("site", "good", edgetest.Site(0, "good.com")),
	})
	failed := c.Status().Failed
	if len(failed) != 9 {
		t.Errorf("%d entries failed: %v", len(failed), failed)
	}
	for _, f := range failed {
		if f.GetReason() == "" || len(f.GetReason()) > 500 || len(f.GetReceivedHash()) != 32 {
			t.Errorf("%v", f)
		}
		if f.GetKind() == "from-the-future" && !strings.Contains(f.GetReason(), "capability") {
			t.Errorf("%v", f)
		}
	}
	if core.PlanOfHost(c.Tables(), "good.com") == nil || c.Status().Lacking != 1 {
		t.Error("the entries did not fail alone")
	}
}
