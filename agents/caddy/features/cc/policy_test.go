package cc

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
	"edge.svc/caddy/internal/edgetest"
)

func strictThresholds() *configv1.CcThresholds {
	return &configv1.CcThresholds{
		MaxLevel: configv1.ChallengeType_CHALLENGE_TYPE_POW, WindowSeconds: 10, SiteQps: 300, UrlQps: 60, IpQps: 20, IpBanSeconds: 3600,
		OriginErrorPercent: 30, OriginErrorMinRequests: 50, EscalateAfterSeconds: 5, CooldownSeconds: 300, HighPowInsteadOfCaptcha: true,
	}
}

func newCore(t *testing.T) *core.Core {
	t.Helper()
	return core.New(core.Options{StateDir: t.TempDir()})
}

func thresholdsIn(c *core.Core, siteID string) *Thresholds {
	return ThresholdsOf(c.Tables(), core.PlanOfSite(c.Tables(), siteID))
}

func TestPolicyOfASite(t *testing.T) {
	c := newCore(t)
	edgetest.Change(t, c, []*configv1.Entry{
		edgetest.Entry("site", "a", edgetest.Site(0, "a.com")), edgetest.Entry("site", "b", edgetest.Site(0, "b.com")),
	})
	if got := thresholdsIn(c, "a"); got != nil {
		t.Errorf("without settings: %+v", got)
	}
	edgetest.Change(t, c, []*configv1.Entry{
		edgetest.Entry("protection", "a", &configv1.SiteProtection{Cc: &configv1.CcPolicy{Thresholds: strictThresholds()}}),
		edgetest.Entry("protection", "b", &configv1.SiteProtection{Cc: &configv1.CcPolicy{FollowTemplate: true}}),
	})
	want := Thresholds{
		MaxLevel: exchange.Pow, HighPow: true, Window: 10 * time.Second, SiteQPS: 300, URLQPS: 60, IPQPS: 20, IPBan: time.Hour,
		OriginErrorPercent: 30, OriginErrorMinRequests: 50, EscalateAfter: 5 * time.Second, Cooldown: 5 * time.Minute,
	}
	if got := thresholdsIn(c, "a"); *got != want {
		t.Errorf("%+v", got)
	}
	if got := thresholdsIn(c, "b"); *got != *defaultTemplate {
		t.Errorf("the template without an entry is %+v", got)
	}
	edgetest.Change(t, c, []*configv1.Entry{edgetest.Entry("cc-template", "", &configv1.CcTemplate{Thresholds: strictThresholds()})})
	if got := thresholdsIn(c, "b"); *got != want {
		t.Errorf("a follower has %+v", got)
	}
	edgetest.Change(t, c, nil, edgetest.Key("protection", "a"), edgetest.Key("protection", "gone"), edgetest.Key("cc-template", ""))
	if thresholdsIn(c, "a") != nil || Template.Of(c.Tables()) != defaultTemplate {
		t.Error("removed settings hold on")
	}
}

func TestPolicyOutOfRangeFailsAlone(t *testing.T) {
	thresholds := func(change func(*configv1.CcThresholds)) proto.Message {
		m := strictThresholds()
		change(m)
		return &configv1.CcTemplate{Thresholds: m}
	}
	for _, c := range []struct {
		kind, id string
		body     proto.Message
		reason   string
	}{
		{"protection", "a", &configv1.SiteProtection{Cc: &configv1.CcPolicy{}}, "window_seconds"},
		{"cc-template", "x", &configv1.CcTemplate{}, "empty id"},
		{"cc-template", "", thresholds(func(m *configv1.CcThresholds) { m.WindowSeconds = 61 }), "window_seconds"},
		{"cc-template", "", thresholds(func(m *configv1.CcThresholds) { m.SiteQps = 1_000_001 }), "site_qps"},
		{"cc-template", "", thresholds(func(m *configv1.CcThresholds) { m.OriginErrorPercent = 101 }), "origin_error_percent"},
		{"cc-template", "", thresholds(func(m *configv1.CcThresholds) { m.IpBanSeconds = 59 }), "ip_ban_seconds"},
		{"cc-template", "", thresholds(func(m *configv1.CcThresholds) { m.EscalateAfterSeconds = 0 }), "escalate_after_seconds"},
		{"cc-template", "", thresholds(func(m *configv1.CcThresholds) { m.CooldownSeconds = 86_401 }), "cooldown_seconds"},
	} {
		failed := edgetest.Change(t, newCore(t), []*configv1.Entry{edgetest.Entry(c.kind, c.id, c.body)})
		if len(failed) != 1 || !strings.Contains(failed[0].GetReason(), c.reason) {
			t.Errorf("%s %q %v: %v", c.kind, c.id, c.body, failed)
		}
	}
}
