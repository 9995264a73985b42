package rules

import (
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"edge.svc/caddy/exchange"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
	"edge.svc/caddy/internal/ruletest"
)

// A value that cannot be put into a header leaves the field as it is; the request goes on.
func TestHeaderValuesThatFail(t *testing.T) {
	argument := computed(ruletest.Call("url_decode", ruletest.Field("http.request.uri.args[v]")))
	s := newRules(t, ruletest.Site(
		always(&configv1.HeaderAction{Name: "x-v", Value: textOf("kept")}), always(&configv1.HeaderAction{Name: "x-v", Value: argument})))
	for value, want := range map[string]string{
		"new": "new", "a%0d%0ab": "kept", "%00": "kept", strings.Repeat("x", 4096): strings.Repeat("x", 4096), strings.Repeat("x", 4097): "kept", "%c3%bc": "ü",
	} {
		x, a := s.ask(t, "GET", "/?v="+value)
		if got := x.Out.Edits; a != nil || len(got) != 1 || got[0].Values[0] != want {
			t.Errorf("%.20s: %.40v", value, got)
		}
	}
	s.change(t, ruletest.Site(always(&configv1.HeaderAction{Name: "x-v", Value: textOf(strings.Repeat("ü", 4096))})))
	if x, a := s.ask(t, "GET", "/"); a != nil || len(x.Out.Edits) != 0 {
		t.Errorf("4096 characters of 8192 bytes: %+v %+v", a, x.Out.Edits)
	}
	s.change(t, ruletest.Site(always(&configv1.HeaderAction{Name: "x-v", Value: computed(ruletest.Field("ip.geoip.country"))})))
	if x, a := s.ask(t, "GET", "/"); a != nil || len(x.Out.Edits) != 0 {
		t.Errorf("without a database: %+v %+v", a, x.Out.Edits)
	}
}

// However much rules add, a header grows by no more than 32 KiB.
func TestHeadersGrowWithinBounds(t *testing.T) {
	var requests, answers []*configv1.Rule
	for i := range 32 {
		change := &configv1.HeaderAction{Name: fmt.Sprint("x-", i), Value: textOf(strings.Repeat("v", 4096))}
		requests = append(requests, always(change))
		answers = append(answers, ruletest.WhenAnswered(ruletest.True(), &configv1.HeaderAction{Name: "x-all", Value: change.Value, Append: true}))
	}
	s := newRules(t, ruletest.Site(append(requests, answers...)...))
	x, a := s.ask(t, "GET", "/")
	if a != nil || len(x.Out.Edits) != 7 {
		t.Errorf("%d fields of a request", len(x.Out.Edits))
	}
	if lines := s.answered(exchange.FromOrigin, 200, nil)["X-All"]; len(lines) != 7 {
		t.Errorf("%d lines of an answer", len(lines))
	}
}

func TestResponseRules(t *testing.T) {
	set := func(name, value string, appends bool) *configv1.HeaderAction {
		return &configv1.HeaderAction{Name: name, Value: textOf(value), Append: appends}
	}
	shared := []string{"a", "b"}[:1]
	for _, c := range []struct {
		name   string
		from   exchange.From
		rules  []*configv1.Rule
		before http.Header
		after  http.Header
	}{
		{"set", exchange.FromOrigin, []*configv1.Rule{ruletest.WhenAnswered(ruletest.True(), set("x-a", "v", false))}, http.Header{"X-A": {"1", "2"}}, http.Header{"X-A": {"v"}}},
		{"append", exchange.FromOrigin, []*configv1.Rule{ruletest.WhenAnswered(ruletest.True(), set("x-a", "v", true))}, http.Header{"X-A": shared}, http.Header{"X-A": {"a", "v"}}},
		{"append to nothing", exchange.FromCache, []*configv1.Rule{ruletest.WhenAnswered(ruletest.True(), set("x-a", "v", true))}, nil, http.Header{"X-A": {"v"}}},
		{"remove", exchange.FromOrigin, []*configv1.Rule{ruletest.WhenAnswered(ruletest.True(), &configv1.HeaderAction{Name: "x-a"})}, http.Header{"X-A": {"1"}}, http.Header{}},
		{
			"remove what the server would make up", exchange.FromOrigin, []*configv1.Rule{ruletest.WhenAnswered(ruletest.True(), &configv1.HeaderAction{Name: "content-type"})},
			http.Header{"Content-Type": {"a/b"}}, http.Header{"Content-Type": nil},
		},
		{
			"what an answer is", exchange.FromOrigin, []*configv1.Rule{
				ruletest.WhenAnswered(ruletest.Eq("http.response.code", 404), set("x-code", "404", false)),
				ruletest.WhenAnswered(ruletest.Eq("http.response.code", 200), set("x-code", "200", false)),
				ruletest.WhenAnswered(ruletest.Eq("http.response.content_type.media_type", "text/html"), set("x-type", "html", false)),
				ruletest.WhenAnswered(ruletest.Eq("http.response.headers[x-two]", "1, 2"), set("x-two", "3", true)),
				ruletest.WhenAnswered(ruletest.Eq("http.response.headers[x-two]", "1, 2, 3"), set("x-seen", "all", false)),
				ruletest.WhenAnswered(ruletest.Eq("http.response.cache_status", ""), set("x-cache-status", "none", false)),
			},
			http.Header{"Content-Type": {" Text/HTML ; charset=x"}, "X-Two": {"1", "2"}},
			http.Header{"Content-Type": {" Text/HTML ; charset=x"}, "X-Two": {"1", "2", "3"}, "X-Code": {"200"}, "X-Type": {"html"}, "X-Seen": {"all"}, "X-Cache-Status": {"none"}},
		},
		{
			"a condition that fails passes its rule over", exchange.FromOrigin, []*configv1.Rule{
				ruletest.WhenAnswered(ruletest.Not(ruletest.Eq("ip.geoip.country", "DE")), set("x-a", "v", false)), ruletest.WhenAnswered(ruletest.True(), set("x-b", "v", false)),
			}, nil, http.Header{"X-B": {"v"}},
		},
		{
			"an answer of the edge", exchange.FromEdge, []*configv1.Rule{
				ruletest.WhenAnswered(ruletest.True(), set("cache-control", "v", true)), ruletest.WhenAnswered(ruletest.True(), &configv1.HeaderAction{Name: "location"}),
				ruletest.WhenAnswered(ruletest.True(), set("x-b", "v", false)),
			}, http.Header{"Cache-Control": {"no-store"}, "Location": {"/"}}, http.Header{"Cache-Control": {"no-store"}, "Location": {"/"}, "X-B": {"v"}},
		},
	} {
		s := newRules(t, ruletest.Site(c.rules...))
		if got := s.answered(c.from, 200, c.before); !reflect.DeepEqual(got, c.after) {
			t.Errorf("%s: %v", c.name, got)
		}
	}
	if full := shared[:2]; full[1] != "b" {
		t.Error("a list that answers share was written to")
	}
}

// The last compression rule that matches says how an answer is compressed; those of the edge are left as they are.
func TestCompressionRules(t *testing.T) {
	codings := func(list ...configv1.Coding) *configv1.CompressionAction {
		return &configv1.CompressionAction{Codings: list}
	}
	s := newRules(t,
		ruletest.Platform(always(codings(configv1.Coding_CODING_BR, configv1.Coding_CODING_GZIP))),
		ruletest.Site(when(ruletest.Eq("http.response.code", 404), codings()), when(ruletest.Eq("http.response.headers[x-set]", "1"), codings(configv1.Coding_CODING_ZSTD)),
			ruletest.WhenAnswered(ruletest.Eq("http.response.code", 206), &configv1.HeaderAction{Name: "x-set", Value: textOf("1")})))
	for _, c := range []struct {
		status int
		from   exchange.From
		want   []exchange.Coding
		set    bool
	}{
		{200, exchange.FromOrigin, []exchange.Coding{exchange.Brotli, exchange.Gzip}, true},
		{404, exchange.FromCache, []exchange.Coding{}, true},
		{206, exchange.FromOrigin, []exchange.Coding{exchange.Zstd}, true},
		{200, exchange.FromEdge, nil, false},
	} {
		x, _ := s.asked("GET", "/")
		s.response(x, x.RespondFrom(c.from, c.status))
		if o := x.Overrides; o.HasCodings != c.set || !slices.Equal(o.Codings, c.want) {
			t.Errorf("%d: %v %v", c.status, o.HasCodings, o.Codings)
		}
	}
}
