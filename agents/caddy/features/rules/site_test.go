package rules

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"

	"google.golang.org/protobuf/proto"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
	"edge.svc/caddy/internal/edgetest"
	"edge.svc/caddy/internal/exchangetest"
	"edge.svc/caddy/internal/ruletest"
)

// rulesOf is a site "a" of the host a.com with rules, asked without the other stages.
type rulesOf struct {
	core     *core.Core
	rules    *Rules
	stage    exchange.Stage
	response exchange.ResponseStage
}

func newRules(t testing.TB, entries ...proto.Message) *rulesOf {
	t.Helper()
	c := core.New(core.Options{StateDir: t.TempDir()})
	s := &rulesOf{c, Of(c), Stage(c), Response(c)}
	if failed := edgetest.Change(t, c, []*configv1.Entry{edgetest.Entry("site", "a", edgetest.Site(0, "a.com"))}); len(failed) > 0 {
		t.Fatal(failed)
	}
	s.change(t, entries...)
	return s
}

func (s *rulesOf) change(t testing.TB, entries ...proto.Message) {
	t.Helper()
	for _, entry := range entries {
		if failed := s.try(t, entry); len(failed) > 0 {
			t.Fatal(failed)
		}
	}
}

// try applies an entry and returns the reasons of those that fail.
func (s *rulesOf) try(t testing.TB, message proto.Message) (reasons []string) {
	t.Helper()
	kind, id := "", ""
	switch m := message.(type) {
	case *configv1.SiteRules:
		kind, id = "site-rules", "a"
	case *configv1.PlatformRules:
		kind = "platform-rules"
	case *configv1.BulkRedirects:
		kind, id = "bulk-redirects", m.GetSiteId()+"/0"
	}
	for _, f := range edgetest.Change(t, s.core, []*configv1.Entry{edgetest.Entry(kind, id, message)}) {
		reasons = append(reasons, f.GetReason())
	}
	return reasons
}

// asked is an exchange on its way: target as a client sends it, for a.com.
func (s *rulesOf) asked(method, target string, change ...func(*http.Request)) (*exchange.Exchange, *httptest.ResponseRecorder) {
	r := httptest.NewRequest(method, target, nil)
	r.Host, r.RemoteAddr = "a.com", "192.0.2.1:1234"
	for _, f := range change {
		f(r)
	}
	w := httptest.NewRecorder()
	x := exchangetest.New(w, r)
	x.In.Host, x.In.ID, x.In.Port = "a.com", "request-1", 80
	x.Tables = s.core.Tables()
	x.Plan = core.PlanOfSite(x.Tables, "a")
	return x, w
}

// ask takes a request to the rules; the answer is what they hold back, nil where they let it on.
func (s *rulesOf) ask(t testing.TB, method, target string, change ...func(*http.Request)) (*exchange.Exchange, *exchange.Answer) {
	t.Helper()
	x, _ := s.asked(method, target, change...)
	if a := s.stage(x); a != nil {
		t.Fatal("an answer was not held back")
	}
	return x, x.Deferred()
}

// answered has an answer of a site or the edge pass the rules.
func (s *rulesOf) answered(from exchange.From, status int, header http.Header) http.Header {
	x, _ := s.asked("GET", "/")
	a := x.RespondFrom(from, status)
	for name, values := range header {
		a.Header[name] = values
	}
	s.response(x, a)
	return a.Header
}

func with(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Add(name, value) }
}

// Fakes of what other features do.
type (
	fakeLists  map[string][]netip.Prefix
	fakeGeo    struct{ ready bool }
	fakePasses exchange.Level
	fakeLimits struct {
		over  func(due []exchange.RateDue) int
		asked [][]exchange.RateDue
	}
	fakeCounts struct{ noted []string }
)

func (f fakeLists) Contains(_ *exchange.Tables, list string, addr netip.Addr) (in, whole bool) {
	prefixes, whole := f[list]
	for _, p := range prefixes {
		in = in || p.Contains(addr)
	}
	return in, whole
}

func (f fakeGeo) Country(netip.Addr) (string, bool)    { return "DE", f.ready }
func (f fakeGeo) AS(netip.Addr) (uint32, string, bool) { return 64496, "Example", f.ready }

func (f fakePasses) PassLevel(*exchange.Exchange) exchange.Level { return exchange.Level(f) }

func (f *fakeLimits) Admit(_ *exchange.Plan, due []exchange.RateDue) int {
	f.asked = append(f.asked, append([]exchange.RateDue{}, due...))
	return f.over(due)
}

var eventNames = [...]string{
	exchange.RuleLogged: "logged", exchange.RuleLimited: "limited", exchange.RuleBlocked: "blocked",
	exchange.RuleChallenged: "challenged", exchange.RuleRedirected: "redirected", exchange.RuleApplied: "applied",
}

func (f *fakeCounts) Note(_ *exchange.Exchange, rule *exchange.RuleName, what exchange.RuleEvent) {
	f.noted = append(f.noted, rule.ID+" "+eventNames[what])
}

var (
	when     = ruletest.When
	always   = ruletest.Rule
	textOf   = ruletest.Text
	computed = ruletest.Computed
)
