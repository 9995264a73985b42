package lists

import (
	"net/http"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
	"edge.svc/caddy/pages"
)

// Stage finds the client on the address lists. A denial is deferred: later stages may still count the request.
func Stage(*core.Core) exchange.Stage {
	return func(x *exchange.Exchange) *exchange.Answer {
		if !x.In.Claimed && Allowed(x.Tables, x.In.Client) {
			*exchange.AllowListed.Of(x) = true
			return nil
		}
		if onBlockList(x.Tables, x.In.Client) {
			*exchange.BlockListed.Of(x) = true
			x.Defer(deny)
		}
		return nil
	}
}

// blocked counts requests of clients on a block list.
var blocked = exchange.NewCount("blocked.list")

func deny(x *exchange.Exchange) *exchange.Answer {
	x.Mark(blocked)
	return pages.Respond(x, http.StatusForbidden, pages.PolicyDenied)
}
