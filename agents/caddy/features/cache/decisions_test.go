package cache

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
	"edge.svc/caddy/features/cache/freshness"
	"edge.svc/caddy/features/cache/store"
	_ "edge.svc/caddy/features/rules"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
	"edge.svc/caddy/internal/edgetest"
	"edge.svc/caddy/internal/exchangetest"
)

// decision is a case of test/vectors/cache-decisions.json: cache rules, a request, a response, and what becomes of them.
type decision struct {
	Name     string
	Request  *decisionRequest
	Bypass   bool
	Response *decisionResponse
	Expect   map[string]any
	Entry    string
}

type decisionRequest struct {
	Method, Scheme, Host, URI, Address string
	Port                               uint16
	Headers                            [][2]string
	BodySize                           int
}

type decisionResponse struct {
	Status  int
	Headers [][2]string
}

// over is the request with what it does not say taken from the other.
func (r *decisionRequest) over(unsaid decisionRequest) *decisionRequest {
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

// bytesOf takes a character for each byte, charactersOf a byte for each character.
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

// madeUp is an origin that sends one response.
type madeUp struct{ response *decisionResponse }

func (m *madeUp) Fetch(context.Context, *exchange.Request) (*exchange.Response, error) {
	h := headerOf(m.response.Headers)
	length, _ := strconv.Atoi(h.Get("Content-Length"))
	return &exchange.Response{Status: m.response.Status, Header: h, Body: zeros(length)}, nil
}

type zeros int

func (z zeros) CopyTo(sink exchange.Sink) error {
	if z == 0 {
		return nil
	}
	return sink.Write(make([]byte, z))
}

func (z zeros) Close() {}

// reasons are those of the console where this program has them in other words. It does not say why a request bypasses.
var reasons = map[string]freshness.Reason{
	"stored": freshness.Stored, "status": freshness.ByStatus, "vary": freshness.ByVary, "set_cookie": freshness.BySetCookie,
	"authorization": freshness.ByAuthorized, "authorization_response": freshness.ByAuthorized, "no_store": freshness.ByNoStore,
	"private": freshness.ByPrivate, "no_lifetime": freshness.ByNoLifetime, "rule_ttl_zero": freshness.ByNoLifetime,
	"no_validator": freshness.ByNoValidator, "no_rule_for_response": byRule, "rule_bypasses": byRule,
}

// The console explains what becomes of a response; it is what becomes of it here.
func TestDecisionsAreThoseOfTheConsole(t *testing.T) {
	content, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "test", "vectors", "cache-decisions.json"))
	if err != nil {
		t.Fatal(err)
	}
	var vectors struct {
		Now     int64
		Site    string
		Request decisionRequest
		Cases   []decision
	}
	if err := json.Unmarshal(content, &vectors); err != nil {
		t.Fatal(err)
	}
	if len(vectors.Cases) < 100 {
		t.Fatalf("%d cases", len(vectors.Cases))
	}
	now := time.Unix(vectors.Now, 0)
	c := core.New(core.Options{StateDir: t.TempDir(), Now: func() time.Time { return now }, Values: map[string]any{"ban_capacity": 10, "ban_max_mib": 1}})
	edgetest.Change(t, c, []*configv1.Entry{edgetest.Entry("site", vectors.Site, edgetest.Site(0, vectors.Request.Host))})
	origin := &madeUp{}
	Of(c).origin = origin
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() { Of(c).store.Run(stop); close(ended) }()
	defer func() { close(stop); <-ended }()
	eventually(t, "the zone is ready", Of(c).Ready)
	for _, each := range vectors.Cases {
		each.Request = each.Request.over(vectors.Request)
		m, body := &configv1.SiteCache{}, []byte(nil)
		if body, err = base64.StdEncoding.DecodeString(each.Entry); err == nil {
			err = proto.Unmarshal(body, m)
		}
		if err != nil {
			t.Fatalf("%s: %v", each.Name, err)
		}
		if failed := edgetest.Change(t, c, []*configv1.Entry{edgetest.Entry(kind, vectors.Site, m)}); len(failed) > 0 {
			t.Fatal(each.Name, failed)
		}
		origin.response = each.Response
		got, want := each.become(t, c, vectors.Site), each.want()
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\n%v\nnot\n%v", each.Name, got, want)
		}
	}
}

func eventually(t *testing.T, says string, true func() bool) {
	t.Helper()
	for begun := time.Now(); !true(); time.Sleep(time.Millisecond) {
		if time.Since(begun) > time.Minute {
			t.Fatal("never: " + says)
		}
	}
}

// want is what is expected, in the words of this program.
func (d *decision) want() map[string]any {
	want := d.Expect
	delete(want, "source")
	switch want["decision"] {
	case "bypassed":
		delete(want, "why")
		delete(want, "rule")
	case "response_needed":
		delete(want, "why")
	default:
		if reason, known := reasons[want["why"].(string)]; known {
			want["why"] = string(reason)
		} else {
			delete(want, "why")
		}
	}
	return want
}

// become is what becomes of the request, in the words of the vectors.
func (d *decision) become(t *testing.T, c *core.Core, site string) map[string]any {
	cache := Of(c)
	r := httptest.NewRequest(d.Request.Method, bytesOf(d.Request.URI), nil)
	if d.Request.BodySize > 0 {
		r = httptest.NewRequest(d.Request.Method, bytesOf(d.Request.URI), strings.NewReader(strings.Repeat("x", d.Request.BodySize)))
	}
	r.Host, r.Header, r.RemoteAddr = d.Request.Host, headerOf(d.Request.Headers), d.Request.Address+":1"
	if d.Request.Scheme == "https" {
		r.TLS = new(tls.ConnectionState)
	}
	x := exchangetest.New(httptest.NewRecorder(), r)
	x.In.Host, x.In.Port, x.In.Scheme = d.Request.Host, d.Request.Port, d.Request.Scheme
	x.Tables = c.Tables()
	x.Plan = core.PlanOfSite(x.Tables, site)
	if d.Bypass {
		x.Overrides.CacheBypass = exchange.On
	}
	got := map[string]any{}
	if d.Response == nil {
		key, _ := part.Of(x.Plan).key.of(x)
		got["decision"], got["key"] = "response_needed", charactersOf(key.text)
		return got
	}
	a := Stage(c)(x)
	l, _ := lookups.Known(x)
	browser := false
	if a != nil {
		Response(c)(x, a)
		browser = l.rule != nil && l.rule.browserValue != nil && a.Header.Get("Cache-Control") == l.rule.browserValue[0]
		x.Send(a)
	}
	got["xCache"] = l.word.String()
	switch {
	case !l.keyed:
		got["decision"] = "bypassed"
		return got
	case l.stored:
		got["decision"] = "stored"
	default:
		got["decision"] = "not_stored"
	}
	got["key"] = charactersOf(l.key.text)
	if l.reason != "" {
		got["why"] = string(l.reason)
	}
	if l.rule != nil {
		got["rule"] = float64(l.rule.priority)
	}
	if browser {
		got["browserTtl"] = float64(l.rule.browser)
	}
	if l.stored {
		var o *store.Object
		eventually(t, d.Name+": is stored", func() bool { o = cache.find(&l.key, &x.In, &x.Out); return o != nil })
		seconds := func(name string, d time.Duration, always bool) {
			if always || d > 0 {
				got[name] = d.Seconds()
			}
		}
		seconds("lifetime", o.Lifetime, true)
		seconds("age", o.InitialAge, true)
		seconds("staleWhileRevalidate", o.StaleWhileRevalidate, false)
		seconds("staleIfError", o.StaleIfError, false)
		if o.Flags&flagNoCache != 0 || o.Lifetime <= 0 {
			got["validated"] = true
		}
		var vary []any
		for _, name := range o.Vary {
			vary = append(vary, strings.ToLower(name))
		}
		if vary != nil {
			got["vary"] = vary
		}
		cache.store.Remove(o)
	}
	cache.uncacheable.clear(l.key.hash)
	return got
}
