package rules

import (
	"net/http"
	"testing"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
	"edge.svc/caddy/internal/ruletest"
)

func TestConditionsOfOtherSettingsReadTheRequestAsItWasSent(t *testing.T) {
	rules := Of(core.New(core.Options{StateDir: t.TempDir()}))
	x := &exchange.Exchange{}
	x.In.Header = http.Header{"X-A": {"sent"}}
	x.In.Target = exchange.Target{Raw: "/sent?q", Path: "/sent", Canonical: "/sent", Query: "q"}
	x.Out.Target = exchange.RewrittenTarget("/changed", "other")
	x.Out.Edits = []exchange.HeaderEdit{{Name: "X-A", Values: []string{"changed"}}}
	for field, value := range map[string]string{"http.request.uri.path": "/sent", "http.request.uri.query": "q", "http.request.headers[x-a]": "sent"} {
		c, err := rules.AskedCondition(ruletest.Encode(ruletest.Eq(field, value)))
		if err != nil {
			t.Fatal(field, err)
		}
		if holds, decided := c.Holds(x); !holds || !decided {
			t.Errorf("%s: %v %v", field, holds, decided)
		}
	}
	if _, err := rules.AskedCondition(ruletest.Encode(ruletest.Eq("http.response.code", 200))); err == nil {
		t.Error("a condition reads a response")
	}
}
