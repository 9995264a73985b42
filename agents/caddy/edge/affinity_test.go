package edge

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
	"edge.svc/caddy/features/challenge"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
	"edge.svc/caddy/internal/edgetest"
)

// pinning is an edge before three origins of a site with session affinity, one more site before the same origins, and a
// group of two others of both.
type pinning struct {
	*edge
	t       *testing.T
	origins map[string]*httptest.Server
	sites   []*configv1.Site
	ahead   atomic.Int64
	// What each origin answers with, besides its name, and the cookies it got last.
	status  atomic.Int64
	cookies []string
}

const affinityTTL = 600

func startPinning(t *testing.T) *pinning {
	p := &pinning{t: t, origins: map[string]*httptest.Server{}}
	var origins []*configv1.Origin
	for _, id := range []string{"a", "b", "c", "d", "e"} {
		p.origins[id] = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			p.cookies = r.Header["Cookie"]
			w.Header()["Set-Cookie"] = []string{"session=of-the-origin; Path=/", exchange.AffinityCookie + "=forged", exchange.PlainAffinityCookie + "_g=forged"}
			if status := p.status.Load(); status != 0 {
				w.WriteHeader(int(status))
			}
			_, _ = io.WriteString(w, id)
		}))
		t.Cleanup(p.origins[id].Close)
		o := &configv1.Origin{Id: id, Address: "127.0.0.1", Port: portOf(p.origins[id]), Weight: 1}
		if id > "c" {
			o.Group = "g"
		}
		origins = append(origins, o)
	}
	for _, host := range []string{"a.com", "b.com"} {
		site := edgetest.Site(0, host)
		site.Origins, site.Pool.AffinityTtlSeconds = origins, affinityTTL
		site.Pool.Policy = configv1.BalancePolicy_BALANCE_POLICY_ROUND_ROBIN
		p.sites = append(p.sites, site)
	}
	c := core.New(core.Options{
		StateDir: t.TempDir(), Values: map[string]any{"ban_capacity": 100, "ban_max_mib": 1},
		Now: func() time.Time { return time.Now().Add(time.Duration(p.ahead.Load())) },
	})
	p.edge = &edge{core: c}
	defer func(before []row) { order = before }(order)
	order = slices.Insert(slices.Clone(order), len(order)-1, row{"a rule", forLocal, func(*core.Core) exchange.Stage {
		return func(x *exchange.Exchange) *exchange.Answer {
			if strings.HasPrefix(x.In.Target.Path, "/g") {
				x.Out.Group = "g"
			}
			return nil
		}
	}, policyFails})
	p.edge.pipeline = newPipeline(c, zap.NewNop(), false)
	p.edge.change(t, edgetest.Entry("origin-policy", "", &configv1.OriginPolicy{AllowedCidrs: []string{"127.0.0.0/8"}}),
		edgetest.Entry("site", "a", p.sites[0]), edgetest.Entry("site", "b", p.sites[1]))
	p.keys(nil, signing("k1"), nil)
	return p
}

func portOf(s *httptest.Server) (port uint32) {
	_, _ = fmt.Sscanf(s.Listener.Addr().String(), "127.0.0.1:%d", &port)
	return port
}

func signing(id string) *challenge.Key {
	return &challenge.Key{ID: id, Secret: []byte(strings.Repeat(id, 16))}
}

func (p *pinning) keys(next, current, previous *challenge.Key) {
	p.t.Helper()
	if err := challenge.Of(p.core).SetKeys(challenge.Keys{Version: 1, Next: next, Current: current, Previous: previous}); err != nil {
		p.t.Fatal(err)
	}
}

// browser keeps cookies by their names.
type browser struct {
	*pinning
	host   string
	secure bool
	jar    map[string]string
}

func (p *pinning) visitor() *browser {
	return &browser{pinning: p, host: "a.com", jar: map[string]string{"mine": "1"}}
}

// get returns the origin that responded, and the names of the cookies of the edge that were set.
func (v *browser) get(method, target string) (origin string, set []string) {
	v.t.Helper()
	r := httptest.NewRequest(method, "http://"+v.host+target, nil)
	if v.secure {
		r.TLS = &tls.ConnectionState{ServerName: v.host, HandshakeComplete: true}
	}
	for _, name := range slices.Sorted(maps.Keys(v.jar)) {
		r.AddCookie(&http.Cookie{Name: name, Value: v.jar[name]})
	}
	w, _ := v.send(r)
	for _, c := range w.Result().Cookies() {
		if exchange.IsAffinityCookie(c.Name) {
			set = append(set, c.Name)
			if c.Path != "/" || !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.Secure != v.secure || c.MaxAge != affinityTTL || c.Domain != "" {
				v.t.Errorf("attributes of %s", c.Raw)
			}
		} else if c.Name != "session" {
			v.t.Errorf("cookie %s", c.Raw)
		}
		v.jar[c.Name] = c.Value
	}
	if w.Code < 500 && w.Result().Cookies()[0].Raw != "session=of-the-origin; Path=/" {
		v.t.Errorf("the origin's own cookies: %q", w.Header()["Set-Cookie"])
	}
	return w.Body.String(), set
}

// stays expects the visitor's next requests at an origin, without a new cookie.
func (v *browser) stays(name, at string) {
	v.t.Helper()
	for range 7 {
		if origin, set := v.get("GET", "/"); origin != at || len(set) > 0 {
			v.t.Fatalf("%s: at %s, set %q, not kept at %s", name, origin, set, at)
		}
	}
}

var bothNames = []string{exchange.AffinityCookie, exchange.PlainAffinityCookie}

func TestVisitorsStayWithTheirOrigin(t *testing.T) {
	p := startPinning(t)
	v := p.visitor()
	first, set := v.get("GET", "/")
	if !slices.Equal(set, bothNames) {
		t.Fatalf("set %q", set)
	}
	v.stays("a visitor", first)
	if !slices.Equal(p.cookies, []string{"mine=1; session=of-the-origin"}) {
		t.Errorf("the origin got %q", p.cookies)
	}
	// Somebody else gets the others: who is kept takes no turns.
	seen := map[string]bool{}
	for range 3 {
		other, _ := p.visitor().get("GET", "/")
		seen[other] = true
		v.stays("beside others", first)
	}
	if len(seen) != 3 {
		t.Errorf("new visitors at %v", seen)
	}
	v.jar = map[string]string{exchange.AffinityCookie: v.jar[exchange.AffinityCookie]}
	if at, set := v.get("GET", "/"); at != first || len(set) > 0 || p.cookies != nil {
		t.Errorf("one cookie: at %s, set %q; the origin got %q", at, set, p.cookies)
	}

	secure := p.visitor()
	secure.secure = true
	first, set = secure.get("GET", "/")
	if !slices.Equal(set, []string{exchange.AffinityCookie}) {
		t.Errorf("set %q over HTTPS", set)
	}
	secure.stays("over HTTPS", first)
}

// A cookie that is not good is no cookie: its visitor is a new one, and gets a good one.
func TestAffinityCookiesCannotBeMadeNorCarried(t *testing.T) {
	p := startPinning(t)
	good := p.visitor()
	first, _ := good.get("GET", "/")
	value := good.jar[exchange.AffinityCookie]
	other := map[string]string{"a": "b", "b": "c", "c": "a"}[first]
	grouped := p.visitor()
	inGroup, _ := grouped.get("GET", "/g")
	parts := strings.Split(value, ".")
	for name, forged := range map[string]string{
		"another origin":    other + value[1:],
		"a longer life":     strings.Join([]string{parts[0], "9" + parts[1], parts[2], parts[3]}, "."),
		"an unknown key":    strings.Join([]string{parts[0], parts[1], "k2", parts[3]}, "."),
		"another signature": value[:len(value)-2] + "AA",
		"no signature":      strings.Join(parts[:3], "."),
		"an unknown origin": "x" + value[1:],
		"of another group":  grouped.jar[exchange.AffinityCookie+"_g"],
		"nothing":           "",
		"much":              strings.Repeat(value, 20),
	} {
		v := p.visitor()
		v.jar[exchange.AffinityCookie] = forged
		if at, set := v.get("GET", "/"); !slices.Equal(set, bothNames) || !strings.Contains("abc", at) {
			t.Errorf("%s: at %s, set %q", name, at, set)
		}
	}
	elsewhere := p.visitor()
	elsewhere.host, elsewhere.jar = "b.com", maps.Clone(good.jar)
	if _, set := elsewhere.get("GET", "/"); !slices.Equal(set, bothNames) {
		t.Errorf("the cookie of another site is good: %q", set)
	}
	// A cookie of the whole domain, of a sibling, does not hide a good one.
	tricked := p.visitor()
	tricked.jar = map[string]string{exchange.AffinityCookie: "forged", exchange.PlainAffinityCookie: value}
	tricked.stays("behind a forged one", first)

	// Each group has a cookie of its own.
	if at, set := good.get("GET", "/g"); !slices.Equal(set, []string{exchange.AffinityCookie + "_g", exchange.PlainAffinityCookie + "_g"}) || !strings.Contains("de", at) {
		t.Errorf("in the group: at %s, set %q", at, set)
	}
	good.stays("after the group", first)
	if at, set := grouped.get("GET", "/g"); at != inGroup || len(set) > 0 {
		t.Errorf("in the group: at %s, set %q", at, set)
	}
}

func TestAffinityCookiesAreIssuedAgain(t *testing.T) {
	p := startPinning(t)
	v := p.visitor()
	first, _ := v.get("GET", "/")
	again := func(name string) {
		t.Helper()
		before := v.jar[exchange.AffinityCookie]
		if at, set := v.get("GET", "/"); at != first || !slices.Equal(set, bothNames) || v.jar[exchange.AffinityCookie] == before {
			t.Fatalf("%s: at %s, set %q", name, at, set)
		}
		v.stays("after "+name, first)
	}
	p.ahead.Add(int64(affinityTTL / 3 * time.Second))
	v.stays("a third of its life", first)
	p.ahead.Add(int64(affinityTTL / 3 * time.Second))
	again("two thirds of its life")

	p.keys(signing("k2"), signing("k1"), nil)
	v.stays("a next key", first)
	p.keys(signing("k3"), signing("k2"), signing("k1"))
	again("its key is the previous one")
	p.keys(signing("k4"), signing("k3"), signing("k2"))
	again("the next rotation")
	p.keys(signing("k3"), signing("k4"), signing("k2"))
	v.stays("a key that is the next one elsewhere", first)

	p.ahead.Add(int64(affinityTTL+1) * int64(time.Second))
	if _, set := v.get("GET", "/"); !slices.Equal(set, bothNames) {
		t.Errorf("after its life: set %q", set)
	}
	p.keys(signing("k6"), signing("k5"), nil)
	if _, set := v.get("GET", "/"); !slices.Equal(set, bothNames) {
		t.Errorf("a key that is gone: set %q", set)
	}
}

func TestVisitorsOfOriginsThatFailMoveAtOnce(t *testing.T) {
	p := startPinning(t)
	bystander := p.visitor()
	v := p.visitor()
	first, _ := v.get("GET", "/")
	kept, _ := bystander.get("GET", "/")

	p.status.Store(503)
	if at, set := v.get("POST", "/"); at != first || len(set) > 0 {
		t.Errorf("an origin that is busy: at %s, set %q", at, set)
	}
	if _, set := p.visitor().get("GET", "/"); len(set) > 0 {
		t.Errorf("an origin that is busy keeps a new visitor: %q", set)
	}
	p.status.Store(0)
	v.stays("after it was busy", first)

	p.origins[first].CloseClientConnections()
	p.origins[first].Close()
	second, set := v.get("GET", "/")
	if second == first || len(second) != 1 || !slices.Equal(set, bothNames) {
		t.Fatalf("the origin died: at %s, set %q", second, set)
	}
	v.stays("after it died", second)
	bystander.stays("beside them", kept)

	// A request that nobody has yet moves, whatever its method.
	p.origins[second].CloseClientConnections()
	p.origins[second].Close()
	third, set := v.get("POST", "/")
	if third == first || third == second || len(third) != 1 || !slices.Equal(set, bothNames) {
		t.Fatalf("a POST: at %s, set %q", third, set)
	}

	p.origins[third].CloseClientConnections()
	p.origins[third].Close()
	if body, set := v.get("GET", "/"); len(body) == 1 || len(set) > 0 {
		t.Errorf("no origin is left: %.20q, set %q", body, set)
	}
}

// A visitor leaves a backup once a primary serves again, and no cookie is set where the site has none, or no key is there.
func TestWhereNobodyIsKept(t *testing.T) {
	p := startPinning(t)
	v := p.visitor()
	first, _ := v.get("GET", "/")
	for _, o := range p.sites[0].Origins {
		o.Backup = o.Id == first
	}
	p.change(t, edgetest.Entry("site", "a", p.sites[0]))
	second, set := v.get("GET", "/")
	if second == first || !slices.Equal(set, bothNames) {
		t.Errorf("kept on a backup: at %s, set %q", second, set)
	}
	p.sites[0].Pool.AffinityTtlSeconds = 0
	p.change(t, edgetest.Entry("site", "a", p.sites[0]))
	seen := map[string]bool{}
	for range 4 {
		at, set := v.get("GET", "/")
		if seen[at] = true; len(set) > 0 {
			t.Errorf("set %q", set)
		}
	}
	if len(seen) != 2 {
		t.Errorf("at %v", seen)
	}
	p.sites[0].Pool.AffinityTtlSeconds = affinityTTL
	h := newHandler(t, edgetest.Entry("origin-policy", "", &configv1.OriginPolicy{AllowedCidrs: []string{"127.0.0.0/8"}}), edgetest.Entry("site", "a", p.sites[0]))
	if w, _ := h.send(httptest.NewRequest("GET", "http://a.com/", nil)); w.Code != 200 || len(w.Header()["Set-Cookie"]) != 1 {
		t.Errorf("without keys: %d %q", w.Code, w.Header()["Set-Cookie"])
	}
}

// The signature of a cookie of the default group is that of "affinity|<site>|<origin>|<end>".
func TestSignaturesOfAffinityCookies(t *testing.T) {
	p := startPinning(t)
	v := p.visitor()
	_, _ = v.get("GET", "/")
	parts := strings.Split(v.jar[exchange.AffinityCookie], ".")
	mac := hmac.New(sha256.New, signing("k1").Secret)
	_, _ = io.WriteString(mac, "affinity|a|"+parts[0]+"|"+parts[1])
	if want := base64.RawURLEncoding.EncodeToString(mac.Sum(nil)); parts[2] != "k1" || parts[3] != want {
		t.Errorf("got %q, want the signature %s", parts, want)
	}
}
