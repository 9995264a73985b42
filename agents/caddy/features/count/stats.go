package count

import (
	"context"
	"path/filepath"
	"sync"
	"time"

	"go.uber.org/zap"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
	"edge.svc/caddy/gen/svc/edge/v1/edgev1connect"
	nodev1 "edge.svc/caddy/gen/svc/node/v1"
)

const flushEvery = time.Second

// Stats has the counters of all sites and of the node, and the segments they move into.
type Stats struct {
	disk   disk
	now    func() time.Time
	folder string
	tell   func(doing string, err error)
	log    *zap.Logger
	node   *counter

	touchedMu sync.Mutex
	touched   []*counter

	mu sync.Mutex
	// nil until something is to be kept.
	spool *spool
	// Counters that are still to be emptied.
	todo []*counter
	// Of all traffic.
	fared   fared
	failing failing
	ruleLog ruleLog
	lists   *topLists
	// nil where no site was chosen.
	shown *shownSites
	last  time.Time
	ended bool
}

var (
	component = core.NewComponent("counts", func(c *core.Core) *Stats {
		stats := newStats(filepath.Join(c.StateDir(), "counts"), c.Now, func(doing string, err error) {
			c.Log().Error("cannot write counts to disk; the edge continues to serve", zap.String("while", doing), zap.Error(err))
		})
		stats.log = c.Log()
		stats.shown = newShownSites(metricsSites.Of(c))
		stats.lists.geo = sync.OnceValue(func() exchange.Geo { return core.Find[exchange.Geo](c) })
		return stats
	})
	counters = exchange.NewLive[counter]("counts")
)

func init() { core.RegisterCall(edgev1connect.EdgeServiceDrainStatsProcedure, drainStats) }

// Of returns the counters of a core.
func Of(c *core.Core) *Stats { return component.Of(c) }

func newStats(folder string, now func() time.Time, tell func(doing string, err error)) *Stats {
	s := &Stats{disk: realDisk{}, folder: folder, now: now, tell: tell, log: zap.NewNop()}
	s.node = s.counter("")
	s.lists = newTopLists(func() exchange.Geo { return nil })
	return s
}

func (s *Stats) counter(siteID string) *counter {
	c := &counter{siteID: siteID[:min(len(siteID), maxText)]}
	refused := c.refused
	if siteID != "" {
		refused = nil
	}
	c.Init(func() { s.touch(c) }, refused)
	return c
}

// counterOf is the counter of a site.
func (s *Stats) counterOf(p *exchange.Plan) *counter {
	c := counters.Of(p)
	if c == nil {
		c = counters.Put(p, s.counter(p.SiteID))
	}
	return c
}

// NodeAccount is the account of what belongs to no site.
func (s *Stats) NodeAccount() *exchange.Account { return &s.node.Account }

func drainStats(_ context.Context, c *core.Core, r *edgev1.DrainStatsRequest) (*edgev1.DrainStatsResponse, error) {
	stats := Of(c)
	response := stats.Drain(r.GetAcknowledged())
	stats.SetClock(time.Duration(r.GetClockOffsetMs()) * time.Millisecond)
	return response, nil
}

// touch remembers a counter that holds something.
func (s *Stats) touch(c *counter) {
	s.touchedMu.Lock()
	s.touched = append(s.touched, c)
	s.touchedMu.Unlock()
}

// open makes the spool ready. The lock is held.
func (s *Stats) open() *spool {
	if s.spool == nil {
		s.spool = openSpool(s.disk, s.folder, s.now, s.tell)
		s.last = s.spool.clock.now()
	}
	return s.spool
}

// Settle moves what was counted since the last call into the running segment. What was counted in a
// second around the end of a minute belongs to the minute in which most of that second lies.
func (s *Stats) Settle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flush()
}

func (s *Stats) flush() {
	if s.ended {
		return
	}
	spool := s.open()
	s.touchedMu.Lock()
	s.todo = append(s.todo, s.touched...)
	s.touched = s.touched[:0]
	s.touchedMu.Unlock()
	now := spool.clock.now()
	minute := now.Add(-min(max(now.Sub(s.last), 0), flushEvery)/2).Unix() / 60 * 60
	s.ruleLog.close(minute)
	spool.guarded(func() {
		for len(s.todo) > 0 {
			c := s.todo[len(s.todo)-1]
			s.todo = s.todo[:len(s.todo)-1]
			requests, failed := c.fared.worth()
			shown := s.shown.of(c.siteID)
			originErrors := c.take(func(f field, n uint64) {
				c.fared.add(f, n)
				s.shown.add(shown, f, n)
				s.fared.add(f, n)
				spool.count(c.siteID, minute, f, n)
			})
			c.rules.take(func(rule ruleKey, event exchange.RuleEvent, n uint64) {
				s.ruleLog.note(c.siteID, minute, rule, event, n)
				spool.put(c.siteID, minute, func(segment *segment, r *row) bool { return segment.addRule(r, rule, event, n) })
			})
			c.fared.originErrors += originErrors
			s.fared.originErrors += originErrors
			nowRequests, nowFailed := c.fared.worth()
			s.failing.note(c, s.now(), nowRequests-min(requests, nowRequests), nowFailed-failed)
		}
		s.lists.take(minute, func(siteID string, of int64, entry topEntry) {
			spool.put(siteID, of, func(segment *segment, r *row) bool { return segment.addTop(r, entry) })
		})
		s.failing.tell(s.now())
		spool.current.flushed(now, spool.clock.offset())
	})
	s.last = now
}

// count adds to the running segment, or to the next one where it is full.
func (s *spool) count(siteID string, minute int64, f field, n uint64) {
	s.put(siteID, minute, func(segment *segment, r *row) bool { return segment.add(r, f, n, nameOf) })
}

// put adds to a row of the running segment, or of the next one where it is full, which add says.
func (s *spool) put(siteID string, minute int64, add func(segment *segment, r *row) bool) {
	for range 2 {
		if r := s.current.rowOf(siteID, minute); r != nil && add(s.current, r) {
			return
		}
		s.rotate()
	}
}

func nameOf(f field) string { return exchange.Count(f - fieldName).Name() }

// Run flushes each second until stop is closed.
func (s *Stats) Run(stop <-chan struct{}) {
	for {
		s.Settle()
		s.writeLines()
		s.mu.Lock()
		now := s.spool.clock.now()
		s.mu.Unlock()
		timer := time.NewTimer(now.Truncate(flushEvery).Add(flushEvery).Sub(now))
		select {
		case <-stop:
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}

// End keeps all that was counted, once nothing is served any more.
func (s *Stats) End() {
	// Without the lock.
	defer s.writeLines()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flush()
	if !s.ended {
		s.ended = true
		s.ruleLog.close(0)
		s.spool.guarded(func() { s.spool.seal(ended) })
	}
}

// SetClock takes over the console's clock minus this machine's; 0 is taken for not known.
func (s *Stats) SetClock(offset time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if offset != 0 && !s.ended {
		s.open().clock.set(offset)
		s.last = s.spool.clock.now()
	}
}

// Drain forgets the batches up to the acknowledged sequence and returns the oldest one that is left; where none is, what
// was counted since, the running minute included. A batch never changes and is handed out until it is acknowledged, also by
// another process. Counts of one site and minute in different batches add up. Sequence 0 says that there is nothing.
func (s *Stats) Drain(acknowledged uint64) *edgev1.DrainStatsResponse {
	s.mu.Lock()
	defer s.mu.Unlock()
	spool := s.open()
	spool.acknowledge(acknowledged)
	batch := spool.next()
	if batch == nil && !s.ended {
		s.flush()
		if len(spool.current.rows) > 0 {
			spool.guarded(spool.rotate)
		}
		batch = spool.next()
	}
	if batch == nil {
		return &edgev1.DrainStatsResponse{}
	}
	response := &edgev1.DrainStatsResponse{Sequence: batch.sequence, Minutes: batch.minutes}
	for _, g := range batch.gaps {
		response.Gaps = append(response.Gaps, &nodev1.StatsGap{From: g.from, To: g.to})
	}
	return response
}

// FillStatus names sites that fail, and says so where a process that is killed would take its counts with it.
func (s *Stats) FillStatus(status *edgev1.GetStatusResponse) {
	s.failing.fill(status)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.spool != nil && s.spool.failing {
		status.Warnings = append(status.Warnings, "counts cannot be written to their folder: they are kept in memory")
	}
}
