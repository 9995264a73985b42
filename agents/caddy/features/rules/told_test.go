package rules

import (
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"edge.svc/caddy/core"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
	"edge.svc/caddy/internal/edgetest"
	"edge.svc/caddy/internal/ruletest"
)

// A rule that fails writes a line a minute however often it does, with nothing of the request; the line of one that logs is
// written by who counts it.
func TestRulesThatFailAreToldOfOnceAMinute(t *testing.T) {
	log, lines := observer.New(zap.InfoLevel)
	node := core.New(core.Options{StateDir: t.TempDir(), Log: zap.New(log)})
	s := &rulesOf{node, Of(node), Stage(node), Response(node)}
	edgetest.Change(t, node, []*configv1.Entry{edgetest.Entry("site", "a", edgetest.Site(0, "a.com"))})
	s.change(t, ruletest.Site(
		always(&configv1.LogAction{}),
		always(&configv1.HeaderAction{Name: "x", Value: computed(ruletest.Field("http.request.uri.args[v]"))}),
		when(ruletest.Eq("ip.geoip.country", "DE"), &configv1.OriginAction{Port: 1})))
	long := "/secret?v=" + string(make([]byte, 5000))
	at := time.Unix(1_800_000_000, 0)
	ask := func(after time.Duration) map[string]int {
		x, _ := s.asked("GET", "/")
		x.Begun, x.In.Target.Query = at.Add(after), long[len("/secret?"):]
		s.stage(x)
		told := map[string]int{}
		for _, line := range lines.TakeAll() {
			fields := line.ContextMap()
			told[fields["rule"].(string)]++
			if fields["site"] != "a" || fields["platform"] != false || len(fields) > 4 {
				t.Errorf("%v", fields)
			}
		}
		return told
	}
	for _, c := range []struct {
		after time.Duration
		lines int
	}{{0, 2}, {0, 0}, {59 * time.Second, 0}, {60 * time.Second, 2}, {61 * time.Second, 0}, {-time.Hour, 2}} {
		told := ask(c.after)
		if told["s2"]+told["s3"] != c.lines || len(told) != c.lines {
			t.Errorf("after %v: %v", c.after, told)
		}
	}
}
