package origin

import (
	"sync"
	"sync/atomic"
	"time"
)

// An origin that has not failed for this long is forgotten.
const forgetAfter = 24 * time.Hour

// State is the passive health of all origins of the node. It is keyed by site and origin id, so that it survives
// changes of the configuration, and holds only origins that failed: with none of them, asking costs one atomic read.
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

	mu      sync.RWMutex
	origins map[originKey]*health
	swept   time.Time
}

// originKey names what is up or down.
type originKey struct {
	site, origin string
	// What is dialled in place of the origin's own address; the zero value for that.
	instead dialKey
}

type health struct {
	fails       uint32
	downUntil   time.Time
	lastFailure time.Time
	class       failure
}

// NewState makes a state in which every origin is up.
func NewState() *State {
	return &State{now: time.Now, origins: map[originKey]*health{}}
}

// down says whether an origin takes no traffic at the moment.
func (s *State) down(key originKey, now time.Time) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	h := s.origins[key]
	return h != nil && now.Before(h.downUntil)
}

func (s *State) succeed(key originKey) {
	if s.failed.Load() == 0 {
		return
	}
	s.mu.RLock()
	known := s.origins[key] != nil
	s.mu.RUnlock()
	if !known {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.origins, key)
	s.failed.Store(int64(len(s.origins)))
}

func (s *State) fail(key originKey, class failure, maxFails uint32, recovery time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	s.sweep(now)
	h := s.origins[key]
	if h == nil {
		h = &health{}
		s.origins[key] = h
	}
	s.failed.Store(int64(len(s.origins)))
	h.fails++
	h.lastFailure, h.class = now, class
	if h.fails >= maxFails {
		h.fails = maxFails
		h.downUntil = now.Add(recovery)
	}
}

// sweep forgets old failures, also those of origins that no longer exist.
func (s *State) sweep(now time.Time) {
	if now.Sub(s.swept) < forgetAfter/24 {
		return
	}
	s.swept = now
	for key, h := range s.origins {
		if now.Sub(h.lastFailure) > forgetAfter {
			delete(s.origins, key)
		}
	}
}
