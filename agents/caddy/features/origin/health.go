package origin

import (
	"sync"
	"sync/atomic"
	"time"
)

// An origin that has not failed for this long is forgotten.
const forgetAfter = 24 * time.Hour

// State is the health of all origins of the node. It is keyed by site and origin id, so that it survives changes of the
// configuration, and holds only origins that failed: with none of them, asking costs one atomic read. An origin is down if
// requests say so (passive) or if its checks say so (active, see Checker).
//
//	state      | trigger                                | next
//	up         | maxFails failures in a row             | down for recoverySeconds
//	up         | any success                            | up, failures forgotten
//	down       | recoverySeconds passed                 | on trial: takes traffic
//	on trial   | one failure                            | down for recoverySeconds
//	on trial   | one success                            | up
type State struct {
	now    func() time.Time
	failed atomic.Int64
	// While one origin fails, requests of others do not meet at one lock.
	shards [healthShards]healthShard
	swept  atomic.Int64
	// How requests fared lately.
	traffic traffic
}

const healthShards = 64

type healthShard struct {
	failed atomic.Int64

	mu      sync.RWMutex
	origins map[originKey]*health
}

// originKey names what is up or down.
type originKey struct {
	site, origin string
	// What is dialled in place of the origin's own address; the zero value for that.
	instead dialKey
}

type health struct {
	// What requests met; zero without a failure since the last success.
	passive
	// Until when failed checks keep the origin out.
	markedUntil time.Time
}

type passive struct {
	fails       uint32
	downUntil   time.Time
	lastFailure time.Time
	// When it went down, and has not been up since; zero where it did not.
	since time.Time
	why   reason
}

// reason says why an origin failed.
type reason struct {
	class failure
	// Of a response; 0 without one.
	status int
}

// NewState makes a state in which every origin is up.
func NewState() *State {
	s := &State{now: time.Now, traffic: traffic{origins: map[originKey]*figures{}}}
	for i := range s.shards {
		s.shards[i].origins = map[originKey]*health{}
	}
	return s
}

// of is the shard of an origin. What is dialled in place of it lies beside it.
func (s *State) of(key originKey) *healthShard {
	return &s.shards[mix(hashString(key.site)^hashString(key.origin))%healthShards]
}

// down says whether an origin takes no traffic at the moment.
func (s *State) down(key originKey, now time.Time) bool {
	shard := s.of(key)
	if shard.failed.Load() == 0 {
		return false
	}
	shard.mu.RLock()
	defer shard.mu.RUnlock()
	h := shard.origins[key]
	return h != nil && (now.Before(h.downUntil) || now.Before(h.markedUntil))
}

func (s *State) succeed(key originKey) {
	if s.failed.Load() == 0 {
		return
	}
	shard := s.of(key)
	if shard.failed.Load() == 0 {
		return
	}
	shard.mu.RLock()
	h := shard.origins[key]
	failed := h != nil && h.fails > 0
	shard.mu.RUnlock()
	if !failed {
		return
	}
	shard.mu.Lock()
	defer shard.mu.Unlock()
	if h := shard.origins[key]; h != nil {
		h.passive = passive{}
		s.dropHealthy(shard, key)
	}
}

// mark keeps an origin out until a time, because its checks fail; the zero time ends that.
func (s *State) mark(key originKey, until time.Time) {
	shard := s.of(key)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	h := shard.origins[key]
	if h == nil {
		if until.IsZero() {
			return
		}
		h = &health{}
		shard.origins[key] = h
		s.count(shard)
	}
	h.markedUntil = until
	s.dropHealthy(shard, key)
}

// dropHealthy forgets an origin of which nothing is wrong any more, under the lock of its shard.
func (s *State) dropHealthy(shard *healthShard, key originKey) {
	if h := shard.origins[key]; h.fails == 0 && h.markedUntil.IsZero() {
		delete(shard.origins, key)
		s.count(shard)
	}
}

// count notes how many origins of a shard are known, under its lock.
func (s *State) count(shard *healthShard) {
	n := int64(len(shard.origins))
	s.failed.Add(n - shard.failed.Swap(n))
}

func (s *State) fail(key originKey, why reason, maxFails uint32, recovery time.Duration) {
	now := s.now()
	s.sweep(now)
	shard := s.of(key)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	h := shard.origins[key]
	if h == nil {
		h = &health{}
		shard.origins[key] = h
		s.count(shard)
	}
	h.fails++
	h.lastFailure, h.why = now, why
	if h.fails >= maxFails {
		h.fails = maxFails
		h.downUntil = now.Add(recovery)
		if h.since.IsZero() {
			h.since = now
		}
	}
}

// sweep forgets old failures, also those of origins that no longer exist.
func (s *State) sweep(now time.Time) {
	swept := s.swept.Load()
	if now.UnixNano()-swept < int64(forgetAfter/24) || !s.swept.CompareAndSwap(swept, now.UnixNano()) {
		return
	}
	for i := range s.shards {
		shard := &s.shards[i]
		shard.mu.Lock()
		for key, h := range shard.origins {
			if h.fails > 0 && now.Sub(h.lastFailure) > forgetAfter {
				h.passive = passive{}
			}
			if h.fails == 0 && !now.Before(h.markedUntil) {
				delete(shard.origins, key)
			}
		}
		s.count(shard)
		shard.mu.Unlock()
	}
}
