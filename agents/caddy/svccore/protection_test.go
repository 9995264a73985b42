package svccore

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	configv1 "edge.svc/caddy/gen/svc/config/v1"
	"edge.svc/caddy/internal/edgetest"
	"edge.svc/caddy/svcchallenge"
)

func strictThresholds() *configv1.CcThresholds {
	return &configv1.CcThresholds{
		MaxLevel: configv1.ChallengeType_CHALLENGE_TYPE_POW, WindowSeconds: 10, SiteQps: 300, UrlQps: 60, IpQps: 20, IpBanSeconds: 3600,
		OriginErrorPercent: 30, OriginErrorMinRequests: 50, EscalateAfterSeconds: 5, CooldownSeconds: 300, HighPowInsteadOfCaptcha: true,
	}
}

func TestProtectionOfASite(t *testing.T) {
	c := newCore(t)
	if p := c.Tables().Protection("a"); p.UnderAttack || p.Challenge != svcchallenge.JS || p.PassTTL != 1800*time.Second ||
		p.PowDifficulty != 16 || p.PowHighDifficulty != 20 || p.CC != nil {
		t.Errorf("without settings: %+v", p)
	}
	change(t, c, []*configv1.Entry{
		edgetest.Entry("protection", "a", &configv1.SiteProtection{
			UnderAttack: true, UnderAttackChallenge: configv1.ChallengeType_CHALLENGE_TYPE_CAPTCHA, PassTtlSeconds: 300,
			PowDifficulty: 8, PowHighDifficulty: 26, LogJa4: true, Cc: &configv1.CcPolicy{Thresholds: strictThresholds()},
		}),
		edgetest.Entry("protection", "b", &configv1.SiteProtection{Cc: &configv1.CcPolicy{FollowTemplate: true}}),
	})
	p := c.Tables().Protection("a")
	if !p.UnderAttack || p.Challenge != svcchallenge.Captcha || p.PassTTL != 5*time.Minute || p.PowDifficulty != 8 || p.PowHighDifficulty != 26 || !p.LogJA4 {
		t.Errorf("%+v", p)
	}
	want := CCThresholds{
		MaxLevel: svcchallenge.Pow, HighPow: true, Window: 10 * time.Second, SiteQPS: 300, URLQPS: 60, IPQPS: 20, IPBan: time.Hour,
		OriginErrorPercent: 30, OriginErrorMinRequests: 50, EscalateAfter: 5 * time.Second, Cooldown: 5 * time.Minute,
	}
	if got := *c.Tables().Thresholds(p.CC); got != want {
		t.Errorf("%+v", got)
	}
	follower := c.Tables().Protection("b")
	if got := c.Tables().Thresholds(follower.CC); *got != *defaultCCTemplate {
		t.Errorf("the template without an entry is %+v", got)
	}
	change(t, c, []*configv1.Entry{edgetest.Entry("cc-template", "", &configv1.CcTemplate{Thresholds: strictThresholds()})})
	if got := c.Tables().Thresholds(follower.CC); *got != want {
		t.Errorf("a follower has %+v", got)
	}
	change(t, c, nil, edgetest.Key("protection", "a"), edgetest.Key("protection", "gone"), edgetest.Key("cc-template", ""))
	if c.Tables().Protection("a") != defaultProtection || c.Tables().CCTemplate != defaultCCTemplate {
		t.Error("removed settings hold on")
	}
}

func TestProtectionOfThePlatform(t *testing.T) {
	c := newCore(t)
	if c.Tables().Platform.UnderAttack {
		t.Error("Under Attack is on without an entry")
	}
	change(t, c, []*configv1.Entry{
		edgetest.Entry("platform-protection", "", &configv1.PlatformProtection{UnderAttack: true, UnderAttackChallenge: configv1.ChallengeType_CHALLENGE_TYPE_POW}),
		edgetest.Entry("challenge-keys", "", &configv1.ChallengeKeysMarker{Version: 4}),
	})
	if p := c.Tables().Platform; !p.UnderAttack || p.Challenge != svcchallenge.Pow {
		t.Errorf("%+v", p)
	}
	change(t, c, nil, edgetest.Key("platform-protection", ""), edgetest.Key("challenge-keys", ""))
	if c.Tables().Platform.UnderAttack {
		t.Error("Under Attack stays on")
	}
	if failed := c.Status().Failed; len(failed) != 0 {
		t.Errorf("%v", failed)
	}
}

func TestProtectionOutOfRangeFailsAlone(t *testing.T) {
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
		{"protection", "", &configv1.SiteProtection{}, "id of its site"},
		{"protection", "a", &configv1.SiteProtection{PassTtlSeconds: 299}, "pass_ttl_seconds"},
		{"protection", "a", &configv1.SiteProtection{PassTtlSeconds: 86_401}, "pass_ttl_seconds"},
		{"protection", "a", &configv1.SiteProtection{PowDifficulty: 7}, "pow_difficulty"},
		{"protection", "a", &configv1.SiteProtection{PowDifficulty: 25}, "pow_difficulty"},
		{"protection", "a", &configv1.SiteProtection{PowDifficulty: 16, PowHighDifficulty: 15}, "pow_high_difficulty"},
		{"protection", "a", &configv1.SiteProtection{PowHighDifficulty: 27}, "pow_high_difficulty"},
		{"protection", "a", &configv1.SiteProtection{UnderAttackChallenge: 5}, "capability"},
		{"protection", "a", &configv1.SiteProtection{Cc: &configv1.CcPolicy{}}, "window_seconds"},
		{"platform-protection", "x", &configv1.PlatformProtection{}, "without an id"},
		{"platform-protection", "", &configv1.PlatformProtection{UnderAttackChallenge: -1}, "capability"},
		{"cc-template", "x", &configv1.CcTemplate{}, "without an id"},
		{"cc-template", "", thresholds(func(m *configv1.CcThresholds) { m.WindowSeconds = 61 }), "window_seconds"},
		{"cc-template", "", thresholds(func(m *configv1.CcThresholds) { m.SiteQps = 1_000_001 }), "site_qps"},
		{"cc-template", "", thresholds(func(m *configv1.CcThresholds) { m.OriginErrorPercent = 101 }), "origin_error_percent"},
		{"cc-template", "", thresholds(func(m *configv1.CcThresholds) { m.IpBanSeconds = 59 }), "ip_ban_seconds"},
		{"cc-template", "", thresholds(func(m *configv1.CcThresholds) { m.EscalateAfterSeconds = 0 }), "escalate_after_seconds"},
		{"cc-template", "", thresholds(func(m *configv1.CcThresholds) { m.CooldownSeconds = 86_401 }), "cooldown_seconds"},
		{"challenge-keys", "x", &configv1.ChallengeKeysMarker{}, "without an id"},
	} {
		core := newCore(t)
		change(t, core, []*configv1.Entry{edgetest.Entry(c.kind, c.id, c.body)})
		failed := core.Status().Failed
		if len(failed) != 1 || !strings.Contains(failed[0].GetReason(), c.reason) {
			t.Errorf("%s %q %v: %v", c.kind, c.id, c.body, failed)
		}
	}
}
