package waf

import (
	"errors"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"edge.svc/caddy/core"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
)

func TestSettingsOutOfRange(t *testing.T) {
	exclusion := func(change func(*configv1.WafExclusion)) func(*configv1.SiteWaf) {
		return func(m *configv1.SiteWaf) {
			e := &configv1.WafExclusion{Rules: &configv1.WafExclusion_Rule{Rule: 942100}, Part: configv1.WafPart_WAF_PART_ARGUMENT, Name: "q"}
			change(e)
			m.Exclusions = []*configv1.WafExclusion{e}
		}
	}
	for name, c := range map[string]struct {
		change func(*configv1.SiteWaf)
		want   string
	}{
		"mode":         {func(m *configv1.SiteWaf) { m.Mode = 9 }, "capability"},
		"no mode":      {func(m *configv1.SiteWaf) { m.Mode = 0 }, "capability"},
		"paranoia":     {func(m *configv1.SiteWaf) { m.ParanoiaLevel = 5 }, "paranoia_level"},
		"threshold":    {func(m *configv1.SiteWaf) { m.AnomalyThreshold = 0 }, "anomaly_threshold"},
		"body":         {func(m *configv1.SiteWaf) { m.RequestBodyLimit = 128<<20 + 1 }, "request_body_limit"},
		"own rule":     {func(m *configv1.SiteWaf) { m.ExcludedRules = []uint32{949110} }, "949110"},
		"foreign rule": {func(m *configv1.SiteWaf) { m.ExcludedRules = []uint32{200002} }, "200002"},
		"own family":   {func(m *configv1.SiteWaf) { m.ExcludedFamilies = []uint32{901} }, "901000"},
		"no family":    {func(m *configv1.SiteWaf) { m.ExcludedFamilies = []uint32{4_000_000_000} }, "cannot be excluded"},
		"rules":        {func(m *configv1.SiteWaf) { m.ExcludedRules = make([]uint32, 201) }, "more than 200"},
		"method":       {func(m *configv1.SiteWaf) { m.Methods = []string{"get"} }, "methods"},
		"type":         {func(m *configv1.SiteWaf) { m.ContentTypes = []string{"text"} }, "content_types"},
		"divided type": {func(m *configv1.SiteWaf) { m.ContentTypes = []string{"text/a| |text/b"} }, "content_types"},
		"charset":      {func(m *configv1.SiteWaf) { m.Charsets = []string{"a b"} }, "charsets"},
		"charsets":     {func(m *configv1.SiteWaf) { m.Charsets = make([]string, 33) }, "maximum is 32"},
		"no rule":      {exclusion(func(e *configv1.WafExclusion) { e.Rules = nil }), "neither"},
		"path":         {exclusion(func(e *configv1.WafExclusion) { e.Path = "a" }), "path"},
		"no part":      {exclusion(func(e *configv1.WafExclusion) { e.Part = 0 }), "capability"},
		"no name":      {exclusion(func(e *configv1.WafExclusion) { e.Name = "" }), "name"},
		"long name":    {exclusion(func(e *configv1.WafExclusion) { e.Name = strings.Repeat("n", 257) }), "name"},
		"name of all":  {exclusion(func(e *configv1.WafExclusion) { e.Part = configv1.WafPart_WAF_PART_ALL }), "name"},
		"exclusions": {func(m *configv1.SiteWaf) {
			m.Exclusions = make([]*configv1.WafExclusion, 201)
		}, "more than 200"},
		"too much of them": {func(m *configv1.SiteWaf) {
			for range 200 {
				m.Exclusions = append(m.Exclusions, &configv1.WafExclusion{
					Rules: &configv1.WafExclusion_Tag{Tag: "OWASP_CRS"}, Part: configv1.WafPart_WAF_PART_ARGUMENT, Name: "q",
				})
			}
		}, "parts of rules"},
	} {
		if _, err := compile(sharedCore(), "a", blocking(c.change)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if s, err := compile(sharedCore(), "a", &configv1.SiteWaf{Mode: configv1.WafMode_WAF_MODE_OFF}); s != nil || err != nil {
		t.Error(s, err)
	}
}

// An exclusion by a tag of another rule set is left out and counted; all others hold.
func TestTagsThatNoRuleHas(t *testing.T) {
	e := component.Of(sharedCore())
	before := e.counters.unknownTags.Load()
	tag := func(tag string) *configv1.WafExclusion {
		return &configv1.WafExclusion{Rules: &configv1.WafExclusion_Tag{Tag: tag}, Part: configv1.WafPart_WAF_PART_ARGUMENT, Name: "q"}
	}
	s := settingsOf(t, func(m *configv1.SiteWaf) {
		m.Exclusions = []*configv1.WafExclusion{tag("of-tomorrow"), tag("attack-xss")}
	})
	if n := e.counters.unknownTags.Load() - before; n != 1 || len(s.exclusions) != 1 {
		t.Errorf("%d tags are unknown, %d exclusions hold", n, len(s.exclusions))
	}
	if v := judge(t, s, asked("GET", "/?q="+url.QueryEscape(xss), ""), ""); slices.ContainsFunc(v.rules, func(id int) bool { return id/1000 == 941 }) {
		t.Error(v)
	}
	if v := judge(t, s, asked("GET", "/?q="+url.QueryEscape(sqli), ""), ""); v.score < s.threshold {
		t.Error(v)
	}
}

// A rule set that cannot be built fails the settings that need it, and never takes the place of one that was.
func TestRuleSetsThatCannotBeBuilt(t *testing.T) {
	c := core.New(core.Options{StateDir: t.TempDir(), Values: map[string]any{}})
	e := component.Of(c)
	broken := errors.New("no such file")
	e.build = func(time.Duration) (*ruleSet, error) { return nil, broken }
	if s, err := compile(c, "a", blocking(asIs)); s != nil || !errors.Is(err, broken) {
		t.Errorf("%v %v", s, err)
	}
	rules, err := component.Of(sharedCore()).need()
	if err != nil {
		t.Fatal(err)
	}
	e.rules.Store(rules)
	if s, err := compile(c, "a", blocking(asIs)); s == nil || err != nil {
		t.Errorf("%v", err)
	}
}
