package svccore

import (
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	configv1 "edge.svc/caddy/gen/svc/config/v1"
	"edge.svc/caddy/svccc"
	"edge.svc/caddy/svcchallenge"
)

// Protection is what a site asks of its visitors. It is immutable and shared.
type Protection struct {
	// UnderAttack challenges every visitor with Challenge.
	UnderAttack bool
	Challenge   svcchallenge.Level
	PassTTL     time.Duration
	// Leading zero bits.
	PowDifficulty, PowHighDifficulty uint8
	LogJA4                           bool
	// CC is nil while the policy is off.
	CC *CCPolicy
}

// CCPolicy is how a site answers a flood. Ask Tables.Thresholds for the values that hold.
type CCPolicy struct {
	// FollowTemplate says that the template's thresholds hold, whatever they become; Thresholds is unset then.
	FollowTemplate bool
	Thresholds     CCThresholds
}

// CCThresholds says when CC mitigation does what.
type CCThresholds = svccc.Thresholds

// PlatformProtection is what is asked of the visitors of every site.
type PlatformProtection struct {
	UnderAttack bool
	Challenge   svcchallenge.Level
}

var (
	defaultProtection = &Protection{
		Challenge: svcchallenge.JS, PassTTL: 30 * time.Minute, PowDifficulty: 16, PowHighDifficulty: 20,
	}
	calmPlatform      = &PlatformProtection{Challenge: svcchallenge.JS}
	defaultCCTemplate = &CCThresholds{
		MaxLevel: svcchallenge.Captcha, Window: 10 * time.Second, SiteQPS: 1000, URLQPS: 200, IPQPS: 50,
		IPBan: 10 * time.Minute, OriginErrorPercent: 50, OriginErrorMinRequests: 100,
		EscalateAfter: 10 * time.Second, Cooldown: time.Minute,
	}
)

// Protection returns the settings of a site, the defaults where it has none.
func (t *Tables) Protection(siteID string) *Protection {
	if t.protection.size > 0 {
		if p, ok := t.protection.get(siteID); ok {
			return p
		}
	}
	return defaultProtection
}

// Thresholds returns the thresholds that hold under a policy.
func (t *Tables) Thresholds(policy *CCPolicy) *CCThresholds {
	if policy.FollowTemplate {
		return t.CCTemplate
	}
	return &policy.Thresholds
}

func compileProtection(_ *Core, id string, body []byte) (apply, error) {
	if id == "" {
		return nil, errors.New("protection needs the id of its site")
	}
	var message configv1.SiteProtection
	if err := proto.Unmarshal(body, &message); err != nil {
		return nil, fmt.Errorf("body is not the protection of a site: %w", err)
	}
	next, err := readProtection(&message)
	if err != nil {
		return nil, err
	}
	return func(e *edit) { e.tables.protection = e.tables.protection.set(e.nodes, id, next) }, nil
}

func removeProtection(e *edit, id string) {
	if _, ok := e.tables.protection.get(id); ok {
		e.tables.protection = e.tables.protection.delete(e.nodes, id)
	}
}

// readProtection takes an unset field as its default.
func readProtection(message *configv1.SiteProtection) (*Protection, error) {
	p := *defaultProtection
	var r rangeCheck
	p.UnderAttack, p.LogJA4 = message.GetUnderAttack(), message.GetLogJa4()
	p.Challenge = r.level("under_attack_challenge", message.GetUnderAttackChallenge(), p.Challenge)
	if v := message.GetPassTtlSeconds(); v != 0 {
		p.PassTTL = r.seconds("pass_ttl_seconds", v, 300, 86_400)
	}
	if v := message.GetPowDifficulty(); v != 0 {
		p.PowDifficulty = uint8(r.number("pow_difficulty", v, 8, 24))
	}
	if v := message.GetPowHighDifficulty(); v != 0 {
		p.PowHighDifficulty = uint8(r.number("pow_high_difficulty", v, uint32(p.PowDifficulty), 26))
	}
	p.PowHighDifficulty = max(p.PowHighDifficulty, p.PowDifficulty)
	if cc := message.GetCc(); cc != nil {
		p.CC = &CCPolicy{FollowTemplate: cc.GetFollowTemplate()}
		if !p.CC.FollowTemplate {
			p.CC.Thresholds = r.thresholds(cc.GetThresholds())
		}
	}
	return &p, r.err
}

func compilePlatformProtection(_ *Core, id string, body []byte) (apply, error) {
	if id != "" {
		return nil, errOnlyOne
	}
	var message configv1.PlatformProtection
	if err := proto.Unmarshal(body, &message); err != nil {
		return nil, fmt.Errorf("body is not the protection of the platform: %w", err)
	}
	var r rangeCheck
	next := &PlatformProtection{
		UnderAttack: message.GetUnderAttack(),
		Challenge:   r.level("under_attack_challenge", message.GetUnderAttackChallenge(), calmPlatform.Challenge),
	}
	return func(e *edit) { e.tables.Platform = next }, r.err
}

func removePlatformProtection(e *edit, _ string) { e.tables.Platform = calmPlatform }

func compileCCTemplate(_ *Core, id string, body []byte) (apply, error) {
	if id != "" {
		return nil, errOnlyOne
	}
	var message configv1.CcTemplate
	if err := proto.Unmarshal(body, &message); err != nil {
		return nil, fmt.Errorf("body is not a CC template: %w", err)
	}
	var r rangeCheck
	next := r.thresholds(message.GetThresholds())
	return func(e *edit) { e.tables.CCTemplate = &next }, r.err
}

func removeCCTemplate(e *edit, _ string) { e.tables.CCTemplate = defaultCCTemplate }

// compileChallengeKeys takes the mark of a rotation in the history of revisions. Keys never travel in entries, so there
// is nothing to do with it.
func compileChallengeKeys(_ *Core, id string, body []byte) (apply, error) {
	if id != "" {
		return nil, errOnlyOne
	}
	if err := proto.Unmarshal(body, &configv1.ChallengeKeysMarker{}); err != nil {
		return nil, fmt.Errorf("body is not a mark of challenge keys: %w", err)
	}
	return func(*edit) {}, nil
}

func removeChallengeKeys(*edit, string) {}

// rangeCheck reads fields and remembers the first that is out of its range.
type rangeCheck struct{ err error }

func (r *rangeCheck) number(field string, v, least, most uint32) uint32 {
	if (v < least || v > most) && r.err == nil {
		r.err = fmt.Errorf("%s is %d, not between %d and %d", field, v, least, most)
	}
	return v
}

func (r *rangeCheck) seconds(field string, v, least, most uint32) time.Duration {
	return time.Duration(r.number(field, v, least, most)) * time.Second
}

func (r *rangeCheck) level(field string, v configv1.ChallengeType, unset svcchallenge.Level) svcchallenge.Level {
	if v == configv1.ChallengeType_CHALLENGE_TYPE_UNSPECIFIED {
		return unset
	}
	if _, known := configv1.ChallengeType_name[int32(v)]; !known && r.err == nil {
		r.err = fmt.Errorf("%s %d needs a capability this node lacks", field, v)
	}
	return svcchallenge.Level(v)
}

func (r *rangeCheck) thresholds(m *configv1.CcThresholds) CCThresholds {
	const mostRequests = 1_000_000
	return CCThresholds{
		MaxLevel:               r.level("max_level", m.GetMaxLevel(), svcchallenge.Captcha),
		HighPow:                m.GetHighPowInsteadOfCaptcha(),
		Window:                 r.seconds("window_seconds", m.GetWindowSeconds(), 5, 60),
		SiteQPS:                r.number("site_qps", m.GetSiteQps(), 0, mostRequests),
		URLQPS:                 r.number("url_qps", m.GetUrlQps(), 0, mostRequests),
		IPQPS:                  r.number("ip_qps", m.GetIpQps(), 0, mostRequests),
		IPBan:                  r.seconds("ip_ban_seconds", m.GetIpBanSeconds(), 60, 86_400),
		OriginErrorPercent:     r.number("origin_error_percent", m.GetOriginErrorPercent(), 0, 100),
		OriginErrorMinRequests: r.number("origin_error_min_requests", m.GetOriginErrorMinRequests(), 0, mostRequests),
		EscalateAfter:          r.seconds("escalate_after_seconds", m.GetEscalateAfterSeconds(), 1, 3600),
		Cooldown:               r.seconds("cooldown_seconds", m.GetCooldownSeconds(), 1, 86_400),
	}
}
