package cc

import (
	"strings"

	"edge.svc/caddy/exchange"
	nodev1 "edge.svc/caddy/gen/svc/node/v1"
)

// maxPath is how many bytes of a path are told.
const maxPath = 2048

var _ exchange.WAFEvents = (*Guard)(nil)

// WAFMatched is described by exchange.WAFEvents.
func (g *Guard) WAFMatched(x *exchange.Exchange, e exchange.WAFEvent) {
	path := x.Target().Canonical
	told := &nodev1.WafMatched{
		RequestId: x.In.ID, Method: x.Method(), Path: readable(path[:min(len(path), maxPath)]), Address: x.In.Client.String(),
		Score: uint32(e.Score), Threshold: uint32(e.Threshold), Blocked: e.Blocked,
		RulesSeen: uint32(len(e.Rules)), MatchesSeen: uint32(e.Seen),
	}
	for _, id := range e.Logged() {
		told.Rules = append(told.Rules, uint32(id))
	}
	for _, m := range e.Matches {
		told.Matches = append(told.Matches, &nodev1.WafMatch{
			Rule: uint32(m.Rule), Part: m.Part, Name: readable(m.Name), Value: m.Value, Points: uint32(m.Points),
		})
	}
	g.outbox.event(&nodev1.SecurityEvent{
		SiteId: x.Plan.SiteID, Kind: nodev1.SecurityEventKind_SECURITY_EVENT_KIND_WAF_MATCHED, Waf: told,
	})
}

// readable is a text that messages may carry.
func readable(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
