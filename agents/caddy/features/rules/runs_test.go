package rules

import (
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"edge.svc/caddy/exchange"
	"edge.svc/caddy/features/handshake"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
	"edge.svc/caddy/internal/edgetest"
	"edge.svc/caddy/internal/tlstest"
)

// run is a case of test/vectors/rule-runs.json: rules, a request, and what becomes of it.
type run struct {
	Name string
	Bulk []struct {
		Source, Target string
		StatusCode     uint32
		PreserveQuery  bool
	}
	Request *runRequest
	// What the site has of HTTPS; nil for nothing.
	HTTPS *struct {
		Status, Port      uint32
		Excluded, Pending []string
	}
	Response *struct {
		Status  int
		Headers [][2]string
	}
	Expect  map[string]any
	Entries struct{ Platform, Site string }
}

type runRequest struct {
	Method, Scheme, Host, URI, Version, Address, PassLevel string
	Headers                                                [][2]string
}

// bytesOf takes a character for each byte.
func bytesOf(text string) string {
	var b []byte
	for _, r := range text {
		b = append(b, byte(r))
	}
	return string(b)
}

func charactersOf(bytes string) string {
	var b strings.Builder
	for i := range len(bytes) {
		b.WriteRune(rune(bytes[i]))
	}
	return b.String()
}

func headerOf(lines [][2]string) http.Header {
	h := http.Header{}
	for _, line := range lines {
		h.Add(line[0], bytesOf(line[1]))
	}
	return h
}

// nowhere is a database that knows of no address.
type nowhere struct{}

func (nowhere) Country(netip.Addr) (string, bool)    { return "", true }
func (nowhere) AS(netip.Addr) (uint32, string, bool) { return 0, "", true }

// The console shows what becomes of a request by rules; it is what becomes of it here.
func TestRunsAreThoseOfTheConsole(t *testing.T) {
	content, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "test", "vectors", "rule-runs.json"))
	if err != nil {
		t.Fatal(err)
	}
	var vectors struct {
		Request runRequest
		Lists   map[string][]netip.Prefix
		Cases   []run
	}
	if err := json.Unmarshal(content, &vectors); err != nil {
		t.Fatal(err)
	}
	if len(vectors.Cases) < 50 {
		t.Fatalf("%d cases", len(vectors.Cases))
	}
	lists := fakeLists{}
	for name, prefixes := range vectors.Lists {
		lists["id-of-"+name] = prefixes
	}
	for _, c := range vectors.Cases {
		c.Request = c.Request.over(vectors.Request)
		got := c.become(t, lists)
		want := c.Expect
		for _, other := range []string{"kind", "rule", "bulkRedirect"} {
			delete(want, other)
		}
		// Limits that a request is within are noted nowhere.
		if limits, ok := want["limits"].([]any); ok {
			want["matched"] = slices.DeleteFunc(want["matched"].([]any), func(id any) bool { return slices.Contains(limits, id) })
			if len(want["matched"].([]any)) == 0 {
				delete(want, "matched")
			}
		}
		if limits, ok := want["limits"].([]any); ok {
			want["limits"] = float64(len(limits))
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\n%v\nnot\n%v", c.Name, got, want)
		}
	}
}

// over is the request with what it does not say taken from the other.
func (r *runRequest) over(unsaid runRequest) *runRequest {
	if r == nil {
		return &unsaid
	}
	out := reflect.ValueOf(&unsaid).Elem()
	for i := range out.NumField() {
		if said := reflect.ValueOf(r).Elem().Field(i); !said.IsZero() {
			out.Field(i).Set(said)
		}
	}
	return &unsaid
}

// entries are the rules of a case as a node gets them.
func (c *run) entries(t *testing.T) (list []proto.Message) {
	for encoded, m := range map[string]proto.Message{c.Entries.Platform: new(configv1.PlatformRules), c.Entries.Site: new(configv1.SiteRules)} {
		body, err := base64.StdEncoding.DecodeString(encoded)
		if err == nil {
			err = proto.Unmarshal(body, m)
		}
		if err != nil {
			t.Fatalf("%s: %v", c.Name, err)
		}
		if len(body) > 0 {
			list = append(list, m)
		}
	}
	bulk := redirects()
	for _, b := range c.Bulk {
		status := b.StatusCode
		if status == 0 {
			status = 301
		}
		bulk.Redirects = append(bulk.Redirects, &configv1.BulkRedirect{Source: b.Source, Target: b.Target, Status: status, PreserveQuery: b.PreserveQuery})
	}
	if len(c.Bulk) > 0 {
		list = append(list, bulk)
	}
	return list
}

// secure gives the site what the case says of HTTPS.
func (c *run) secure(t *testing.T, s *rulesOf) {
	if c.HTTPS == nil {
		return
	}
	host := c.Request.Host
	own := tlstest.Issue(t, tlstest.ECDSAKey(t), host)
	tlstest.AppendPack(t, s.core.StateDir(), tlstest.Frames(t, own))
	m := &configv1.SiteHttps{
		Certificates:   []*configv1.CertificateRef{own.Ref("own")},
		MinimumVersion: configv1.TlsVersion_TLS_VERSION_1_2, CipherProfile: configv1.CipherProfile_CIPHER_PROFILE_MODERN,
	}
	for _, name := range c.HTTPS.Pending {
		m.Pending = append(m.Pending, edgetest.Domain(name))
	}
	if c.HTTPS.Status != 0 {
		m.ForceHttps = &configv1.HttpsRedirect{Status: c.HTTPS.Status, Port: c.HTTPS.Port}
		for _, name := range c.HTTPS.Excluded {
			m.ForceHttps.Excluded = append(m.ForceHttps.Excluded, edgetest.Domain(name))
		}
	}
	handshake.Read(s.core)
	if failed := edgetest.Change(t, s.core, []*configv1.Entry{edgetest.Entry("site", "a", edgetest.Site(0, host)), edgetest.Entry("site-https", "a", m)}); len(failed) > 0 {
		t.Fatal(failed)
	}
}

// become is what becomes of the request, in the words of the vectors.
func (c *run) become(t *testing.T, lists fakeLists) map[string]any {
	s := newRules(t, c.entries(t)...)
	c.secure(t, s)
	counts := &fakeCounts{}
	limits := &fakeLimits{over: func([]exchange.RateDue) int { return -1 }}
	s.rules.lists, s.rules.geo, s.rules.limits, s.rules.counts = lists, nowhere{}, limits, counts
	for level := exchange.Normal; level <= exchange.Captcha; level++ {
		if level.String() == c.Request.PassLevel {
			s.rules.passes = fakePasses(level)
		}
	}
	x, _ := s.asked(c.Request.Method, bytesOf(c.Request.URI), func(r *http.Request) {
		r.Host, r.Header = c.Request.Host, headerOf(c.Request.Headers)
		r.RemoteAddr = netip.AddrPortFrom(netip.MustParseAddr(c.Request.Address), 1).String()
	})
	x.In.Host, x.In.Scheme = c.Request.Host, c.Request.Scheme
	if x.In.Scheme == "https" {
		x.In.TLS, x.In.Scheme = new(tls.ConnectionState), "https"
	}
	s.stage(x)
	handshake.ForceHTTPS(s.core)(x)

	got := map[string]any{}
	set := func(name string, v any, there bool) {
		if there {
			got[name] = v
		}
	}
	out, o := &x.Out, &x.Overrides
	allowed, _ := exchange.RuleAllowed.Known(x)
	set("exempt", true, allowed)
	set("target", charactersOf(x.Target().Raw), x.Target().Raw != bytesOf(c.Request.URI))
	edits := map[string]any{}
	for _, edit := range out.Edits {
		edits[strings.ToLower(edit.Name)] = listed(edit.Values)
	}
	set("requestHeaders", edits, len(edits) > 0)
	origin := map[string]any{}
	for name, v := range map[string]any{"originGroup": out.Group, "hostHeader": out.HostHeader, "sni": out.SNI, "port": float64(out.Port)} {
		if v != "" && v != 0.0 {
			origin[name] = v
		}
	}
	set("origin", origin, len(origin) > 0)
	overrides := overridesOf(o)
	set("overrides", overrides, len(overrides) > 0)
	if len(limits.asked) > 0 {
		got["limits"] = float64(len(limits.asked[0]))
	}
	a := x.Deferred()
	demand, demanded := exchange.RuleDemand.Known(x)
	challenged := demanded && s.rules.passes.PassLevel(x) < demand.Level
	set("challenge", demand.Level.String(), challenged)
	switch {
	case a != nil:
		got["status"] = float64(a.Status)
		set("error", a.Code, a.Code != "")
		set("location", charactersOf(a.Header.Get("Location")), a.Header.Get("Location") != "")
	case c.Response != nil:
		a = x.RespondFrom(exchange.FromOrigin, c.Response.Status)
		for name, values := range headerOf(c.Response.Headers) {
			a.Header[name] = values
		}
	}
	if a != nil {
		before := a.Header.Clone()
		s.response(x, a)
		changed := map[string]any{}
		for _, name := range slices.Concat(namesOf(before), namesOf(a.Header)) {
			if !slices.Equal(before[name], a.Header[name]) {
				changed[strings.ToLower(name)] = listed(a.Header[name])
			}
		}
		set("responseHeaders", changed, len(changed) > 0)
		var codings []any
		for _, coding := range o.Codings {
			codings = append(codings, [...]string{exchange.Zstd: "zstd", exchange.Brotli: "br", exchange.Gzip: "gzip"}[coding])
		}
		set("codings", append([]any{}, codings...), o.HasCodings)
	}
	var matched []any
	for _, noted := range counts.noted {
		id, _, _ := strings.Cut(noted, " ")
		matched = append(matched, id)
	}
	set("matched", matched, len(matched) > 0)
	return got
}

func namesOf(h http.Header) (names []string) {
	for name := range h {
		names = append(names, name)
	}
	return names
}

func listed(values []string) []any {
	list := []any{}
	for _, value := range values {
		list = append(list, charactersOf(value))
	}
	return list
}

func overridesOf(o *exchange.Overrides) map[string]any {
	list := map[string]any{}
	for name, s := range map[string]exchange.Switch{
		"cacheBypass": o.CacheBypass, "forceHttps": o.ForceHTTPS, "gzip": o.Gzip, "brotli": o.Brotli, "zstd": o.Zstd, "websocket": o.WebSocket,
		"underAttack": o.UnderAttack, "ccEnabled": o.CC,
	} {
		if s != exchange.Unset {
			list[name] = s == exchange.On
		}
	}
	for name, d := range map[string]time.Duration{
		"originConnectTimeoutMs": o.ConnectTimeout, "originSendTimeoutMs": o.SendTimeout, "originReadTimeoutMs": o.ReadTimeout,
	} {
		if d != 0 {
			list[name] = float64(d.Milliseconds())
		}
	}
	if o.HasBodyLimit {
		list["requestBodyLimit"] = float64(o.BodyLimit)
	}
	if o.HasLogSampleRate {
		list["logSampleRate"] = float64(o.LogSampleRate)
	}
	if o.CCMaxLevel != exchange.Normal {
		list["ccMaxLevel"] = fmt.Sprint(o.CCMaxLevel)
	}
	return list
}
