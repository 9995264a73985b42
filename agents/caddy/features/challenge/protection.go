package challenge

import (
	"time"

	"google.golang.org/protobuf/proto"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
	"edge.svc/caddy/internal/ranges"
)

// Protection is what a site asks of its visitors. It is immutable and shared.
type Protection struct {
	// UnderAttack challenges every visitor with Challenge.
	UnderAttack bool
	Challenge   Level
	PassTTL     time.Duration
	// Leading zero bits.
	PowDifficulty, PowHighDifficulty uint8
	LogJA4                           bool
}

// PlatformProtection is what is asked of the visitors of every site.
type PlatformProtection struct {
	UnderAttack bool
	Challenge   Level
}

var (
	defaultProtection = &Protection{
		Challenge: JS, PassTTL: 30 * time.Minute, PowDifficulty: 16, PowHighDifficulty: 20,
	}
	calmPlatform = &PlatformProtection{Challenge: JS}

	protection = core.PartOf("protection", "challenges", compileProtection)
	// Platform is the setting of the cluster.
	Platform = exchange.NewSetting("platform-protection", calmPlatform)
	// Version of the keys that the console made last. Keys never travel in entries: this is the mark of a rotation in the
	// history of revisions.
	keysMark = exchange.NewSetting("challenge-keys", uint64(0))
)

func init() {
	features := core.KindOptions{Features: []string{"challenge-v1"}}
	core.ConfigureKind("protection", features)
	core.ConfigureKind("platform-protection", features)
	core.SwitchesOf("protection", func(running, received *configv1.SiteProtection) *configv1.SiteProtection {
		next := &configv1.SiteProtection{}
		if running != nil {
			next = proto.CloneOf(running)
		} else if !received.GetUnderAttack() {
			return nil
		}
		next.UnderAttack, next.UnderAttackChallenge = received.GetUnderAttack(), received.GetUnderAttackChallenge()
		return next
	})
	core.SettingKind("platform-protection", Platform, compilePlatform)
	core.SettingKind("challenge-keys", keysMark, func(m *configv1.ChallengeKeysMarker) (uint64, error) {
		return m.GetVersion(), nil
	})
}

// ProtectionOf returns the settings of a site, the defaults where it has none.
func ProtectionOf(p *exchange.Plan) *Protection {
	if own := protection.Of(p); own != nil {
		return own
	}
	return defaultProtection
}

// compileProtection takes an unset field as its default.
func compileProtection(_ *core.Core, _ string, m *configv1.SiteProtection) (*Protection, error) {
	p := *defaultProtection
	var check ranges.Check
	p.UnderAttack, p.LogJA4 = m.GetUnderAttack(), m.GetLogJa4()
	p.Challenge = check.Level("under_attack_challenge", m.GetUnderAttackChallenge(), p.Challenge)
	if v := m.GetPassTtlSeconds(); v != 0 {
		p.PassTTL = check.Seconds("pass_ttl_seconds", v, 300, 86_400)
	}
	if v := m.GetPowDifficulty(); v != 0 {
		p.PowDifficulty = uint8(check.Number("pow_difficulty", v, 8, 24))
	}
	if v := m.GetPowHighDifficulty(); v != 0 {
		p.PowHighDifficulty = uint8(check.Number("pow_high_difficulty", v, uint32(p.PowDifficulty), 26))
	}
	p.PowHighDifficulty = max(p.PowHighDifficulty, p.PowDifficulty)
	return &p, check.Err
}

func compilePlatform(m *configv1.PlatformProtection) (*PlatformProtection, error) {
	var check ranges.Check
	return &PlatformProtection{
		UnderAttack: m.GetUnderAttack(),
		Challenge:   check.Level("under_attack_challenge", m.GetUnderAttackChallenge(), calmPlatform.Challenge),
	}, check.Err
}
