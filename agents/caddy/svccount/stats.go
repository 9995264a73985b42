// Package svccount counts the requests of each site by minute, for the agent to take.
package svccount

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"edge.svc/caddy/exchange"
	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
	"edge.svc/caddy/gen/svc/edge/v1/edgev1connect"
	nodev1 "edge.svc/caddy/gen/svc/node/v1"
	"edge.svc/caddy/svccore"
)

const (
	// Counters waiting to be drained; beyond it the oldest minutes are given up.
	maxPendingCounters = 500_000
	maxBatchCounters   = 20_000
)

// counter counts the requests of one site. It lies beside the plans of the site and outlives their versions.
type counter struct {
	stats  *Stats
	siteID string
	n      atomic.Uint64
}

// add counts one request.
func (c *counter) add() {
	if c.n.Add(1) == 1 {
		c.stats.touch(c)
	}
}

// Stats collects the counters of all sites by minute and hands them out in two phases: a batch stays until a later
// call acknowledges it, so that a batch lost on the way is handed out again.
type Stats struct {
	now func() time.Time

	touchedMu sync.Mutex
	touched   []*counter

	mu      sync.Mutex
	pending map[int64]map[string]uint64
	entries int
	dropped uint64
	// The batch handed out and not acknowledged; its sequence is that of the last batch made.
	batch    []*nodev1.SiteMinute
	sequence uint64
}

var (
	component = svccore.NewComponent("request counters", func(c *svccore.Core) *Stats { return newStats(c.Now) })
	counters  = exchange.NewLive[counter]("requests")
)

func init() { svccore.RegisterCall(edgev1connect.EdgeServiceDrainStatsProcedure, drainStats) }

// Of returns the counters of a core.
func Of(c *svccore.Core) *Stats { return component.Of(c) }

func newStats(now func() time.Time) *Stats {
	return &Stats{now: now, pending: map[int64]map[string]uint64{}}
}

// Count counts a request of a site.
func (s *Stats) Count(p *exchange.Plan) {
	c := counters.Of(p)
	if c == nil {
		c = counters.Put(p, s.counter(p.SiteID))
	}
	c.add()
}

func (s *Stats) counter(siteID string) *counter { return &counter{stats: s, siteID: siteID} }

func drainStats(_ context.Context, c *svccore.Core, r *edgev1.DrainStatsRequest) (*edgev1.DrainStatsResponse, error) {
	sequence, minutes := Of(c).Drain(r.GetAcknowledged())
	return &edgev1.DrainStatsResponse{Sequence: sequence, Minutes: minutes}, nil
}

// touch remembers a counter that left zero. A counter is zeroed only after it was taken off the list, so none that
// holds requests is ever missing from it.
func (s *Stats) touch(c *counter) {
	s.touchedMu.Lock()
	s.touched = append(s.touched, c)
	s.touchedMu.Unlock()
}

// roll moves what was counted since the last call into the minute of at.
func (s *Stats) roll(at time.Time) {
	s.touchedMu.Lock()
	touched := s.touched
	s.touched = make([]*counter, 0, len(touched))
	s.touchedMu.Unlock()
	if len(touched) == 0 {
		return
	}
	start := at.Unix() / 60 * 60
	minute := s.pending[start]
	if minute == nil {
		minute = make(map[string]uint64, len(touched))
		s.pending[start] = minute
	}
	for _, c := range touched {
		n := c.n.Swap(0)
		if n == 0 {
			continue
		}
		if _, ok := minute[c.siteID]; !ok {
			s.entries++
		}
		minute[c.siteID] += n
	}
	for s.entries > maxPendingCounters && len(s.pending) > 1 {
		oldest := slices.Min(slices.Collect(maps.Keys(s.pending)))
		s.entries -= len(s.pending[oldest])
		s.dropped += uint64(len(s.pending[oldest]))
		delete(s.pending, oldest)
	}
}

// Run closes each minute at its end until stop is closed.
func (s *Stats) Run(stop <-chan struct{}) {
	for {
		now := s.now()
		timer := time.NewTimer(now.Truncate(time.Minute).Add(time.Minute).Sub(now))
		select {
		case <-stop:
			timer.Stop()
			return
		case <-timer.C:
		}
		s.mu.Lock()
		s.roll(now)
		s.mu.Unlock()
	}
}

// Drain forgets the batch with the acknowledged sequence and returns the batch to store next: the one before when it was
// not acknowledged, else what was counted since, the running minute included, oldest minutes first. Counts of one site
// and minute in different batches add up. Sequence 0 says that there is nothing.
func (s *Stats) Drain(acknowledged uint64) (uint64, []*nodev1.SiteMinute) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.batch != nil && acknowledged != s.sequence {
		return s.sequence, s.batch
	}
	s.batch = nil
	s.roll(s.now())
	for _, start := range slices.Sorted(maps.Keys(s.pending)) {
		minute := s.pending[start]
		for siteID, n := range minute {
			if len(s.batch) == maxBatchCounters {
				break
			}
			s.batch = append(s.batch, &nodev1.SiteMinute{SiteId: siteID, Minute: start, Requests: n})
			delete(minute, siteID)
			s.entries--
		}
		if len(minute) == 0 {
			delete(s.pending, start)
		}
	}
	if s.batch == nil {
		return 0, nil
	}
	s.sequence++
	return s.sequence, s.batch
}
