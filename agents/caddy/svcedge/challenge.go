package svcedge

import (
	"net/http"
	"strings"

	plans "edge.svc/caddy/exchange"
	"edge.svc/caddy/svcchallenge"
	"edge.svc/caddy/svcerrors"
	"edge.svc/caddy/svclists"
)

// asked is what the stages before the challenge found that a request has to have passed.
type asked struct {
	// rules is of challenge rules that matched.
	rules svcchallenge.Demand
	// cc is of CC mitigation, of the site or of the path.
	cc svcchallenge.Demand
}

// admit reports whether a request has passed the highest challenge that anybody asks of it. When it has not, it is
// answered. Of equal demands the first one says which challenge it is.
func (h *Handler) admit(x *exchange, r *http.Request, tables *plans.Tables, site *plans.Plan, requestID string) bool {
	var demand svcchallenge.Demand
	protection := x.protectionOf(site)
	if platform := svcchallenge.Platform.Of(tables); platform.UnderAttack {
		demand.Level = platform.Challenge
	}
	if protection.UnderAttack {
		demand = demand.Or(svcchallenge.Demand{Level: protection.Challenge})
	}
	demand = demand.Or(x.asked.cc)
	if demand.Level > svcchallenge.Normal && (isACMEChallenge(r.URL.Path) || svclists.Allowed(tables, x.Client)) {
		demand = svcchallenge.Demand{}
	}
	// Rules ask for what they were written for, whoever it is.
	if demand = x.asked.rules.Or(demand); demand.Level == svcchallenge.Normal {
		return true
	}
	visit := newVisit(x, r, site, protection, requestID)
	return svcchallenge.Of(h.core).Admit(x, r, &visit, demand)
}

func newVisit(x *exchange, r *http.Request, site *plans.Plan, p *svcchallenge.Protection, requestID string) svcchallenge.Visit {
	return svcchallenge.Visit{
		SiteID: site.SiteID, Client: x.Client, Secure: r.TLS != nil, RequestID: requestID,
		PassTTL: p.PassTTL, PowBits: p.PowDifficulty, PowHighBits: p.PowHighDifficulty,
	}
}

// serveReserved answers what is under the reserved prefix.
func (h *Handler) serveReserved(x *exchange, r *http.Request, site *plans.Plan, requestID string) {
	switch {
	case r.URL.Path == svcchallenge.VerifyPath && r.Method == http.MethodPost:
		visit := newVisit(x, r, site, x.protectionOf(site), requestID)
		svcchallenge.Of(h.core).Verify(x, r, &visit)
	case r.URL.Path == svcchallenge.WorkerPath && (r.Method == http.MethodGet || r.Method == http.MethodHead):
		svcerrors.BoundBody(x, r)
		svcchallenge.Of(h.core).ServeWorker(x, r)
	default:
		svcerrors.Write(x, r, http.StatusNotFound, svcerrors.NotFound)
	}
}

const acmePrefix = "/.well-known/acme-challenge/"

// isACMEChallenge reports whether a certificate authority may ask for a path to see who controls a name: it has no
// cookies.
func isACMEChallenge(path string) bool {
	token, ok := strings.CutPrefix(path, acmePrefix)
	if !ok || token == "" {
		return false
	}
	for i := 0; i < len(token); i++ {
		switch c := token[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == '-':
		default:
			return false
		}
	}
	return true
}
