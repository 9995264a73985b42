package cc

import (
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"edge.svc/caddy/exchange"
)

const (
	// 24 bytes each.
	maxClients  = 1 << 20
	maxScanners = 1 << 16
)

// Guard is the CC mitigation of a node. Make it with New.
type Guard struct {
	options Options
	start   time.Time
	real    bool
	outbox  *outbox

	// siteID -> *Site, sites that are counted at the moment.
	sites   sync.Map
	numbers atomic.Uint32
	// Paths and clients that are candidates for the heaviest, of all sites.
	candidates atomic.Int64
	clients    *clients
	scans      scans

	protected atomic.Pointer[protected]

	// Serialises evaluations and restores.
	mu        sync.Mutex
	evaluated time.Duration
	// Sites whose levels were continued from the agent's journal.
	loaded map[string]bool
}

// Options of a Guard.
type Options struct {
	Bans exchange.OwnBans
	// InstanceID is of this process; the ids of events begin with it.
	InstanceID string
	// Thresholds returns those of a site, nil while its policy is off or it does not exist.
	Thresholds func(siteID string) *Thresholds
	// Former has what the agent keeps of a former process taken in, and says whether it is to be used; nil where nobody keeps it.
	Former func(*Former) bool
	// Panicked hears of a panic that was contained to one evaluation; nil lets it end the process.
	Panicked func(p any)
	// Now is nil for the real clock.
	Now func() time.Time
}

// New makes a Guard that has counted nothing.
func New(o Options) *Guard {
	g := &Guard{options: o, real: o.Now == nil, clients: newClients(maxClients)}
	if g.real {
		g.options.Now = time.Now
	}
	g.start = g.options.Now()
	g.outbox = newOutbox(o.InstanceID, g.options.Now)
	g.scans = scans{clients: newClients(maxScanners)}
	g.protected.Store(&protected{})
	return g
}

// clock is the monotonic time since the Guard was made.
func (g *Guard) clock() time.Duration {
	if g.real {
		return time.Since(g.start)
	}
	return g.options.Now().Sub(g.start)
}

// CountRequest adds a request of a site whose policy is on to what is counted, and says where it counts and what the level
// of the site or of the path asks of it, the higher one. exempt clients are never named as heavy; path is canonical.
func (g *Guard) CountRequest(siteID string, t *Thresholds, client netip.Addr, exempt bool, path string) (s *Site, demand exchange.Demand) {
	s = g.site(siteID)
	s.count(networkOf(client), !exempt && countable(client), path)
	if p := s.published.Load(); p != nil {
		demand.Level = min(max(p.level, p.paths[path]), t.MaxLevel)
		demand.HighPow = t.HighPow && demand.Level == exchange.Captcha
	}
	return s, demand
}

// CountClient adds a request to what its client asked of a site. When it is the one too many, it returns what bans the
// client: the caller calls it, so that it can see to it that the answer to this request is not ended by the ban.
func (g *Guard) CountClient(s *Site, t *Thresholds, client netip.Addr, exempt bool) (ban func()) {
	if t.IPQPS == 0 || exempt || !countable(client) {
		return nil
	}
	n := networkOf(client)
	limit := float64(t.IPQPS) * t.Window.Seconds()
	estimate, over := g.clients.count(s.number, n, g.clock(), t.Window, limit)
	if !over || g.protected.Load().has(n) {
		return nil
	}
	return func() { g.banClient(s, n, t, estimate) }
}

func (g *Guard) site(siteID string) *Site {
	if s, ok := g.sites.Load(siteID); ok {
		return s.(*Site)
	}
	s, _ := g.sites.LoadOrStore(siteID, newSite(siteID, g.numbers.Add(1), &g.candidates))
	return s.(*Site)
}

// banClient bans a client that alone asked too much of a site.
func (g *Guard) banClient(s *Site, n network, t *Thresholds, estimate float64) {
	g.options.Bans.AddOwn(s.id, n.prefix(), t.IPBan)
	level := Level(0)
	if p := s.published.Load(); p != nil {
		level = p.level
	}
	g.outbox.clientBanned(s.id, n, t, estimate, level)
}

// Lifted makes clients whose bans were lifted start anew.
func (g *Guard) Lifted(siteID string, prefix netip.Prefix) {
	n := networkOf(prefix.Addr())
	if siteID == "" {
		return
	}
	if s, ok := g.sites.Load(siteID); ok {
		g.clients.reset(s.(*Site).number, n)
	}
}

// evaluateContained keeps a panic to one evaluation: the edge serves on, with the levels it has.
func (g *Guard) evaluateContained() {
	defer func() {
		if g.options.Panicked == nil {
			return
		}
		if p := recover(); p != nil {
			g.options.Panicked(p)
		}
	}()
	g.Evaluate()
}

// Run evaluates once a second until stop is closed.
func (g *Guard) Run(stop <-chan struct{}) {
	g.refreshProtected()
	for refresh := 1; ; refresh++ {
		// Whole seconds of the clock, so that windows end with an evaluation.
		timer := time.NewTimer(time.Second - g.clock()%time.Second)
		select {
		case <-stop:
			timer.Stop()
			return
		case <-timer.C:
		}
		g.evaluateContained()
		if refresh%60 == 0 {
			g.refreshProtected()
		}
	}
}
