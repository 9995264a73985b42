package rate

import (
	"math/bits"
	"math/rand/v2"
	"sync"
	"time"
	"unsafe"

	"edge.svc/caddy/exchange"
)

const (
	shards = 256
	// A counter may be in one of this many places, which are also the samples to choose from when one must go.
	ways         = 8
	firstBuckets = 1
	// parts of a window that are told apart.
	parts = 11
	// One more is held, so that the oldest part counts until all of it has left the window.
	heldParts = parts + 1
	// Places of those that have none, in each shard.
	sharedPlaces = 64
	bucketBytes  = int(unsafe.Sizeof(bucket{}))
)

// table counts requests by rule, site and key, in windows that move on in elevenths. Its memory has a limit.
type table struct {
	seed       uint64
	maxBuckets int
	shards     [shards]shard
}

// figures are of what was counted.
type figures struct {
	refused, evicted uint64
	// Requests that were counted together with others, because every place they could have was taken by somebody who is
	// being limited.
	crowded uint64
	// Places for counters.
	places uint64
}

// shard holds buckets. It grows by doubling.
type shard struct {
	mu      sync.Mutex
	buckets []bucket
	// Made when it is needed first; one for each remainder of the counter of a rule and site.
	shared *[sharedPlaces]sharedEntry
	figures
}

// bucket is without pointers, so that the garbage collector never looks at it. Tags lie together: looking for one reads a
// single cache line. 0 = free.
type bucket struct {
	tags    [ways]uint64
	entries [ways]entry
}

type sharedEntry struct {
	tag uint64
	entry
}

// entry is one counter.
type entry struct {
	// Number of the latest part in which anything was counted.
	latest uint32
	rule   packedRule
	counts [heldParts]uint32
}

// packedRule is what a rule said last: its limit, and the seconds of its window.
type packedRule uint32

const (
	secondsBits = 12
	maxSeconds  = 1<<secondsBits - 1
	maxLimit    = 1<<(32-secondsBits) - 1
)

func pack(r *exchange.RateRule) packedRule {
	seconds := min(max(r.Window/time.Second, 1), maxSeconds)
	return packedRule(min(r.Limit, maxLimit)<<secondsBits | uint32(seconds))
}

func (r packedRule) limit() uint32 { return uint32(r) >> secondsBits }

// partAt is the number of the part that a time lies in.
func (r packedRule) partAt(now time.Duration) uint32 {
	return uint32(uint64(now) * parts / (uint64(r&maxSeconds) * uint64(time.Second)))
}

// newTable makes a table of at most so many bytes.
func newTable(most int) *table {
	perShard := max(most/shards/bucketBytes, 1)
	return &table{seed: rand.Uint64(), maxBuckets: 1 << (bits.Len(uint(perShard)) - 1)}
}

// counter stands for a rule and a site.
func (t *table) counter(site, rule uint64) uint64 { return t.mix(site, rule) }

func (t *table) mix(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a^t.seed, b^0x9e3779b97f4a7c15)
	hi, lo = bits.Mul64(hi^lo^b, a^0xd6e8feb86659fd93)
	return hi ^ lo
}

// tag stands for a counter and a key. It is never 0.
func (t *table) tag(counter, key uint64) uint64 { return max(t.mix(counter, key), 1) }

func (t *table) shard(tag uint64) *shard { return &t.shards[tag>>56] }

// count adds a request and reports true, unless as many as the limit says were counted within the window: then it adds
// nothing. part is the one it was counted in.
func (t *table) count(counter uint64, due exchange.RateDue, now time.Duration) (part uint32, within bool) {
	rule := pack(due.Rule)
	tag := t.tag(counter, due.Key)
	s := t.shard(tag)
	s.mu.Lock()
	defer s.mu.Unlock()
	e := t.find(s, tag, now)
	if e == nil {
		s.crowded++
		if e = s.sharedOf(counter, now); e == nil {
			s.refused++
			return 0, false
		}
	}
	part = rule.partAt(now)
	if e.rule == 0 {
		e.latest = part
	}
	e.rule = rule
	part = e.forward(part)
	if e.sum() >= rule.limit() {
		s.refused++
		return part, false
	}
	e.counts[part%heldParts]++
	return part, true
}

// uncount takes back what count added.
func (t *table) uncount(counter uint64, due exchange.RateDue, part uint32) {
	tag := t.tag(counter, due.Key)
	s := t.shard(tag)
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.lookUp(tag)
	if e == nil && s.shared != nil {
		if shared := &s.shared[counter%sharedPlaces]; shared.tag == counter {
			e = &shared.entry
		}
	}
	if e != nil && e.latest-part < heldParts && e.counts[part%heldParts] > 0 {
		e.counts[part%heldParts]--
	}
}

func (s *shard) bucket(tag uint64) *bucket { return &s.buckets[tag&uint64(len(s.buckets)-1)] }

func (s *shard) lookUp(tag uint64) *entry {
	if len(s.buckets) == 0 {
		return nil
	}
	b := s.bucket(tag)
	for i := range b.tags {
		if b.tags[i] == tag {
			return &b.entries[i]
		}
	}
	return nil
}

// find returns the entry of a tag, where it has none a new one in the place of the lightest; nil when all that could go
// are being limited.
func (t *table) find(s *shard, tag uint64, now time.Duration) *entry {
	if e := s.lookUp(tag); e != nil {
		return e
	}
	for {
		if len(s.buckets) == 0 {
			s.buckets = make([]bucket, min(firstBuckets, t.maxBuckets))
		}
		b := s.bucket(tag)
		at, least := -1, uint32(0)
		for i := range b.tags {
			weight, limited := b.entries[i].weight(now)
			if b.tags[i] == 0 {
				at, least = i, 0
				break
			}
			if !limited && (at < 0 || weight < least) {
				at, least = i, weight
			}
		}
		if (at < 0 || least > 0) && len(s.buckets) < t.maxBuckets {
			s.grow()
			continue
		}
		if at < 0 {
			return nil
		}
		if least > 0 {
			s.evicted++
		}
		b.tags[at], b.entries[at] = tag, entry{}
		return &b.entries[at]
	}
}

// sharedOf returns the entry in which those are counted together that have no place of their own; nil when it is that of
// another rule or site that is being limited.
func (s *shard) sharedOf(counter uint64, now time.Duration) *entry {
	if s.shared == nil {
		s.shared = new([sharedPlaces]sharedEntry)
	}
	e := &s.shared[counter%sharedPlaces]
	if e.tag != counter {
		if _, limited := e.weight(now); limited {
			return nil
		}
		*e = sharedEntry{tag: counter}
	}
	return &e.entry
}

func (s *shard) grow() {
	old := s.buckets
	s.buckets = make([]bucket, 2*len(old))
	for i := range old {
		for j, tag := range old[i].tags {
			if tag == 0 {
				continue
			}
			b := s.bucket(tag)
			for k := range b.tags {
				if b.tags[k] == 0 {
					b.tags[k], b.entries[k] = tag, old[i].entries[j]
					break
				}
			}
		}
	}
}

// forward forgets what has left the window by a part, and returns the part that is counted in: somebody may have been
// here with a later one.
func (e *entry) forward(part uint32) uint32 {
	ahead := part - e.latest
	if int32(ahead) <= 0 {
		return e.latest
	}
	for i := range min(ahead, heldParts) {
		e.counts[(part-i)%heldParts] = 0
	}
	e.latest = part
	return part
}

func (e *entry) sum() uint32 {
	total := uint32(0)
	for _, n := range e.counts {
		total += n
	}
	return total
}

// weight is what would be lost with an entry, and whether it is being limited.
func (e *entry) weight(now time.Duration) (requests uint32, limited bool) {
	if e.rule == 0 {
		return 0, false
	}
	e.forward(e.rule.partAt(now))
	requests = e.sum()
	return requests, requests >= e.rule.limit()
}

// figures adds up those of all shards.
func (t *table) figures() figures {
	var all figures
	for i := range t.shards {
		s := &t.shards[i]
		s.mu.Lock()
		all.refused += s.refused
		all.evicted += s.evicted
		all.crowded += s.crowded
		all.places += uint64(len(s.buckets) * ways)
		s.mu.Unlock()
	}
	return all
}
