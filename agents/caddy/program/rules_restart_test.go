package program_test

import (
	"strings"
	"testing"

	configv1 "edge.svc/caddy/gen/svc/config/v1"
	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
	"edge.svc/caddy/internal/edgetest"
	"edge.svc/caddy/internal/ruletest"
	"edge.svc/caddy/program/live"
)

// One rule that does not compile leaves the former rules in force, in a process that starts as in the one before. Without
// former ones nothing passes.
func TestRulesThatDoNotCompileOpenNothing(t *testing.T) {
	port := live.StartOrigin(t)
	site := func(id, host string) *configv1.Entry { return edgetest.Entry("site", id, edgetest.Site(port, host)) }
	deny := ruletest.When(ruletest.Eq("http.request.uri.path", "/admin"), &configv1.BlockAction{Status: 451})
	good := ruletest.Site(deny)
	broken := ruletest.Site(deny, ruletest.Rule(&configv1.BlockAction{Status: 200}))
	e := live.Start(t, nil, []*edgev1.JournalRecord{
		edgetest.Header("node-1"),
		edgetest.Config(1, []*configv1.Entry{live.OriginPolicy(), site("a", "a.test"), site("b", "b.test"), site("c", "c.test"),
			edgetest.Entry("site-rules", "a", good)}),
		// As the agent keeps it: the version that served, and the newest.
		edgetest.Config(2, []*configv1.Entry{edgetest.Entry("site-rules", "a", broken), edgetest.Entry("site-rules", "b", broken)}),
	}, nil)
	e.Expect("GET", "a.test", "/", 200, "")
	e.Expect("GET", "a.test", "/admin", 451, "policy-denied")
	e.Expect("GET", "b.test", "/", 503, "policy-unavailable")
	e.Expect("GET", "c.test", "/admin", 200, "")
	failed := e.Status().GetFailed()
	if len(failed) != 2 || failed[0].GetId() != "a" || len(failed[0].GetRunningHash()) == 0 || failed[1].GetId() != "b" || len(failed[1].GetRunningHash()) != 0 {
		t.Fatalf("%v", failed)
	}
	for _, f := range failed {
		if !strings.Contains(f.GetReason(), "rule") {
			t.Errorf("the reason names no rule: %q", f.GetReason())
		}
	}
}
