package challenge

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"edge.svc/caddy/core"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
	"edge.svc/caddy/internal/edgetest"
)

func newCore(t *testing.T) *core.Core {
	t.Helper()
	return core.New(core.Options{StateDir: t.TempDir()})
}

func protectionIn(c *core.Core, siteID string) *Protection {
	return ProtectionOf(core.PlanOfSite(c.Tables(), siteID))
}

func TestProtectionOfASite(t *testing.T) {
	c := newCore(t)
	edgetest.Change(t, c, []*configv1.Entry{edgetest.Entry("site", "a", edgetest.Site(0, "a.com"))})
	if p := protectionIn(c, "a"); p.UnderAttack || p.Challenge != JS || p.PassTTL != 1800*time.Second ||
		p.PowDifficulty != 16 || p.PowHighDifficulty != 20 {
		t.Errorf("without settings: %+v", p)
	}
	edgetest.Change(t, c, []*configv1.Entry{
		edgetest.Entry("protection", "a", &configv1.SiteProtection{
			UnderAttack: true, UnderAttackChallenge: configv1.ChallengeType_CHALLENGE_TYPE_CAPTCHA, PassTtlSeconds: 300,
			PowDifficulty: 8, PowHighDifficulty: 26, LogJa4: true,
		}),
	})
	p := protectionIn(c, "a")
	if !p.UnderAttack || p.Challenge != Captcha || p.PassTTL != 5*time.Minute || p.PowDifficulty != 8 || p.PowHighDifficulty != 26 || !p.LogJA4 {
		t.Errorf("%+v", p)
	}
	edgetest.Change(t, c, nil, edgetest.Key("protection", "a"), edgetest.Key("protection", "gone"))
	if protectionIn(c, "a") != defaultProtection {
		t.Error("removed settings hold on")
	}
}

func TestProtectionOfThePlatform(t *testing.T) {
	c := newCore(t)
	if Platform.Of(c.Tables()).UnderAttack {
		t.Error("Under Attack is on without an entry")
	}
	edgetest.Change(t, c, []*configv1.Entry{
		edgetest.Entry("platform-protection", "", &configv1.PlatformProtection{UnderAttack: true, UnderAttackChallenge: configv1.ChallengeType_CHALLENGE_TYPE_POW}),
		edgetest.Entry("challenge-keys", "", &configv1.ChallengeKeysMarker{Version: 4}),
	})
	if p := Platform.Of(c.Tables()); !p.UnderAttack || p.Challenge != Pow {
		t.Errorf("%+v", p)
	}
	edgetest.Change(t, c, nil, edgetest.Key("platform-protection", ""), edgetest.Key("challenge-keys", ""))
	if Platform.Of(c.Tables()).UnderAttack {
		t.Error("Under Attack stays on")
	}
	if failed := c.Status().Failed; len(failed) != 0 {
		t.Errorf("%v", failed)
	}
}

func TestProtectionOutOfRangeFailsAlone(t *testing.T) {
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
		{"platform-protection", "x", &configv1.PlatformProtection{}, "empty id"},
		{"platform-protection", "", &configv1.PlatformProtection{UnderAttackChallenge: -1}, "capability"},
		{"challenge-keys", "x", &configv1.ChallengeKeysMarker{}, "empty id"},
	} {
		failed := edgetest.Change(t, newCore(t), []*configv1.Entry{edgetest.Entry(c.kind, c.id, c.body)})
		if len(failed) != 1 || !strings.Contains(failed[0].GetReason(), c.reason) {
			t.Errorf("%s %q %v: %v", c.kind, c.id, c.body, failed)
		}
	}
}
