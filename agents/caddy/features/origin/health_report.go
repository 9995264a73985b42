package origin

import (
	"cmp"
	"slices"
	"time"

	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
	nodev1 "edge.svc/caddy/gen/svc/node/v1"
)

// maxReportedHealth is how many origins of which something is wrong are told.
const maxReportedHealth = 500

// FillStatus tells the origins of which something is wrong, and how requests to origins fared.
func (h *Checker) FillStatus(status *edgev1.GetStatusResponse) {
	list := append(h.state.report(), h.report()...)
	slices.SortFunc(list, func(a, b *nodev1.OriginHealth) int {
		return cmp.Or(
			compareBool(a.Healthy, b.Healthy), cmp.Compare(b.LastFailureMs, a.LastFailureMs),
			cmp.Compare(a.SiteId, b.SiteId), cmp.Compare(a.OriginId, b.OriginId), compareBool(a.Active, b.Active),
		)
	})
	status.OriginHealth = list[:min(len(list), maxReportedHealth)]
	status.OriginTraffic = h.state.traffic.report(h.state.now())
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// report lists the origins that requests failed at.
func (s *State) report() (list []*nodev1.OriginHealth) {
	if s.failed.Load() == 0 {
		return nil
	}
	now := s.now()
	for i := range s.shards {
		shard := &s.shards[i]
		shard.mu.RLock()
		for key, h := range shard.origins {
			if h.fails == 0 || key.instead != (dialKey{}) {
				// What rules have dialled in its place is not the origin.
				continue
			}
			down := now.Before(h.downUntil)
			told := &nodev1.OriginHealth{
				SiteId: key.site, OriginId: key.origin, Healthy: !down, ConsecutiveFailures: h.fails,
				Error: string(h.why.class), Status: uint32(h.why.status), LastFailureMs: unixMilli(h.lastFailure),
			}
			if down {
				told.DownSinceMs, told.DownUntilMs = unixMilli(h.since), unixMilli(h.downUntil)
			}
			list = append(list, told)
		}
		shard.mu.RUnlock()
	}
	return list
}

// report lists the origins whose checks fail, or are made more rarely than they should be.
func (h *Checker) report() (list []*nodev1.OriginHealth) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.checks {
		if c.verdict.failed == 0 && !c.unhealthy && c.stretched == 0 {
			continue
		}
		for key := range c.origins {
			told := &nodev1.OriginHealth{
				SiteId: key.site, OriginId: key.origin, Active: true, Healthy: !c.unhealthy,
				ConsecutiveFailures: c.verdict.failed, LastCheckMs: unixMilli(c.checked), LastFailureMs: unixMilli(c.lastFailure),
				Error: string(c.why.class), Status: uint32(c.why.status),
				StretchedSeconds: uint32(c.stretched / time.Second),
			}
			if c.unhealthy {
				told.DownSinceMs, told.DownUntilMs = unixMilli(c.since), unixMilli(h.markEnd(c, c.checked))
			}
			list = append(list, told)
		}
	}
	return list
}

func unixMilli(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}
