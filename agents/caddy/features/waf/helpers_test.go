package waf

import (
	"io"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
	"edge.svc/caddy/internal/exchangetest"
)

// sharedCore is one core for all tests: building the rule set takes longer than most of them.
var sharedCore = sync.OnceValue(func() *core.Core {
	folder, err := os.MkdirTemp("", "waf")
	if err != nil {
		panic(err)
	}
	return core.New(core.Options{StateDir: folder, Values: map[string]any{"waf_pattern_ms": maxPatternTime}})
})

func TestMain(m *testing.M) {
	status := m.Run()
	_ = os.RemoveAll(sharedCore().StateDir())
	os.Exit(status)
}

// blocking are the settings of a new site that blocks, changed.
func blocking(change func(*configv1.SiteWaf)) *configv1.SiteWaf {
	m := &configv1.SiteWaf{Mode: configv1.WafMode_WAF_MODE_BLOCK, ParanoiaLevel: 1, AnomalyThreshold: 5, RequestBodyLimit: 128 << 10}
	change(m)
	return m
}

func asIs(*configv1.SiteWaf) {}

func settingsOf(t testing.TB, change func(*configv1.SiteWaf)) *settings {
	t.Helper()
	s, err := compile(sharedCore(), "a", blocking(change))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// asked is a request with fields as "Name: value", and the usual ones of a browser.
func asked(method, target, body string, fields ...string) *exchange.Exchange {
	x := askedOf(method, target, strings.NewReader(body), fields...)
	if body != "" {
		x.In.Header.Set("Content-Length", "1")
	}
	return x
}

// askedOf is a request with a body that comes in its own time.
func askedOf(method, target string, body io.Reader, fields ...string) *exchange.Exchange {
	r := httptest.NewRequest(method, target, body)
	r.Host = "a.com"
	r.Header.Set("User-Agent", "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/140.0.0.0 Safari/537.36")
	r.Header.Set("Accept", "*/*")
	for _, f := range fields {
		name, value, _ := strings.Cut(f, ": ")
		r.Header.Add(name, value)
	}
	x := exchangetest.New(httptest.NewRecorder(), r)
	x.Plan = &exchange.Plan{SiteID: "a"}
	return x
}

// always goes on without a turn for others.
func always() bool { return true }

// judge inspects a request with all of its body.
func judge(t testing.TB, s *settings, x *exchange.Exchange, body string) verdict {
	t.Helper()
	return judgeCut(t, s, x, body, true)
}

func judgeCut(t testing.TB, s *settings, x *exchange.Exchange, body string, whole bool) verdict {
	t.Helper()
	rules, err := component.Of(sharedCore()).need()
	if err != nil {
		t.Fatal(err)
	}
	looked := look{}
	if body != "" {
		looked = look{strings.NewReader(body), whole, component.Of(sharedCore()).room.Of("a")}
	}
	v, err := rules.inspect(x, s, looked, always)
	if err != nil {
		t.Fatal(err)
	}
	return v
}
