package rules

import (
	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
)

const (
	maxSiteRules, maxPlatformRules = 64, 32
	// An expression of 4,096 characters is at most some 12 KiB as a tree; a rule has at most 18 of them.
	maxSiteBody, maxPlatformBody = 16 << 20, 8 << 20
)

var (
	platformRules = exchange.NewSetting[*program]("platform-rules", nil)
	siteRules     = core.PartOf("site-rules", "rules", compileSiteRules)
)

func init() {
	features := []string{"rules-v1", "rules-v2", "rules-v3"}
	// Rules read the fingerprint, and count by it.
	core.RegisterCapability("ja4-v1", "raw-path-v1")
	core.ConfigureKind("site-rules", core.KindOptions{Features: features, MaxBody: maxSiteBody, Guards: true})
	core.SettingKind("platform-rules", platformRules, compilePlatformRules)
	core.ConfigureKind("platform-rules", core.KindOptions{Features: features, MaxBody: maxPlatformBody, Guards: true})
}

func compileSiteRules(_ *core.Core, _ string, m *configv1.SiteRules) (*program, error) {
	return compileRules(m.GetRules(), false, maxSiteRules)
}

func compilePlatformRules(m *configv1.PlatformRules) (*program, error) {
	return compileRules(m.GetRules(), true, maxPlatformRules)
}
