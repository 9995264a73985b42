package svcorigin

import (
	"net/http"

	"edge.svc/caddy/exchange"
	"edge.svc/caddy/svcerrors"
)

// Refuse answers what the site does not take to its origins at all, before anybody looks at a body: WebSockets where they
// are off, and bodies that announce more than may come.
func (p *Pool) Refuse(x *exchange.Exchange) *exchange.Answer {
	if x.In.Upgrade && !p.websocket {
		return svcerrors.Respond(x, http.StatusForbidden, svcerrors.WebSocketDisabled)
	}
	if x.Body.Bound(p.bodyLimit, p.send) != nil {
		return svcerrors.Respond(x, http.StatusRequestEntityTooLarge, svcerrors.BodyTooLarge)
	}
	return nil
}
