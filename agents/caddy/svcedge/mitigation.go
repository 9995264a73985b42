package svcedge

import (
	"net/http"

	plans "edge.svc/caddy/exchange"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
	"edge.svc/caddy/svccc"
	"edge.svc/caddy/svcchallenge"
	"edge.svc/caddy/svccore"
	"edge.svc/caddy/svcerrors"
	"edge.svc/caddy/svclisten"
)

// mitigate has CC mitigation count a request, and reports whether it may go on. The one that is too many for its client
// is answered.
func (h *Handler) mitigate(x *exchange, r *http.Request, tables *plans.Tables, site *plans.Plan) bool {
	thresholds := svccc.ThresholdsOf(tables, site)
	if thresholds == nil {
		return true
	}
	verdict := svccc.Of(h.core).Count(site.SiteID, thresholds, x.Client, svccore.Exempt(tables, x.Client), r.URL.Path)
	if verdict.Ban != nil {
		x.unlist()
		verdict.Ban()
		refuseBanned(x, r)
		return false
	}
	x.counted = verdict.Site
	x.asked.cc = svcchallenge.Demand{Level: verdict.Level, HighPow: verdict.HighPow}
	return true
}

// OriginAnswered counts the outcome at the origin for CC mitigation.
func (x *exchange) OriginAnswered(status int) {
	if x.counted != nil {
		x.counted.Origin(status)
	}
}

// countUnknown has scan protection count a request for a host of no site.
func (h *Handler) countUnknown(x *exchange, tables *plans.Tables) {
	scan := svccc.ScanProtection.Of(tables)
	if scan == nil {
		return
	}
	// Without proxy peers whoever connects names the address that would be banned.
	unsafe := svclisten.ClientIP.Of(tables).Mode == configv1.ClientIpMode_CLIENT_IP_MODE_PROXY_PROTOCOL && svclisten.AnyProxyPeer(h.core)
	if svccc.Of(h.core).CountUnknown(scan, x.Client, svccore.Exempt(tables, x.Client), unsafe) {
		x.Header()["Connection"] = []string{"close"}
	}
}

func refuseBanned(x *exchange, r *http.Request) {
	x.Header()["Connection"] = []string{"close"}
	svcerrors.Write(x, r, http.StatusForbidden, svcerrors.IPBanned)
}
