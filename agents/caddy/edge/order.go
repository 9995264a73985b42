package edge

import (
	"net/http"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
	"edge.svc/caddy/features/acme"
	"edge.svc/caddy/features/bans"
	"edge.svc/caddy/features/buffer"
	"edge.svc/caddy/features/cache"
	"edge.svc/caddy/features/cc"
	"edge.svc/caddy/features/challenge"
	"edge.svc/caddy/features/charset"
	"edge.svc/caddy/features/count"
	"edge.svc/caddy/features/encode"
	"edge.svc/caddy/features/handshake"
	"edge.svc/caddy/features/lists"
	"edge.svc/caddy/features/maintenance"
	"edge.svc/caddy/features/origin"
	"edge.svc/caddy/features/paths"
	"edge.svc/caddy/features/purgemethod"
	"edge.svc/caddy/features/requestlog"
	"edge.svc/caddy/features/rules"
	"edge.svc/caddy/features/sitepages"
	"edge.svc/caddy/features/sites"
	"edge.svc/caddy/features/waf"
	"edge.svc/caddy/listen"
	"edge.svc/caddy/pages"
)

// row is a place in the order.
type row struct {
	name string
	// local says that the stage also concerns what the node itself asks over its own listener.
	local bool
	stage func(*core.Core) exchange.Stage
	// onPanic is the answer to a panic in the stage; the zero value stands for an internal error.
	onPanic failure
}

type failure struct {
	status int
	code   string
}

var (
	policyFails    = failure{http.StatusServiceUnavailable, pages.PolicyUnavailable}
	wafFails       = failure{http.StatusServiceUnavailable, pages.WAFBusy}
	challengeFails = failure{http.StatusServiceUnavailable, pages.ChallengeUnavailable}
)

const forLocal, notForLocal = true, false

// order is the way of every request, over every protocol. It is part of what the edge promises: a banned client learns
// nothing about rules, and nothing under the reserved prefix ever reaches an origin. A feature is its package and a line
// here.
var order = []row{
	{"health", forLocal, health, failure{}},
	{"normalise", forLocal, normalise, failure{}},
	{"client", forLocal, listen.Client, failure{}},
	{"admit", notForLocal, listen.Admit, failure{}},
	{"acme", notForLocal, acme.Stage, failure{}},
	{"site", forLocal, sites.Find, failure{}},
	{"scan", notForLocal, cc.Scanners, failure{}},
	{"sni", notForLocal, handshake.SameName, failure{}},
	{"unknown-host", forLocal, sites.AnswerUnknown, failure{}},
	{"purge-mark", notForLocal, purgemethod.Mark, failure{}},
	{"count", notForLocal, count.Stage, failure{}},
	{"grpc", notForLocal, origin.GRPC, failure{}},
	{"names", notForLocal, noteNames, failure{}},
	{"acme-limit", notForLocal, acme.Limit, failure{}},
	{"disabled", forLocal, sites.Disabled, failure{}},
	{"client-certificate", notForLocal, handshake.ClientCertificate, policyFails},
	{"register", notForLocal, listen.Register, failure{}},
	{"bans", notForLocal, bans.Stage, failure{}},
	{"purge", notForLocal, purgemethod.Stage, failure{}},
	{"maintenance", notForLocal, maintenance.Stage, policyFails},
	{"path", forLocal, paths.Stage, policyFails},
	{"cc", notForLocal, cc.Count, failure{}},
	{"cc-reserved", notForLocal, cc.ClientsOfReserved, failure{}},
	{"reserved", forLocal, challenge.Reserved, challengeFails},
	{"lists", notForLocal, lists.Stage, policyFails},
	{"rules", forLocal, rules.Stage, policyFails},
	{"https", forLocal, handshake.ForceHTTPS, policyFails},
	{"cc-client", notForLocal, cc.Clients, failure{}},
	{"deferred", forLocal, deferred, failure{}},
	{"challenge", notForLocal, challenge.Stage, challengeFails},
	{"limits", forLocal, origin.Limits, failure{}},
	{"body", forLocal, buffer.Stage, failure{}},
	{"waf", notForLocal, waf.Stage, wafFails},
	{"gather", forLocal, buffer.Gather, failure{}},
	{"encode", forLocal, encode.Stage, failure{}},
	{"cache", forLocal, cache.Stage, failure{}},
	{"fetch", forLocal, origin.Stage, failure{}},
}

// responseRow is a place among what happens to an answer before it leaves.
type responseRow struct {
	name string
	// from says which answers it concerns, by who made them.
	from  exchange.From
	stage func(*core.Core) exchange.ResponseStage
}

var responseOrder = []responseRow{
	{"cc-outcome", exchange.FromAll, cc.Outcome},
	// Later stages see the response that the client gets.
	{"pages", exchange.FromAll, sitepages.Response},
	{"cache", exchange.FromSite, cache.Response},
	{"affinity", exchange.FromOrigin, origin.Affinity},
	{"hsts", exchange.FromAll, handshake.StrictTransport},
	{"alt-svc", exchange.FromAll, listen.AltSvc},
	{"charset", exchange.FromSite, charset.Response},
	{"rules", exchange.FromAll, rules.Response},
	{"encode", exchange.FromSite, encode.Response},
	{"grpc", exchange.FromEdge, origin.GRPCErrors},
	{"edge-headers", exchange.FromAll, edgeHeaders},
	// Whatever replaces a response or its status comes before it.
	{"count", exchange.FromAll, count.Answered},
}

// finishOrder hears of the end of every exchange.
var finishOrder = []func(*core.Core) exchange.FinishStage{
	listen.Finish,
	count.Finish,
	requestlog.Finish,
}

// deferred is the stage that returns the response that an earlier stage deferred. Metrics name the stage `held`.
func deferred(*core.Core) exchange.Stage { return (*exchange.Exchange).Deferred }
