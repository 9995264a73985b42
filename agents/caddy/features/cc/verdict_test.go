package cc

import (
	"net/netip"

	"edge.svc/caddy/exchange"
)

// Verdict is what both stages of CC mitigation say of a request.
type Verdict struct {
	exchange.Demand
	Site *Site
	Ban  func()
}

// Count takes a request through both stages, as the edge does.
func (g *Guard) Count(siteID string, t *Thresholds, client netip.Addr, exempt bool, path string) (v Verdict) {
	v.Site, v.Demand = g.CountRequest(siteID, t, client, exempt, exchange.CanonicalPath(path))
	v.Ban = g.CountClient(v.Site, t, client, exempt)
	return v
}
