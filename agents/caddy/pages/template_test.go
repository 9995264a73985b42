package pages

import (
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"edge.svc/caddy/exchange"
	"edge.svc/caddy/internal/exchangetest"
)

func fill(t *testing.T, template string, target string) string {
	t.Helper()
	r := httptest.NewRequest("GET", "/", nil)
	x := exchangetest.New(httptest.NewRecorder(), r)
	x.In.ID, x.In.Host, x.In.Target.Path = `id"<`, "a.com", target
	x.In.Client = netip.MustParseAddr("2001:db8::1")
	x.Begun = time.Date(2026, 11, 2, 3, 4, 5, 6, time.FixedZone("east", 3600))
	a := Respond(x, 404, NotFound)
	a.Header["Retry-After"] = []string{"1"}
	ParseTemplate(template).Put(x, a, 404)
	if h := a.Header; h.Get("Retry-After") != "1" || h.Get("X-Svc-Error") != NotFound || h.Get("Cache-Control") != "no-store" ||
		!strings.HasPrefix(h.Get("Content-Type"), "text/html") || !strings.Contains(h.Get("Content-Security-Policy"), "default-src 'none'") {
		t.Errorf("%v", h)
	}
	return string(a.Bytes)
}

func TestTemplatesHaveValuesOfTheRequest(t *testing.T) {
	for template, want := range map[string]string{
		"{{status}}":                 "404",
		"<b>{{status}}</b>{{status}": "<b>404</b>{{status}",
		"{{request_id}}":             "id&#34;&lt;",
		"{{client_ip}}|{{host}}":     "2001:db8::1|a.com",
		"{{time}}":                   "2026-11-02T02:04:05Z",
		"{{path}}":                   "/&lt;script&gt;&#39;&amp;�",
		"{{other}} {{ status }} {{":  "{{other}} {{ status }} {{",
		"{{{status}}}":               "{404}",
		"{{a{{status}}":              "{{a404",
		"":                           "",
		"中文":                         "中文",
	} {
		if got := fill(t, template, "/<script>'&\xff"); got != want {
			t.Errorf("%q: %q, not %q", template, got, want)
		}
	}
}

func TestPagesOfTemplatesAreBounded(t *testing.T) {
	page := fill(t, strings.Repeat("{{path}}", MaxTemplateBytes/len("{{path}}")), "/"+strings.Repeat("<", 8000))
	if len(page) > 3*MaxTemplateBytes {
		t.Errorf("%d bytes", len(page))
	}
	if page := fill(t, "{{path}}", "/"+strings.Repeat("ü", 8000)); len(page) > maxPathBytes+8 || !strings.HasSuffix(page, "�") {
		t.Errorf("%d bytes", len(page))
	}
}

func FuzzTemplate(f *testing.F) {
	f.Add("<p>{{path}} {{host}}", "/x")
	f.Fuzz(func(t *testing.T, template, path string) {
		// Nothing of the client gets out of a text of HTML.
		text := strings.NewReplacer("<", "", ">", "", `"`, "", "'", "").Replace(template)
		x := exchangetest.New(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
		x.In.Target.Path, x.In.Host, x.In.ID = path, path, path
		a := &exchange.Answer{Header: map[string][]string{}}
		ParseTemplate(text).Put(x, a, 500)
		if strings.ContainsAny(string(a.Bytes), `<>"'`) {
			t.Errorf("%q", a.Bytes)
		}
	})
}
