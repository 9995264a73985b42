package cc

import edgev1 "edge.svc/caddy/gen/svc/edge/v1"

// Former collects the levels above normal from the agent's security journal, record by record. The zero value holds none.
type Former struct {
	sites map[string]*edgev1.SiteLevelState
}

// Take takes the next record.
func (h *Former) Take(record *edgev1.JournalRecord) {
	for _, site := range record.GetSecurity().GetSites() {
		if isNormal(site) {
			delete(h.sites, site.GetSiteId())
			continue
		}
		if h.sites == nil {
			h.sites = map[string]*edgev1.SiteLevelState{}
		}
		h.sites[site.GetSiteId()] = site
	}
}

func isNormal(site *edgev1.SiteLevelState) bool {
	for _, path := range site.GetPaths() {
		if path.GetState().GetLevel() > 0 {
			return false
		}
	}
	return site.GetSite().GetLevel() == 0
}

// Load continues the levels that a former process held, as the agent wrote them down. What the agent itself says later
// (RestoreLevels) is as old or older by then, so it concerns other sites only.
func (g *Guard) Load(former *Former) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.loaded = map[string]bool{}
	for id, site := range former.sites {
		if t := g.options.Thresholds(id); t != nil {
			g.restore(site, t)
			g.loaded[id] = true
		}
	}
}
