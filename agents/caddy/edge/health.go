package edge

import (
	"net/http"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
)

const healthPath = "/.svc/health"

// health is the stage that answers for the node itself, for any host.
func health(*core.Core) exchange.Stage {
	return func(x *exchange.Exchange) *exchange.Answer {
		if x.In.Target.Path != healthPath || x.In.Method != http.MethodGet && x.In.Method != http.MethodHead {
			return nil
		}
		a := x.Respond(http.StatusOK)
		a.Header["Content-Type"] = []string{"text/plain; charset=utf-8"}
		a.Header["Cache-Control"] = []string{"no-store"}
		a.Bytes = []byte("ok")
		return a
	}
}

// edgeHeaders is the response stage that sets what the edge says of every answer.
func edgeHeaders(*core.Core) exchange.ResponseStage { return addEdgeHeaders }

func addEdgeHeaders(x *exchange.Exchange, a *exchange.Answer) {
	if x.In.IDHeader != nil {
		a.Header["X-Request-Id"] = x.In.IDHeader
	}
}
