package cc

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"edge.svc/caddy/features/bans"
	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
)

// Requests, evaluations, restores, reports and changes of policy at the same time: no request is lost. Run it with -race.
func TestEverythingAtOnce(t *testing.T) {
	const writers, each = 8, 5000
	policy := strict(func(t *Thresholds) { t.SiteQPS, t.IPQPS, t.Window = 1, 1_000_000, time.Minute })
	g := New(Options{Bans: bans.New(1000, 1<<20, nil), InstanceID: "boot", Thresholds: func(string) *Thresholds { return policy }})
	ctx, cancel := context.WithCancel(t.Context())
	var beside, requests sync.WaitGroup
	beside.Go(func() { _ = g.Watch(ctx, "", 0, func(*edgev1.SecurityBatch) error { return nil }) })
	beside.Go(func() {
		for ctx.Err() == nil {
			g.Evaluate()
			g.Security()
			g.RestoreLevels([]*edgev1.SiteLevelState{{SiteId: "a", Site: &edgev1.LevelState{Level: 1}, Paths: []*edgev1.PathLevelState{
				{Path: "/1", State: &edgev1.LevelState{Level: 2}},
			}}})
		}
	})
	for w := range writers {
		requests.Go(func() {
			for i := range each {
				v := g.Count("a", policy, client(i), false, fmt.Sprint("/", i%200))
				v.Site.Origin(200)
				if i%1000 == 0 {
					g.CountUnknown(&Scan{Threshold: 10, Ban: time.Minute}, client(w), false, false)
				}
			}
		})
	}
	requests.Wait()
	cancel()
	beside.Wait()
	g.Evaluate()
	s := g.site("a")
	if got := s.state.requests.estimate(g.evaluated); got != writers*each {
		t.Errorf("%v of %d requests were counted", got, writers*each)
	}
	if got := s.state.origins.estimate(g.evaluated); got != writers*each {
		t.Errorf("%v of %d outcomes were counted", got, writers*each)
	}
}
