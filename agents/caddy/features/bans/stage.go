package bans

import (
	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
	"edge.svc/caddy/pages"
)

// blocked counts requests of banned clients.
var blocked = exchange.NewCount("blocked.ban")

// Stage refuses banned clients, of the whole node and of the site.
func Stage(c *core.Core) exchange.Stage {
	bans := Of(c)
	return func(x *exchange.Exchange) *exchange.Answer {
		if hit, banned := bans.Lookup(x.Plan.SiteID, x.In.Client); banned && !core.ExemptClient(x) {
			x.Mark(blocked)
			exchange.Ban.Of(x).Site = hit.SiteID != ""
			return pages.RespondBanned(x)
		}
		return nil
	}
}
