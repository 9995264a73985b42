package svccount

import (
	"edge.svc/caddy/exchange"
	"edge.svc/caddy/svccore"
)

// Stage counts the requests of a site.
func Stage(core *svccore.Core) exchange.Stage {
	requests := Of(core)
	return func(x *exchange.Exchange) *exchange.Answer {
		requests.Count(x.Plan)
		return nil
	}
}
