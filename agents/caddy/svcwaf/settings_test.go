package svcwaf

import (
	"strings"
	"testing"

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
		"charsets":     {func(m *configv1.SiteWaf) { m.Charsets = make([]string, 33) }, "more than 32"},
		"no rule":      {exclusion(func(e *configv1.WafExclusion) { e.Rules = nil }), "neither"},
		"no such tag":  {exclusion(func(e *configv1.WafExclusion) { e.Rules = &configv1.WafExclusion_Tag{Tag: "no"} }), `"no"`},
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
