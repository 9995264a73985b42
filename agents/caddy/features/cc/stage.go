package cc

import (
	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
	"edge.svc/caddy/pages"
)

// counted is what the stages of CC mitigation remember of an exchange: where it counts, and under which thresholds.
type counted struct {
	site       *Site
	thresholds *Thresholds
}

// blocked counts requests of clients that were too fast.
var blocked = exchange.NewCount("blocked.cc")

var countedAt = exchange.NewFact[counted]()

// Count is the stage that counts a request for its site and path, and asks for their levels.
func Count(c *core.Core) exchange.Stage {
	guard := Of(c)
	return func(x *exchange.Exchange) *exchange.Answer {
		thresholds := ThresholdsOf(x.Tables, x.Plan)
		if thresholds == nil {
			return nil
		}
		site, demand := guard.CountRequest(x.Plan.SiteID, thresholds, x.In.Client, core.ExemptClient(x), x.In.Target.Canonical)
		*countedAt.Of(x) = counted{site, thresholds}
		if demand.Level > exchange.Normal {
			*exchange.FloodDemand.Of(x) = demand
		}
		return nil
	}
}

// ClientsOfReserved is Clients for what is under the reserved prefix: else floods there would never be banned.
func ClientsOfReserved(c *core.Core) exchange.Stage {
	clients := Clients(c)
	return func(x *exchange.Exchange) *exchange.Answer {
		if !x.In.Target.Reserved() {
			return nil
		}
		return clients(x)
	}
}

// Clients is the stage that counts a request for its client and answers the one that is too many. Where rules switched CC
// mitigation off the client is not counted either: else what was let through here would ban it elsewhere.
func Clients(c *core.Core) exchange.Stage {
	guard := Of(c)
	return func(x *exchange.Exchange) *exchange.Answer {
		at, ok := countedAt.Known(x)
		if !ok || x.Overrides.CC == exchange.Off {
			return nil
		}
		if ban := guard.CountClient(at.site, at.thresholds, x.In.Client, core.ExemptClient(x)); ban != nil {
			// The answer to this request must not be ended by the ban.
			x.Leave()
			ban()
			x.Mark(blocked)
			return pages.RespondBanned(x)
		}
		return nil
	}
}

// Scanners is the stage that counts requests for hosts of no site.
func Scanners(c *core.Core) exchange.Stage {
	guard := Of(c)
	return func(x *exchange.Exchange) *exchange.Answer {
		scan := ScanProtection.Of(x.Tables)
		if x.Plan != nil || scan == nil {
			return nil
		}
		if guard.CountUnknown(scan, x.In.Client, core.ExemptClient(x), x.In.Claimed) {
			x.CloseAfter()
		}
		return nil
	}
}

// Outcome is the response stage that counts how a request fared at the origins.
func Outcome(*core.Core) exchange.ResponseStage {
	return func(x *exchange.Exchange, _ *exchange.Answer) {
		if outcome := exchange.Origin.Peek(x); outcome != nil && outcome.Asked {
			if at, ok := countedAt.Known(x); ok {
				at.site.Origin(outcome.Status)
			}
		}
	}
}
