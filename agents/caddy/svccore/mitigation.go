package svccore

import (
	"net/netip"

	nodev1 "edge.svc/caddy/gen/svc/node/v1"
	"edge.svc/caddy/svccc"
)

// ccThresholds returns the thresholds that hold for a site now, nil while its policy is off or it is gone.
func (c *Core) ccThresholds(siteID string) *svccc.Thresholds {
	tables := c.Tables()
	if _, exists := tables.sites.get(siteID); !exists {
		return nil
	}
	if policy := tables.Protection(siteID).CC; policy != nil {
		return tables.Thresholds(policy)
	}
	return nil
}

// liftedOwn makes clients whose own bans were lifted start anew.
func (c *Core) liftedOwn(lifted []*nodev1.OwnBanLift) {
	for _, l := range lifted {
		if prefix, err := netip.ParsePrefix(l.GetCidr()); err == nil {
			c.CC.Lifted(l.GetSiteId(), prefix)
		}
	}
}
