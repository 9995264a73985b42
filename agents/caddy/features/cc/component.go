package cc

import (
	"context"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
	"edge.svc/caddy/gen/svc/edge/v1/edgev1connect"
)

const securityJournal = "security.journal"

var component = core.NewComponent("CC mitigation", func(c *core.Core) *Guard {
	return New(Options{
		Bans: core.Find[exchange.OwnBans](c), InstanceID: c.InstanceID, Now: c.Clock(),
		// Those that hold now, nil while the policy of a site is off or it is gone.
		Thresholds: func(siteID string) *Thresholds {
			tables := c.Tables()
			if plan := core.PlanOfSite(tables, siteID); plan != nil {
				return ThresholdsOf(tables, plan)
			}
			return nil
		},
		Former:   func(former *Former) bool { return c.ReadFormer(securityJournal, former.Take) },
		Panicked: func(p any) { c.LogPanic("evaluating CC mitigation", p) },
	})
})

func init() {
	core.RegisterStream(edgev1connect.EdgeServiceWatchSecurityProcedure, watchSecurity)
	core.RegisterCall(edgev1connect.EdgeServiceRestoreSecurityProcedure, restoreSecurity)
}

// Of returns the CC mitigation of a core.
func Of(c *core.Core) *Guard { return component.Of(c) }

// Restore continues the levels of the agent's journal when the process starts.
func (g *Guard) Restore() {
	former := &Former{}
	if g.options.Former != nil && g.options.Former(former) {
		g.Load(former)
	}
}

// FillStatus lists the sites that are not calm.
func (g *Guard) FillStatus(status *edgev1.GetStatusResponse) { status.Security = g.Security() }

// RestoreSecurity takes in the levels of a former process.
func (g *Guard) RestoreSecurity(r *edgev1.RestoreSecurityRequest) { g.RestoreLevels(r.GetSites()) }

func watchSecurity(ctx context.Context, c *core.Core, r *edgev1.WatchSecurityRequest, send func(*edgev1.SecurityBatch) error) error {
	return Of(c).Watch(ctx, r.GetInstanceId(), r.GetAfter(), send)
}

// restoreSecurity has everybody take what is theirs of what a former process knew.
func restoreSecurity(_ context.Context, c *core.Core, r *edgev1.RestoreSecurityRequest) (*edgev1.RestoreSecurityResponse, error) {
	for _, restorer := range core.Each[interface {
		RestoreSecurity(r *edgev1.RestoreSecurityRequest)
	}](c) {
		restorer.RestoreSecurity(r)
	}
	return &edgev1.RestoreSecurityResponse{}, nil
}

var _ exchange.LiftWatcher = (*Guard)(nil)
