package requestlog

import (
	"edge.svc/caddy/exchange"
	"edge.svc/caddy/pages"
)

// refusal says why the edge refused a request, and by which rule; no reason where it did not.
type refusal struct{ reason, rule string }

// refusalOf goes by the response that left: what stages found before may have been overruled since.
func refusalOf(x *exchange.Exchange) refusal {
	from, code := x.Responded()
	if from != exchange.FromEdge {
		return refusal{}
	}
	switch code {
	case pages.IPBanned:
		if _, known := exchange.Ban.Known(x); known {
			return refusal{reason: "ip_banned"}
		}
		return refusal{reason: "cc"}
	case pages.PolicyDenied:
		if listed, _ := exchange.BlockListed.Known(x); listed {
			return refusal{reason: "ip_blocked"}
		}
		return refusalByRule(x)
	case pages.WAFBlocked:
		return refusal{reason: "crs"}
	case pages.ClientCertRequired:
		return refusal{reason: "client_cert"}
	case pages.Maintenance:
		return refusal{reason: "maintenance"}
	case pages.PathAmbiguous:
		return refusal{reason: "path"}
	case pages.ChallengeUnavailable:
		return refusal{reason: "challenge"}
	case "":
		// A ban may also end the connection without a response, and challenges have no code.
		if _, known := exchange.Ban.Known(x); known {
			return refusal{reason: "ip_banned"}
		}
		if at, known := exchange.Challenged.Known(x); known && at.Demand.Level > exchange.Normal && !at.Met {
			return refusal{reason: "challenge"}
		}
	}
	return refusal{}
}

func refusalByRule(x *exchange.Exchange) refusal {
	if _, known := exchange.Matched.Known(x); known {
		for _, m := range exchange.Matched.Of(x).Logged() {
			switch m.Event {
			case exchange.RuleBlocked:
				return refusal{"rule", m.Rule.ID}
			case exchange.RuleLimited:
				return refusal{"rate_limit", m.Rule.ID}
			}
		}
	}
	return refusal{reason: "rule"}
}
