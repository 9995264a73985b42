package bans

import (
	"errors"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gaissmai/bart"
	"google.golang.org/protobuf/proto"

	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
	nodev1 "edge.svc/caddy/gen/svc/node/v1"
)

// ErrBase says that a change starts from another position than the table's; nothing was changed.
var ErrBase = errors.New("the ban change does not start at the current position")

// Source says who made a ban.
type Source uint8

// A network can hold bans of every source at once; each lives and ends on its own.
const (
	// SourceManual is a ban made at the console by hand. It is never given up for room.
	SourceManual Source = iota + 1
	// SourceAuto is an automatic ban that came from the console.
	SourceAuto
	// SourceOwn is an automatic ban this node made itself. It has no id.
	SourceOwn
)

const (
	maxReportedIDs = 100
	// No ban lives longer, whatever its record says.
	maxLifetime = 7 * 24 * time.Hour
	// Shortest prefixes accepted.
	minBits4, minBits6 = 16, 48
)

// Hit is the ban an address fell under.
type Hit struct {
	// ID is empty for the node's own bans.
	ID string
	// SiteID is empty for global bans.
	SiteID string
	Prefix netip.Prefix
	Source Source
	// Remaining is the time left until the ban ends.
	Remaining time.Duration
}

// Table is the ban table of a node. Lookup may be called from any number of goroutines beside one another and beside
// the methods that change the table, which wait for each other.
type Table struct {
	now      func() time.Time
	real     bool
	start    time.Time
	capacity int
	maxBytes int64

	view atomic.Pointer[view]

	mu          sync.Mutex
	position    *nodev1.BanPosition
	index       *index
	autoEvicted uint64
	onBan       func(siteID string, prefix netip.Prefix)
	sweep       *time.Timer
	sweepAt     int64
}

// view is what readers see. A full replacement swaps the view; a change swaps the tries inside it.
type view struct {
	filter *filter
	global scope
	// siteID -> *scope, only sites that have bans.
	sites     sync.Map
	siteCount atomic.Int64
}

// scope is one trie: the bans of everything, or of one site.
type scope struct {
	siteID string
	trie   atomic.Pointer[bart.Table[*record]]
}

// New makes an empty table that holds at most capacity bans in about maxBytes bytes. now is nil, for the real clock,
// or returns times that tests make up.
func New(capacity int, maxBytes int64, now func() time.Time) *Table {
	t := &Table{now: now, capacity: capacity, maxBytes: maxBytes, position: &nodev1.BanPosition{}}
	if now == nil {
		t.now, t.real = time.Now, true
	}
	t.start = t.now()
	t.index = newIndex(capacity)
	t.view.Store(t.index.view)
	return t
}

// Lookup returns the ban that covers addr, global bans first, then those of the site. An expired ban never hits and
// never hides a live one of a wider network.
func (t *Table) Lookup(siteID string, addr netip.Addr) (Hit, bool) {
	if addr.Is4In6() {
		addr = addr.Unmap()
	}
	v := t.view.Load()
	if v.filter.excludes(addr) {
		return Hit{}, false
	}
	if trie := v.global.trie.Load(); trie != nil {
		if r, now := t.find(trie, addr); r != nil {
			return r.hit("", now), true
		}
	}
	if v.siteCount.Load() == 0 {
		return Hit{}, false
	}
	s, ok := v.sites.Load(siteID)
	if !ok {
		return Hit{}, false
	}
	if trie := s.(*scope).trie.Load(); trie != nil {
		if r, now := t.find(trie, addr); r != nil {
			return r.hit(siteID, now), true
		}
	}
	return Hit{}, false
}

// Banned reports whether an address is banned everywhere, or from the site; "" asks for bans of everything alone.
func (t *Table) Banned(siteID string, addr netip.Addr) bool {
	_, banned := t.Lookup(siteID, addr)
	return banned
}

// find reads the clock only when a prefix matches, because most addresses match none.
func (t *Table) find(trie *bart.Table[*record], addr netip.Addr) (*record, int64) {
	r, ok := trie.Lookup(addr)
	if !ok {
		return nil, 0
	}
	now := t.clock()
	if r.expires > now {
		return r, now
	}
	for _, wider := range trie.Supernets(netip.PrefixFrom(addr.WithZone(""), addr.BitLen())) {
		if wider.expires > now {
			return wider, now
		}
	}
	return nil, 0
}

// clock is the monotonic time since the table was made, in nanoseconds. Reading only the monotonic clock halves the
// cost of a hit.
func (t *Table) clock() int64 {
	if t.real {
		return int64(time.Since(t.start))
	}
	return int64(t.now().Sub(t.start))
}

// OnBan registers what is called after a ban took effect, by the goroutine that changed the table and without its
// lock. It is meant to end what the banned clients have open. Call it before the first change.
func (t *Table) OnBan(f func(siteID string, prefix netip.Prefix)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.onBan = f
}

// State reports position, size and the manual bans that did not fit.
func (t *Table) State() *edgev1.BanState {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.index.edit(0)
	t.expire(e)
	e.publish()
	return t.state()
}

func (t *Table) state() *edgev1.BanState {
	s := &edgev1.BanState{
		Position:    proto.CloneOf(t.position),
		Entries:     uint64(t.index.placed),
		Capacity:    uint64(t.capacity),
		Unapplied:   uint64(t.index.waiting) + t.index.uncounted,
		AutoEvicted: t.autoEvicted,
	}
	for _, r := range t.index.queue {
		if len(s.UnappliedIds) == maxReportedIDs {
			break
		}
		if r.state == stateWaiting {
			s.UnappliedIds = append(s.UnappliedIds, r.id)
		}
	}
	return s
}
