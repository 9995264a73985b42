package listen

import (
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
	"edge.svc/caddy/internal/inflight"
	"edge.svc/caddy/internal/memory"
)

const registryShards = 64

// Registry knows every open connection and every exchange in progress, so that a new ban also ends what its clients
// have open. Entering and leaving it takes a list operation under a lock that hardly anyone shares.
type Registry struct {
	open      atomic.Int64
	listeners atomic.Int64
	turn      atomic.Uint32
	shards    [registryShards]registryShard

	startOnce sync.Once
	wake      chan struct{}

	limiter     limiter
	inflight    inflight.Budget
	http2Errors tally
	http3Errors tally
}

type registryShard struct {
	mu    sync.Mutex
	first *Conn
	// Keeps neighbours off one cache line.
	_ [48]byte
}

// Process is the registry of the process; it outlives every load of a Caddy configuration.
var Process = NewRegistry()

// NewRegistry makes a registry that bounds nothing.
func NewRegistry() *Registry { return &Registry{wake: make(chan struct{}, 1)} }

// SetLimits bounds the connections that come from now on. What is 0 follows from the files and the memory this process
// may use.
func (r *Registry) SetLimits(limits Limits) {
	limits = limits.withDefaults(memory.OpenFiles(), memory.Limit())
	r.limiter.set(limits)
	r.inflight.SetLimits(limits.Requests)
}

// Connections is the number of open client connections.
func (r *Registry) Connections() int64 { return r.open.Load() }

// Serving reports whether listeners are open.
func (r *Registry) Serving() bool { return r.listeners.Load() > 0 }

// check has all that is open checked soon.
func (r *Registry) check() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// watch makes every new ban of core, and the end of an exemption from one, end what its clients have open.
func (r *Registry) watch(c *core.Core) {
	r.startOnce.Do(func() {
		if bans := core.Find[exchange.Bans](c); bans != nil {
			bans.OnBan(func(string, netip.Prefix) { r.check() })
		}
		c.OnExemptions(r.check)
		go r.run(c)
		go r.expire()
	})
}

const (
	// A peak of requests in progress whose memory is returned to the system after it, and how often that may cost a
	// collection.
	releasedPeak = 16 << 20
	releaseEvery = 10 * time.Second
)

// releaseMemory returns the memory of a peak, and once more when the connections that made it are gone, too.
func releaseMemory() {
	contained("returning memory", memory.Release)
	time.Sleep(releaseEvery)
	contained("returning memory", memory.Release)
}

// expire closes connections that take too long for their first request, and returns the memory of peaks.
func (r *Registry) expire() {
	var released time.Time
	for now := range time.Tick(time.Second) {
		contained("ending connections without a request", func() { abort(r.limiter.expired(now), nil) })
		if now.Sub(released) > 2*releaseEvery && r.inflight.Settled(releasedPeak) {
			released = now
			go releaseMemory()
		}
	}
}

// admit takes a connection in, counted for an address, and reports whether it may stay. Others may have to go for it.
func (r *Registry) admit(c *Conn, addr netip.Addr) bool {
	// Whoever is to go must be in the registry.
	r.add(c)
	return !abort(r.limiter.enter(c, addr, time.Now()), c)
}

// run answers bans with one walk over all that is open, however many bans came together: 100,000 connections take some
// 10 ms. The pause after a walk keeps a flood of bans below a fifth of one processor.
func (r *Registry) run(c *core.Core) {
	for range r.wake {
		start := time.Now()
		contained("ending what bans concern", func() { r.sweep(c) })
		time.Sleep(4 * time.Since(start))
	}
}

// contained keeps a panic to one round: the edge serves on.
func contained(doing string, round func()) {
	defer func() {
		if p := recover(); p != nil {
			exchange.Panicked(doing, p)
		}
	}()
	round()
}

// sweep ends the connections of globally banned clients and the exchanges of all banned ones.
func (r *Registry) sweep(node *core.Core) {
	bans := core.Find[exchange.Bans](node)
	if bans == nil {
		return
	}
	tables := node.Tables()
	setting := ClientIP.Of(tables)
	banned := func(siteID string, addr, peer netip.Addr) bool {
		return addr.IsValid() && bans.Banned(siteID, addr) && (claimed(node, setting, addr, peer) || !core.Exempt(tables, addr))
	}
	var closing, ending []*Conn
	for i := range r.shards {
		s := &r.shards[i]
		s.mu.Lock()
		for c := s.first; c != nil; c = c.next {
			switch {
			case banned("", c.client(tables), c.Peer):
				closing = append(closing, c)
			case c.holds(banned):
				ending = append(ending, c)
			}
		}
		s.mu.Unlock()
		for _, c := range closing {
			c.Abort()
		}
		for _, c := range ending {
			c.kill(banned)
		}
		closing, ending = closing[:0], ending[:0]
	}
}

func (r *Registry) add(c *Conn) {
	c.registry, c.shard = r, &r.shards[r.turn.Add(1)%registryShards]
	r.open.Add(1)
	s := c.shard
	s.mu.Lock()
	if c.next = s.first; c.next != nil {
		c.next.prev = c
	}
	s.first = c
	s.mu.Unlock()
}

func (r *Registry) remove(c *Conn) {
	r.open.Add(-1)
	r.limiter.leave(c)
	s := c.shard
	s.mu.Lock()
	if c.prev != nil {
		c.prev.next = c.next
	} else {
		s.first = c.next
	}
	if c.next != nil {
		c.next.prev = c.prev
	}
	c.next, c.prev = nil, nil
	s.mu.Unlock()
}
