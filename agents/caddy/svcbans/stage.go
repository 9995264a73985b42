package svcbans

import (
	"edge.svc/caddy/exchange"
	"edge.svc/caddy/svccore"
	"edge.svc/caddy/svcerrors"
)

// Stage refuses banned clients, of the whole node and of the site.
func Stage(core *svccore.Core) exchange.Stage {
	bans := Of(core)
	return func(x *exchange.Exchange) *exchange.Answer {
		if _, banned := bans.Lookup(x.Plan.SiteID, x.In.Client); banned && !svccore.ExemptClient(x) {
			return svcerrors.RespondBanned(x)
		}
		return nil
	}
}
