package cc

import (
	"math/bits"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

const (
	shards = 256
	// A client may be in one of this many places, which are also the samples to choose from when one must go.
	ways          = 8
	firstBuckets  = 4
	entryHalfLife = 8
)

// clients counts requests of clients, in sliding windows, in a memory that has a limit.
type clients struct {
	seed       uint64
	maxBuckets int
	evicted    atomic.Uint64
	shards     [shards]shard
}

// shard holds buckets of as many entries as there are ways. It grows by doubling.
type shard struct {
	mu      sync.Mutex
	entries []entry
	// Keeps neighbours off one cache line.
	_ [32]byte
}

// entry is a client of a site. Without pointers, so that the garbage collector never looks at it.
type entry struct {
	network uint64
	// Number of the site, twice, plus one for IPv4; 0 = free.
	owner uint32
	// Second at which the current window began.
	start             uint32
	current, previous uint32
}

// newClients makes a table of at most this many entries, a power of two.
func newClients(most int) *clients {
	return &clients{seed: rand.Uint64(), maxBuckets: max(most/shards/ways, 1)}
}

func owner(site uint32, n network) uint32 {
	o := site << 1
	if n.is4 {
		o |= 1
	}
	return o
}

func (t *clients) hash(n network, owner uint32) uint64 {
	hi, lo := bits.Mul64(n.bits^t.seed, 0x9e3779b97f4a7c15^uint64(owner)<<17)
	hi, lo = bits.Mul64(hi^lo^uint64(owner), 0xd6e8feb86659fd93)
	return hi ^ lo
}

// count adds a request of a client and reports whether its sliding count went over the limit, and the count. The client
// then starts anew, so that this is reported once.
func (t *clients) count(site uint32, n network, now, window time.Duration, limit float64) (estimate float64, over bool) {
	second := uint32(now / time.Second)
	start := uint32(now / window * window / time.Second)
	o := owner(site, n)
	h := t.hash(n, o)
	s := &t.shards[h>>56]
	s.mu.Lock()
	defer s.mu.Unlock()
	e := t.find(s, n, o, h, second)
	switch e.start {
	case start:
	case start - uint32(window/time.Second):
		e.previous, e.current, e.start = e.current, 0, start
	default:
		e.previous, e.current, e.start = 0, 0, start
	}
	e.current++
	estimate = float64(e.current)
	if e.previous > 0 {
		estimate += float64(e.previous) * (1 - float64(now%window)/float64(window))
	}
	if estimate <= limit {
		return estimate, false
	}
	e.previous, e.current = 0, 0
	return estimate, true
}

// countSince adds a request in the window of a client that begins with its first request, and returns how many there
// are in it. It reports going over the limit at most once a second, and not again before a request that is over, too.
func (t *clients) countSince(site uint32, n network, now, window time.Duration, limit uint32) (requests uint32, over bool) {
	second := uint32(now / time.Second)
	o := owner(site, n)
	h := t.hash(n, o)
	s := &t.shards[h>>56]
	s.mu.Lock()
	defer s.mu.Unlock()
	e := t.find(s, n, o, h, second)
	if e.current == 0 || second-e.start >= uint32(window/time.Second) {
		e.start, e.current = second, 0
	}
	e.current++
	// `previous` is the second after the last report here.
	if e.current <= limit || e.previous == second+1 {
		return e.current, false
	}
	e.previous = second + 1
	return e.current, true
}

// reset makes a client start anew.
func (t *clients) reset(site uint32, n network) {
	o := owner(site, n)
	h := t.hash(n, o)
	s := &t.shards[h>>56]
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.entries) == 0 {
		return
	}
	bucket := s.bucket(h)
	for i := range bucket {
		if bucket[i].network == n.bits && bucket[i].owner == o {
			bucket[i].current, bucket[i].previous = 0, 0
		}
	}
}

func (s *shard) bucket(h uint64) []entry {
	at := h & uint64(len(s.entries)/ways-1) * ways
	return s.entries[at : at+ways : at+ways]
}

// find returns the entry of a client, a new one in the place of the lightest when it has none.
func (t *clients) find(s *shard, n network, owner uint32, h uint64, second uint32) *entry {
	for {
		if len(s.entries) == 0 {
			s.entries = make([]entry, min(firstBuckets, t.maxBuckets)*ways)
		}
		bucket := s.bucket(h)
		lightest, least := 0, uint32(1<<31)
		for i := range bucket {
			e := &bucket[i]
			if e.network == n.bits && e.owner == owner {
				return e
			}
			if w := e.weight(second); w < least {
				lightest, least = i, w
			}
		}
		if least > 0 && len(s.entries)/ways < t.maxBuckets {
			t.grow(s)
			continue
		}
		if least > 0 {
			t.evicted.Add(1)
		}
		e := &bucket[lightest]
		*e = entry{network: n.bits, owner: owner, start: second}
		return e
	}
}

// weight is what would be lost with an entry. It fades, so that what a past flood left gives way to what is there now.
func (e *entry) weight(second uint32) uint32 {
	age := (second - e.start) / entryHalfLife
	if age > 31 {
		return 0
	}
	return (e.current + e.previous) >> age
}

func (t *clients) grow(s *shard) {
	old := s.entries
	s.entries = make([]entry, 2*len(old))
	for i := range old {
		e := &old[i]
		if e.owner == 0 {
			continue
		}
		bucket := s.bucket(t.hash(network{e.network, e.owner&1 == 1}, e.owner))
		for j := range bucket {
			if bucket[j].owner == 0 {
				bucket[j] = *e
				break
			}
		}
	}
}

// size is the number of places for entries.
func (t *clients) size() int {
	total := 0
	for i := range t.shards {
		s := &t.shards[i]
		s.mu.Lock()
		total += len(s.entries)
		s.mu.Unlock()
	}
	return total
}
