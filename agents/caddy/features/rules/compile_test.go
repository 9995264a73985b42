package rules

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	configv1 "edge.svc/caddy/gen/svc/config/v1"
	"edge.svc/caddy/internal/ruletest"
)

// setting is an edit that sets parameters to texts, in the order given: name, value, name, value.
func setting(pairs ...string) *configv1.QueryEdit {
	e := &configv1.QueryEdit{}
	for i := 0; i < len(pairs); i += 2 {
		e.Set = append(e.Set, &configv1.QueryParameter{Name: pairs[i], Value: textOf(pairs[i+1])})
	}
	return e
}

func on() *bool { return proto.Bool(true) }

// An entry is as good as its worst rule: its failure names rule and reason, and the version before stays.
func TestOneBadRuleFailsItsEntry(t *testing.T) {
	const (
		responseTransform = configv1.RulePhase_RULE_PHASE_RESPONSE_TRANSFORM
		cache             = configv1.RulePhase_RULE_PHASE_CACHE
		origin            = configv1.RulePhase_RULE_PHASE_ORIGIN
		header            = configv1.RateLimitKey_RATE_LIMIT_KEY_HEADER
		address           = configv1.RateLimitKey_RATE_LIMIT_KEY_ADDRESS
	)
	code := ruletest.Eq("http.response.code", 200)
	block := &configv1.BlockAction{Status: 403}
	named := func(name string) *configv1.HeaderAction {
		return &configv1.HeaderAction{Name: name, Value: textOf("v")}
	}
	to := func(target string, query *configv1.QueryEdit) *configv1.RedirectAction {
		return &configv1.RedirectAction{Target: textOf(target), Status: 301, Query: query}
	}
	rewrite := func(target string) *configv1.RewriteAction { return &configv1.RewriteAction{Target: textOf(target)} }
	limit := func(change func(*configv1.RateLimitAction)) *configv1.RateLimitAction {
		a := &configv1.RateLimitAction{Limit: 1, WindowSeconds: 1, Key: address, Status: 429}
		change(a)
		return a
	}
	many := make([]string, 34)
	for i := range 17 {
		many[2*i] = fmt.Sprintf("%02d", i)
	}
	for name, c := range map[string]struct {
		rule   *configv1.Rule
		reason string
	}{
		"no condition":                       {&configv1.Rule{Phase: wafCustom, Action: &configv1.Rule_Block{Block: block}}, "expression has a version"},
		"a damaged condition":                {&configv1.Rule{Phase: wafCustom, Condition: []byte{1}, Action: &configv1.Rule_Block{Block: block}}, "malformed"},
		"a condition that is none":           {when(ruletest.Literal("x"), block), "lacks a condition"},
		"no action":                          {&configv1.Rule{Phase: wafCustom, Condition: ruletest.Encode(ruletest.True())}, "the action needs a capability"},
		"no phase":                           {ruletest.In(0, always(block)), "phase 0 needs a capability"},
		"a later phase":                      {ruletest.In(10, always(block)), "phase 10 needs a capability"},
		"a negative phase":                   {ruletest.In(-1, always(block)), "phase -1 needs a capability"},
		"an action of another phase":         {ruletest.In(cache, always(block)), "not allowed in the phase cache"},
		"a request header in responses":      {ruletest.In(responseTransform, always(named("x"))), "not allowed in the phase response-transform"},
		"a condition about the response":     {when(code, block), "reads a response"},
		"a value of the response":            {always(&configv1.HeaderAction{Name: "x", Value: computed(ruletest.Field("http.response.headers[x]"))}), "reads a response"},
		"a status of no block":               {always(&configv1.BlockAction{Status: 200}), "status is 200"},
		"no type of a challenge":             {always(&configv1.ChallengeAction{}), "has no value"},
		"an unknown challenge":               {always(&configv1.ChallengeAction{Type: 9}), "needs a capability"},
		"a redirect without a target":        {always(&configv1.RedirectAction{Status: 301}), "has no value"},
		"a redirect of no status":            {always(&configv1.RedirectAction{Target: textOf("/"), Status: 304}), "status is 304"},
		"a redirect to another host's //":    {always(to("//b.com", nil)), "not allowed there"},
		"a redirect with credentials":        {always(to("http://a@b.com", nil)), "not allowed there"},
		"a redirect to no URL":               {always(to("javascript:alert(1)", nil)), "not allowed there"},
		"a redirect with a line break":       {always(to("/a\r\nb", nil)), "not allowed there"},
		"a rewrite with a query":             {always(rewrite("/a?b")), "not allowed there"},
		"a rewrite of no path":               {always(rewrite("a")), "not allowed there"},
		"a value that is no string":          {always(&configv1.RewriteAction{Target: computed(ruletest.Call("len", "x"))}), "lacks a string"},
		"a parameter of no name":             {always(to("/", setting("", "x"))), "the query has"},
		"a parameter with &":                 {always(to("/", setting("a&b", "x"))), "the query has"},
		"a parameter set twice":              {always(to("/", setting("a", "1", "a", "2"))), "the query has"},
		"parameters out of order":            {always(to("/", setting("b", "1", "a", "2"))), "the query has"},
		"a parameter set and removed":        {always(to("/", &configv1.QueryEdit{Set: setting("a", "1").Set, Remove: []string{"a"}})), "the query has"},
		"a parameter's value in Chinese":     {always(to("/", setting("a", "是"))), "the query has"},
		"a parameter's value too long":       {always(to("/", setting("a", strings.Repeat("x", 257)))), "the query has"},
		"too many parameters":                {always(to("/", setting(many...))), "more than 16"},
		"a header of no name":                {always(named("")), "valid name in lower case"},
		"a header in capitals":               {always(named("X-A")), "valid name in lower case"},
		"a header with a space":              {always(named("x a")), "valid name in lower case"},
		"a long header":                      {always(named(strings.Repeat("x", 65))), "valid name in lower case"},
		"a protected header":                 {always(named("x-svc-error")), "cannot change this header"},
		"a header of cookies":                {ruletest.WhenAnswered(ruletest.True(), named("set-cookie")), "cannot change this header"},
		"a header's value with a break":      {always(&configv1.HeaderAction{Name: "x", Value: textOf("a\nb")}), "not allowed there"},
		"a header's value too long":          {always(&configv1.HeaderAction{Name: "x", Value: textOf(strings.Repeat("x", 16_385))}), "not allowed there"},
		"a request header that is added":     {always(&configv1.HeaderAction{Name: "x", Value: textOf("v"), Append: true}), "cannot be appended"},
		"nothing that is added":              {ruletest.WhenAnswered(ruletest.True(), &configv1.HeaderAction{Name: "x", Append: true}), "cannot be appended"},
		"no setting":                         {always(&configv1.ConfigAction{}), "does nothing"},
		"another setting in the phase cache": {ruletest.In(cache, always(&configv1.ConfigAction{Brotli: on()})), "the phase cache cannot set"},
		"a body limit above 10 GiB":          {always(&configv1.ConfigAction{RequestBodyLimit: proto.Uint64(10<<30 + 1)}), "request_body_limit"},
		"a timeout of nothing":               {always(&configv1.ConfigAction{OriginConnectTimeoutMs: proto.Uint32(99)}), "origin_connect_timeout_ms"},
		"a timeout of hours":                 {always(&configv1.ConfigAction{OriginReadTimeoutMs: proto.Uint32(3_600_001)}), "origin_read_timeout_ms"},
		"a sample above all":                 {always(&configv1.ConfigAction{LogSampleRate: proto.Uint32(10_001)}), "log_sample_rate"},
		"a highest level of nothing":         {always(&configv1.ConfigAction{CcMaxLevel: new(configv1.ChallengeType)}), "has no value"},
		"a limit of nothing":                 {always(limit(func(a *configv1.RateLimitAction) { a.Limit = 0 })), "limit is 0"},
		"a limit above its maximum":          {always(limit(func(a *configv1.RateLimitAction) { a.Limit = 100_001 })), "limit is 100001"},
		"a window above an hour":             {always(limit(func(a *configv1.RateLimitAction) { a.WindowSeconds = 3601 })), "window_seconds is 3601"},
		"a limit's status":                   {always(limit(func(a *configv1.RateLimitAction) { a.Status = 503 })), "status is 503"},
		"a limit by nothing":                 {always(limit(func(a *configv1.RateLimitAction) { a.Key = 0 })), "needs a capability"},
		"a limit by a header of no name":     {always(limit(func(a *configv1.RateLimitAction) { a.Key = header })), "valid name in lower case"},
		"a limit with a header beside":       {always(limit(func(a *configv1.RateLimitAction) { a.Header = "x" })), "valid name in lower case"},
		"an origin of nothing":               {always(&configv1.OriginAction{}), "does nothing"},
		"a host header with a space":         {always(&configv1.OriginAction{HostHeader: "a b"}), "not a valid host name"},
		"a host header with a break":         {always(&configv1.OriginAction{HostHeader: "a\r\nb"}), "not a valid host name"},
		"a server name with a port":          {always(&configv1.OriginAction{Sni: "a.com:1"}), "not a valid host name"},
		"a server name that is an address":   {always(&configv1.OriginAction{Sni: "192.0.2.1"}), "not a valid host name"},
		"a port beyond ports":                {always(&configv1.OriginAction{Port: 65_536}), "port must be at most"},
		"an unknown coding":                  {always(&configv1.CompressionAction{Codings: []configv1.Coding{4}}), "needs a capability"},
		"a coding twice":                     {always(&configv1.CompressionAction{Codings: []configv1.Coding{1, 1}}), "needs a capability"},
	} {
		s := newRules(t, ruletest.Site(always(&configv1.BlockAction{Status: 451})))
		reasons := s.try(t, ruletest.Site(always(&configv1.LogAction{}), c.rule))
		if len(reasons) != 1 || !strings.HasPrefix(reasons[0], "rule s2: ") || !strings.Contains(reasons[0], c.reason) {
			t.Errorf("%s: %q", name, reasons)
		}
		if _, a := s.ask(t, "GET", "/"); a == nil || a.Status != 451 {
			t.Errorf("%s: the version before does not serve", name)
		}
	}
}

func TestListsOfRulesAreBounded(t *testing.T) {
	list := func(n int) (rules []*configv1.Rule) {
		for range n {
			rules = append(rules, always(&configv1.LogAction{}))
		}
		return rules
	}
	twice := ruletest.Site(list(2)...)
	twice.Rules[1].Id = twice.Rules[0].Id
	group := always(&configv1.OriginAction{Group: "g"})
	for name, c := range map[string]struct {
		entry proto.Message
		good  bool
	}{
		"64 of a site":            {ruletest.Site(list(64)...), true},
		"65 of a site":            {ruletest.Site(list(65)...), false},
		"32 of the platform":      {ruletest.Platform(list(32)...), true},
		"33 of the platform":      {ruletest.Platform(list(33)...), false},
		"none":                    {ruletest.Site(), false},
		"an id twice":             {twice, false},
		"a long id":               {&configv1.SiteRules{Rules: []*configv1.Rule{{Id: strings.Repeat("i", 65)}}}, false},
		"a group of a site":       {ruletest.Site(group), true},
		"a group of the platform": {ruletest.Platform(group), false},
	} {
		if reasons := newRules(t).try(t, c.entry); (len(reasons) == 0) != c.good {
			t.Errorf("%s: %q", name, reasons)
		}
	}
}

// Whatever an entry says, it compiles or it does not; what compiled serves requests.
func FuzzSiteRules(f *testing.F) {
	for _, m := range []*configv1.SiteRules{
		ruletest.Site(always(&configv1.BlockAction{Status: 403}), when(ruletest.InList("ip.src", "l"), &configv1.LogAction{})),
		ruletest.Site(always(&configv1.RedirectAction{Target: textOf("/a?b#c"), Status: 302, Query: setting("a", "1")})),
		ruletest.Site(always(&configv1.RewriteAction{Target: computed(ruletest.Call("concat", "/x", ruletest.Field("http.request.uri.path")))})),
		ruletest.Site(ruletest.WhenAnswered(ruletest.Eq("http.response.code", 200), &configv1.HeaderAction{Name: "x", Value: textOf("v"), Append: true})),
		ruletest.Site(always(&configv1.ConfigAction{Gzip: on()}), always(&configv1.OriginAction{Port: 1}), always(&configv1.CompressionAction{})),
	} {
		encoded, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(encoded)
	}
	s := newRules(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		var m configv1.SiteRules
		if proto.Unmarshal(body, &m) != nil {
			return
		}
		own, err := compileSiteRules(nil, "a", &m)
		if err != nil {
			return
		}
		x, _ := s.asked("GET", "/a/b.JPG?c=d&e", with("Cookie", "a=b; c"), with("X", "1"), with("X", "2"))
		q := s.rules.begin(x, nil)
		q.decide(nil, own, sources{})
		s.rules.end(q)
		a := x.Deferred()
		if a == nil {
			a = x.RespondFrom(2, 200)
		}
		q = s.rules.begin(x, a)
		q.run(own.of(responseTransform))
		q.run(own.of(compression))
		s.rules.end(q)
		if raw := x.Target().Raw; !strings.HasPrefix(raw, "/") || strings.ContainsAny(raw, " \r\n#") || x.Target().Reserved() {
			t.Fatalf("an origin gets %q", raw)
		}
		for name, values := range a.Header {
			for _, value := range values {
				if strings.ContainsAny(value, "\r\n") {
					t.Fatalf("%s is %q", name, value)
				}
			}
		}
	})
}
