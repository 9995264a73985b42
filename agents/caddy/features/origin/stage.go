package origin

import (
	"net/http"

	"go.uber.org/zap"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
	"edge.svc/caddy/pages"
)

// Limits is the stage that refuses what the site does not take to its origins.
func Limits(c *core.Core) exchange.Stage {
	return func(x *exchange.Exchange) *exchange.Answer {
		pool := PoolOf(x.Plan)
		if pool == nil {
			c.Log().Error("the site cannot be served", zap.String("site", x.Plan.SiteID))
			return pages.Respond(x, http.StatusInternalServerError, pages.InternalError)
		}
		return pool.Refuse(x)
	}
}

// Stage fetches from the origins of the site.
func Stage(c *core.Core) exchange.Stage {
	connections, shared, affinity := TransportsOf(c), sharedClients.Of(c), affinities.Of(c)
	return func(x *exchange.Exchange) *exchange.Answer {
		f := Fetcher{Transports: connections, CDNLoop: c.LoopID(), Pool: PoolOf(x.Plan), affinity: affinity}
		if f.Pool.http2 {
			f.Shared = shared
		}
		return f.Respond(x)
	}
}
