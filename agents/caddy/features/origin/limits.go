package origin

import (
	"cmp"
	"math"
	"net/http"

	"edge.svc/caddy/exchange"
	"edge.svc/caddy/pages"
)

// Refuse answers what the site does not take to its origins at all, before anybody looks at a body: WebSockets where they
// are off, and bodies that announce more than may come. Rules may say otherwise for a request.
func (p *Pool) Refuse(x *exchange.Exchange) *exchange.Answer {
	if x.In.Upgrade && !x.Overrides.WebSocket.Or(p.websocket) {
		return pages.Respond(x, http.StatusForbidden, pages.WebSocketDisabled)
	}
	if exchange.IsGRPC(x) {
		x.Body.Converse(conversationIdle)
		if x.Writes != nil {
			x.Writes.Lasts(conversationIdle)
		}
		return nil
	}
	if p.bound(x) != nil {
		return pages.Respond(x, http.StatusRequestEntityTooLarge, pages.BodyTooLarge)
	}
	return nil
}

// bound sets the limits of the request's body.
func (p *Pool) bound(x *exchange.Exchange) error {
	if exchange.IsGRPC(x) {
		return nil
	}
	limit := p.bodyLimit
	if x.Overrides.HasBodyLimit {
		limit = int64(min(x.Overrides.BodyLimit, math.MaxInt64))
	}
	return x.Body.Bound(limit, cmp.Or(x.Overrides.SendTimeout, p.times.send))
}
