package encode

import (
	"strings"
	"testing"

	"edge.svc/caddy/exchange"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
)

func TestSettings(t *testing.T) {
	coding := func(change func(*configv1.CodingSettings)) *configv1.CodingSettings {
		m := &configv1.CodingSettings{Enabled: true, Level: 3, MinLength: 1}
		change(m)
		return m
	}
	keep := func(*configv1.CodingSettings) {}
	for name, c := range map[string]struct {
		m     *configv1.SiteCompression
		wrong string
	}{
		"nothing":                 {&configv1.SiteCompression{}, ""},
		"all":                     {&configv1.SiteCompression{Gzip: coding(keep), Brotli: coding(keep), Zstd: coding(keep), MaxLength: 1 << 40}, ""},
		"gzip without level":      {&configv1.SiteCompression{Gzip: coding(func(m *configv1.CodingSettings) { m.Level = 0 })}, ""},
		"gzip 10":                 {&configv1.SiteCompression{Gzip: coding(func(m *configv1.CodingSettings) { m.Level = 10 })}, "gzip.level"},
		"brotli without level":    {&configv1.SiteCompression{Brotli: coding(func(m *configv1.CodingSettings) { m.Level = 0 })}, "brotli.level"},
		"brotli 12":               {&configv1.SiteCompression{Brotli: coding(func(m *configv1.CodingSettings) { m.Level = 12 })}, "brotli.level"},
		"zstd 20":                 {&configv1.SiteCompression{Zstd: coding(func(m *configv1.CodingSettings) { m.Level = 20 })}, "zstd.level"},
		"what is off is not read": {&configv1.SiteCompression{Zstd: &configv1.CodingSettings{Level: 20}}, ""},
		"no least length":         {&configv1.SiteCompression{Zstd: coding(func(m *configv1.CodingSettings) { m.MinLength = 0 })}, "zstd.min_length"},
		"a mebibyte and one":      {&configv1.SiteCompression{Zstd: coding(func(m *configv1.CodingSettings) { m.MinLength = 1<<20 + 1 })}, "zstd.min_length"},
		"32 types":                {&configv1.SiteCompression{Gzip: coding(func(m *configv1.CodingSettings) { m.Types = strings.Split(strings.Repeat("text/x,", 31)+"text/x", ",") })}, ""},
		"33 types":                {&configv1.SiteCompression{Gzip: coding(func(m *configv1.CodingSettings) { m.Types = strings.Split(strings.Repeat("text/x,", 32)+"text/x", ",") })}, "types"},
		"no type":                 {&configv1.SiteCompression{Gzip: coding(func(m *configv1.CodingSettings) { m.Types = []string{"text"} })}, "types"},
		"with parameter":          {&configv1.SiteCompression{Gzip: coding(func(m *configv1.CodingSettings) { m.Types = []string{"text/x;a=b"} })}, "types"},
	} {
		_, err := compile(nil, "site", c.m)
		if (err == nil) != (c.wrong == "") || err != nil && !strings.Contains(err.Error(), c.wrong) {
			t.Errorf("%s: %v", name, err)
		}
	}
	s, err := compile(nil, "site", &configv1.SiteCompression{
		Gzip: &configv1.CodingSettings{Enabled: true, MinLength: 256}, Zstd: &configv1.CodingSettings{Enabled: true, Level: 19, MinLength: 1, Types: []string{"application/javascript", "Text/X"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	gzip, zstd := s.codings[exchange.Gzip], s.codings[exchange.Zstd]
	if gzip.level != 1 || !gzip.types["text/html"] || gzip.types["text/css"] || zstd.level != 19 || !zstd.types["text/javascript"] || !zstd.types["text/x"] || s.codings[exchange.Brotli] != nil || !s.any() {
		t.Errorf("%+v %+v", gzip, zstd)
	}
}
