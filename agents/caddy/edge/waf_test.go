package edge

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
	"edge.svc/caddy/internal/edgetest"
)

// inspected is an edge that inspects, before an origin that answers with the length and the digest of what it got.
type inspected struct {
	*edge
	url, address string
	// What was found in requests, as they end.
	found chan foundIn
}

// foundIn is what was found in a request, by the id that its answer has.
type foundIn struct {
	exchange.WAFOutcome
	id string
}

func startInspected(t testing.TB, waf *configv1.SiteWaf, change func(*configv1.Site)) *inspected {
	t.Helper()
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		digest := sha256.New()
		n, _ := io.Copy(digest, r.Body)
		fmt.Fprintf(w, "%d %x", n, digest.Sum(nil))
	}))
	t.Cleanup(origin.Close)
	site := edgetest.Site(uint32(origin.Listener.Addr().(*net.TCPAddr).Port), "a.com")
	change(site)
	e := &inspected{found: make(chan foundIn, 16)}
	defer func(before []func(*core.Core) exchange.FinishStage) { finishOrder = before }(finishOrder)
	finishOrder = append(finishOrder[:len(finishOrder):len(finishOrder)], func(*core.Core) exchange.FinishStage {
		return func(x *exchange.Exchange) {
			found, _ := exchange.WAF.Known(x)
			select {
			case e.found <- foundIn{found, x.In.IDHeader[0]}:
			default:
			}
		}
	})
	e.edge = newHandler(t, edgetest.Entry("origin-policy", "", &configv1.OriginPolicy{AllowedCidrs: []string{"127.0.0.0/8"}}),
		edgetest.Entry("site", "a", site))
	if waf != nil {
		e.change(t, edgetest.Entry("site-waf", "a", waf))
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _ = e.ServeHTTP(w, r, nil) }))
	t.Cleanup(server.Close)
	e.url, e.address = server.URL, server.Listener.Addr().String()
	return e
}

// ask sends a request and returns the answer, its text and what was found.
func (e *inspected) ask(t *testing.T, method, target string, body io.Reader, contentType string) (*http.Response, string, exchange.WAFOutcome) {
	t.Helper()
	r, err := http.NewRequest(method, e.url+target, body)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = "a.com"
	r.Header.Set("User-Agent", "Mozilla/5.0")
	r.Header.Set("Accept", "*/*")
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(text), (<-e.found).WAFOutcome
}

const attackOnSQL = "/?q=1%27+or+%271%27%3D%271%27+union+select+password+from+users--+"

func wafSettings(mode configv1.WafMode, change func(*configv1.SiteWaf)) *configv1.SiteWaf {
	m := &configv1.SiteWaf{Mode: mode, ParanoiaLevel: 1, AnomalyThreshold: 5, RequestBodyLimit: 128 << 10}
	change(m)
	return m
}

func sameWAF(*configv1.SiteWaf) {}

func sameSite(*configv1.Site) {}

const detect, block = configv1.WafMode_WAF_MODE_DETECT, configv1.WafMode_WAF_MODE_BLOCK

func TestWAFBlocksWhatDetectingOnlyNotes(t *testing.T) {
	for _, mode := range []configv1.WafMode{block, detect} {
		e := startInspected(t, wafSettings(mode, sameWAF), sameSite)
		// The second time the verdict is known.
		for range 2 {
			res, _, found := e.ask(t, "GET", attackOnSQL, nil, "")
			if len(found.Rules) == 0 || found.Score < 5 || found.Blocked != (mode == block) {
				t.Errorf("%v: %+v", mode, found)
			}
			if mode == block && (res.StatusCode != 403 || res.Header.Get("X-Svc-Error") != "waf-blocked" || res.Header.Get("Cache-Control") != "no-store") {
				t.Errorf("%d %v", res.StatusCode, res.Header)
			}
			if mode == detect && res.StatusCode != 200 {
				t.Errorf("%d %v", res.StatusCode, res.Header)
			}
		}
		if res, _, found := e.ask(t, "GET", "/?q=hello", nil, ""); res.StatusCode != 200 || len(found.Rules) > 0 {
			t.Errorf("%d %+v", res.StatusCode, found)
		}
	}
}

// A version of the settings that does not compile leaves the one before, and one that is off takes everything away.
func TestSettingsOfTheWAFComeAndGo(t *testing.T) {
	e := startInspected(t, wafSettings(block, sameWAF), sameSite)
	status := func() int {
		res, _, _ := e.ask(t, "GET", attackOnSQL, nil, "")
		return res.StatusCode
	}
	wrong := edgetest.Entry("site-waf", "a", wafSettings(block, func(m *configv1.SiteWaf) { m.ParanoiaLevel = 9 }))
	if failed := edgetest.Change(t, e.core, []*configv1.Entry{wrong}); len(failed) != 1 || status() != 403 {
		t.Errorf("%v", failed)
	}
	edgetest.Change(t, e.core, []*configv1.Entry{edgetest.Entry("site-waf", "a", wafSettings(detect, sameWAF))})
	if status() != 200 {
		t.Error("the former mode")
	}
	edgetest.Change(t, e.core, []*configv1.Entry{edgetest.Entry("site-waf", "a", wafSettings(block, sameWAF))})
	if status() != 403 {
		t.Error("the verdict of another mode")
	}
	edgetest.Change(t, e.core, nil, edgetest.Key("site-waf", "a"))
	if res, _, found := e.ask(t, "GET", attackOnSQL, nil, ""); res.StatusCode != 200 || len(found.Rules) > 0 {
		t.Errorf("%d %+v", res.StatusCode, found)
	}
}

// Whatever is inspected of a body, the origin gets all of it: in memory, beyond it, and beyond the limit.
func TestInspectedBodiesReachTheOriginUntouched(t *testing.T) {
	for _, limit := range []uint32{0, 1, 1000, 128 << 10, 1 << 20} {
		e := startInspected(t, wafSettings(block, func(m *configv1.SiteWaf) { m.RequestBodyLimit = uint32(limit) }), sameSite)
		for _, size := range []int{1, 999, 1000, 1001, 64 << 10, 128 << 10, 128<<10 + 1, 300 << 10, 1 << 20, 3 << 20} {
			for _, known := range []bool{true, false} {
				content := bytes.Repeat([]byte("text without end, "), size/18+1)[:size]
				var body io.Reader = bytes.NewReader(content)
				if !known {
					body = io.MultiReader(body)
				}
				res, text, _ := e.ask(t, "POST", "/", body, "text/plain")
				if want := fmt.Sprintf("%d %x", size, sha256.Sum256(content)); res.StatusCode != 200 || text != want {
					t.Errorf("limit %d, %d bytes, length known %v: %d %s", limit, size, known, res.StatusCode, text)
				}
			}
		}
	}
}

// An attack is found up to the limit and not beyond it; a body that is cut there is not wrong for that.
func TestLimitOfInspectedBodies(t *testing.T) {
	limit := 300 << 10
	if edgetest.UnderRace {
		limit /= 10
	}
	e := startInspected(t, wafSettings(block, func(m *configv1.SiteWaf) { m.RequestBodyLimit = uint32(limit) }), sameSite)
	attack := `1' or '1'='1' union select password from users-- `
	for _, c := range []struct {
		before, after, status int
	}{{0, 0, 403}, {limit - 1000, 0, 403}, {limit, 0, 200}, {0, limit, 403}, {limit - 1000, limit, 403}} {
		for contentType, body := range map[string]string{
			"application/json":                  `{"a":"` + strings.Repeat("a", c.before) + `","q":"` + attack + `","b":"` + strings.Repeat("b", c.after) + `"}`,
			"application/x-www-form-urlencoded": "a=" + strings.Repeat("a", c.before) + "&q=" + url.QueryEscape(attack) + "&b=" + strings.Repeat("b", c.after),
		} {
			if res, _, found := e.ask(t, "POST", "/", strings.NewReader(body), contentType); res.StatusCode != c.status {
				t.Errorf("%s, %d before and %d after: %d %+v", contentType, c.before, c.after, res.StatusCode, found)
			}
		}
	}
}

// The limit of the site on bodies holds for what is looked at, too.
func TestBodiesTooLargeForTheSiteWhileInspected(t *testing.T) {
	e := startInspected(t, wafSettings(detect, sameWAF), func(s *configv1.Site) { s.RequestBodyLimit = 1000 })
	res, _, _ := e.ask(t, "POST", "/", io.MultiReader(strings.NewReader(strings.Repeat("a", 5000))), "text/plain")
	if res.StatusCode != 413 || res.Header.Get("X-Svc-Error") != "body-too-large" {
		t.Errorf("%d %v", res.StatusCode, res.Header)
	}
}
