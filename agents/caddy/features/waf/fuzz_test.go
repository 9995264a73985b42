package waf

import (
	"net/http"
	"net/url"
	"testing"

	"google.golang.org/protobuf/proto"

	configv1 "edge.svc/caddy/gen/svc/config/v1"
)

// FuzzSettings takes entries as they come from the console, and requests, through the stage.
func FuzzSettings(f *testing.F) {
	seed := func(m *configv1.SiteWaf, body string) {
		entry, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(entry, "/?q=1", "application/json", body)
	}
	seed(blocking(asIs), `{"a":"b"}`)
	seed(&configv1.SiteWaf{Mode: configv1.WafMode_WAF_MODE_OFF}, "")
	seed(blocking(func(m *configv1.SiteWaf) {
		m.Mode, m.ParanoiaLevel, m.ExcludedRules, m.ExcludedFamilies = configv1.WafMode_WAF_MODE_DETECT, 4, []uint32{942100}, []uint32{941}
		m.Methods, m.ContentTypes, m.Charsets = []string{"GET"}, []string{"text/xml"}, []string{"utf-8"}
		m.Exclusions = []*configv1.WafExclusion{
			{Rules: &configv1.WafExclusion_Tag{Tag: "attack-xss"}, Path: "/", PathPrefix: true, Part: configv1.WafPart_WAF_PART_ARGUMENT, Name: "json.*.a"},
			{Rules: &configv1.WafExclusion_Rule{Rule: 942100}, Part: configv1.WafPart_WAF_PART_ALL},
		}
	}), "--b\r\n")
	e := component.Of(sharedCore())
	f.Fuzz(func(t *testing.T, entry []byte, target, contentType, body string) {
		m := new(configv1.SiteWaf)
		if proto.Unmarshal(entry, m) != nil {
			return
		}
		s, err := compile(sharedCore(), "a", m)
		if s == nil || err != nil {
			return
		}
		x := asked("POST", "/?"+url.QueryEscape(target), body, "Content-Type: "+contentType)
		defer x.Reset()
		failed := e.counters.failed.Load()
		if answer := e.stage(x, s); answer != nil && (answer.Status != http.StatusForbidden || !s.block) {
			t.Errorf("%+v", answer)
		}
		if e.counters.failed.Load() != failed {
			t.Error("the inspection failed")
		}
	})
}
