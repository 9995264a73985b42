package edge

import (
	"net/http"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
	"edge.svc/caddy/features/handshake"
)

const healthPath = "/.svc/health"

// health is the stage that responds for the node itself, where the host is no site's: without a Host, to an IP address, and
// to the name of health checks. On hosts of sites the path is a reserved one like others.
func health(*core.Core) exchange.Stage {
	return func(x *exchange.Exchange) *exchange.Answer {
		if x.In.Target.Path != healthPath || x.In.Method != http.MethodGet && x.In.Method != http.MethodHead || !meansNode(x.In.HostRaw) {
			return nil
		}
		a := x.Respond(http.StatusOK)
		a.Header["Content-Type"] = []string{"text/plain; charset=utf-8"}
		a.Header["Cache-Control"] = []string{"no-store"}
		a.Bytes = []byte("ok")
		return a
	}
}

// meansNode reports whether a Host means the node itself.
func meansNode(host string) bool {
	name, kind := core.NormalizeHost(host)
	return host == "" || kind == core.HostAddress || name == handshake.HealthName
}

// edgeHeaders is the response stage that sets what the edge says of every answer.
func edgeHeaders(*core.Core) exchange.ResponseStage { return addEdgeHeaders }

func addEdgeHeaders(x *exchange.Exchange, a *exchange.Answer) {
	if x.In.IDHeader != nil {
		a.Header["X-Request-Id"] = x.In.IDHeader
	}
}
