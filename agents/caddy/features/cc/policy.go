package cc

import (
	"time"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
	"edge.svc/caddy/internal/ranges"
)

// Policy is how a site answers a flood. Ask ThresholdsOf for the values that hold. It is immutable.
type Policy struct {
	// FollowTemplate says that the template's thresholds hold, whatever they become; Thresholds is unset then.
	FollowTemplate bool
	Thresholds     Thresholds
}

var defaultTemplate = &Thresholds{
	MaxLevel: exchange.Captcha, Window: 10 * time.Second, SiteQPS: 1000, URLQPS: 200, IPQPS: 50,
	IPBan: 10 * time.Minute, OriginErrorPercent: 50, OriginErrorMinRequests: 100,
	EscalateAfter: 10 * time.Second, Cooldown: time.Minute,
}

var (
	policy = core.PartOf("protection", "cc policy", compilePolicy)
	// Template has the thresholds of sites that follow the template.
	Template = exchange.NewSetting("cc-template", defaultTemplate)
	// ScanProtection is nil while it is off.
	ScanProtection = exchange.NewSetting[*Scan]("scan protection", nil)
)

func init() {
	core.ConfigureKind("protection", core.KindOptions{Features: []string{"challenge-v1"}})
	core.SettingKind("cc-template", Template, func(m *configv1.CcTemplate) (*Thresholds, error) {
		var check ranges.Check
		next := readThresholds(&check, m.GetThresholds())
		return &next, check.Err
	})
	core.SettingKind("unknown-hosts", ScanProtection, compileScan)
}

// ThresholdsOf returns the thresholds that hold for a site, nil while it has no policy.
func ThresholdsOf(t *exchange.Tables, p *exchange.Plan) *Thresholds {
	switch own := policy.Of(p); {
	case own == nil:
		return nil
	case own.FollowTemplate:
		return Template.Of(t)
	default:
		return &own.Thresholds
	}
}

// compilePolicy returns nil while the policy is off.
func compilePolicy(_ *core.Core, _ string, m *configv1.SiteProtection) (*Policy, error) {
	cc := m.GetCc()
	if cc == nil {
		return nil, nil
	}
	p := &Policy{FollowTemplate: cc.GetFollowTemplate()}
	var check ranges.Check
	if !p.FollowTemplate {
		p.Thresholds = readThresholds(&check, cc.GetThresholds())
	}
	return p, check.Err
}

func compileScan(m *configv1.UnknownHosts) (*Scan, error) {
	scan := m.GetScan()
	if !scan.GetEnabled() {
		return nil, nil
	}
	var check ranges.Check
	return &Scan{
		Threshold: check.Number("scan.threshold", scan.GetThreshold(), 10, 10_000),
		Ban:       check.Seconds("scan.ban_seconds", scan.GetBanSeconds(), 60, 86_400),
	}, check.Err
}

func readThresholds(check *ranges.Check, m *configv1.CcThresholds) Thresholds {
	const mostRequests = 1_000_000
	return Thresholds{
		MaxLevel:               check.Level("max_level", m.GetMaxLevel(), exchange.Captcha),
		HighPow:                m.GetHighPowInsteadOfCaptcha(),
		Window:                 check.Seconds("window_seconds", m.GetWindowSeconds(), 5, 60),
		SiteQPS:                check.Number("site_qps", m.GetSiteQps(), 0, mostRequests),
		URLQPS:                 check.Number("url_qps", m.GetUrlQps(), 0, mostRequests),
		IPQPS:                  check.Number("ip_qps", m.GetIpQps(), 0, mostRequests),
		IPBan:                  check.Seconds("ip_ban_seconds", m.GetIpBanSeconds(), 60, 86_400),
		OriginErrorPercent:     check.Number("origin_error_percent", m.GetOriginErrorPercent(), 0, 100),
		OriginErrorMinRequests: check.Number("origin_error_min_requests", m.GetOriginErrorMinRequests(), 0, mostRequests),
		EscalateAfter:          check.Seconds("escalate_after_seconds", m.GetEscalateAfterSeconds(), 1, 3600),
		Cooldown:               check.Seconds("cooldown_seconds", m.GetCooldownSeconds(), 1, 86_400),
	}
}
