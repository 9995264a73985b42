package cc

import (
	"fmt"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"edge.svc/caddy/exchange"
	nodev1 "edge.svc/caddy/gen/svc/node/v1"
	"edge.svc/caddy/internal/exchangetest"
)

// An event that keeps some rules and matches says how many there were.
func TestWAFEventsSayHowManyRulesAndMatchesThereWere(t *testing.T) {
	for _, c := range []struct{ rules, kept, matches, seen int }{
		{rules: 1, kept: 1, matches: 1, seen: 1},
		{rules: 16, kept: 16, matches: 32, seen: 32},
		{rules: 20, kept: 16, matches: 32, seen: 300},
	} {
		g := New(Options{InstanceID: "boot", Now: time.Now})
		x := exchangetest.New(httptest.NewRecorder(), httptest.NewRequest("POST", "/editor?a=b", nil))
		x.Plan = &exchange.Plan{SiteID: "a"}
		e := exchange.WAFEvent{WAFOutcome: exchange.WAFOutcome{Score: 5 * c.seen, Blocked: true}, Seen: c.seen, Threshold: 5}
		var rules []uint32
		for i := range c.rules {
			e.Rules = append(e.Rules, 942100+i)
			rules = append(rules, uint32(942100+i))
		}
		for i := range c.matches {
			e.Matches = append(e.Matches, exchange.WAFMatch{Rule: 942100, Part: "argument", Name: fmt.Sprint(i), Points: 5})
		}
		g.WAFMatched(x, e)
		events, _, _ := g.outbox.all(0)
		if len(events) != 1 {
			t.Fatalf("%d events", len(events))
		}
		told := events[0].GetWaf()
		if events[0].GetSiteId() != "a" || events[0].GetKind() != nodev1.SecurityEventKind_SECURITY_EVENT_KIND_WAF_MATCHED || told.GetPath() != "/editor" || !told.GetBlocked() {
			t.Errorf("%v", events[0])
		}
		if !slices.Equal(told.GetRules(), rules[:c.kept]) || int(told.GetRulesSeen()) != c.rules {
			t.Errorf("%d of %d rules, %d seen", len(told.GetRules()), c.rules, told.GetRulesSeen())
		}
		if len(told.GetMatches()) != c.matches || int(told.GetMatchesSeen()) != c.seen {
			t.Errorf("%d of %d matches, %d seen", len(told.GetMatches()), c.seen, told.GetMatchesSeen())
		}
		if last := told.GetMatches()[c.matches-1]; last.GetRule() != 942100 || last.GetName() != fmt.Sprint(c.matches-1) || last.GetPoints() != 5 {
			t.Errorf("the last match is %v", last)
		}
	}
}
