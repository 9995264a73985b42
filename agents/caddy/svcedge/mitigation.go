package svcedge

import (
	"net/http"

	configv1 "edge.svc/caddy/gen/svc/config/v1"
	"edge.svc/caddy/svcchallenge"
	"edge.svc/caddy/svccore"
	"edge.svc/caddy/svcerrors"
)

// mitigate has CC mitigation count a request, and reports whether it may go on. The one that is too many for its client
// is answered.
func (h *Handler) mitigate(x *exchange, r *http.Request, tables *svccore.Tables, site *svccore.Site) bool {
	policy := x.protectionOf(tables, site).CC
	if policy == nil {
		return true
	}
	verdict := h.core.CC.Count(site.ID, tables.Thresholds(policy), x.Client, tables.Exempt(x.Client), r.URL.Path)
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
func (h *Handler) countUnknown(x *exchange, tables *svccore.Tables) {
	if tables.Unknown.Scan == nil {
		return
	}
	// Without proxy peers whoever connects names the address that would be banned.
	unsafe := tables.ClientIP.Mode == configv1.ClientIpMode_CLIENT_IP_MODE_PROXY_PROTOCOL && h.core.AnyProxyPeer.Load()
	if h.core.CC.CountUnknown(tables.Unknown.Scan, x.Client, tables.Exempt(x.Client), unsafe) {
		x.Header()["Connection"] = []string{"close"}
	}
}

func refuseBanned(x *exchange, r *http.Request) {
	x.Header()["Connection"] = []string{"close"}
	svcerrors.Write(x, r, http.StatusForbidden, svcerrors.IPBanned)
}
