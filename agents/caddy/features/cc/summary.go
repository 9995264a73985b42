package cc

import "sync/atomic"

const (
	// Candidates kept for the heaviest paths and clients of a site.
	candidates = 64
	// Of which each may have so many while all sites together have as many as there may be.
	leastCandidates = 4
	maxCandidates   = 1 << 18
)

// summary finds the heaviest keys of a stream (Space-Saving): a new key takes the place of the lightest and inherits its
// weight, so that a key which comes often enough cannot be kept out.
type summary[K comparable, V any] struct {
	keys  []K
	slots []slot[V]
}

type slot[V any] struct {
	value V
	// Decides who gives way; too high by what was inherited.
	weight uint32
	// Requests since the key is in: never too high. All fades with weight, fresh is since the last drain.
	all, fresh uint32
}

// hit counts a known key. Keys that come often move to the front.
func (s *summary[K, V]) hit(key K) bool {
	for i := range s.keys {
		if s.keys[i] != key {
			continue
		}
		at := &s.slots[i]
		at.weight++
		at.all++
		at.fresh++
		if i > 0 && at.weight > s.slots[i-1].weight {
			s.keys[i], s.keys[i-1] = s.keys[i-1], s.keys[i]
			s.slots[i], s.slots[i-1] = s.slots[i-1], s.slots[i]
		}
		return true
	}
	return false
}

// add takes in a key that hit does not know. total counts the candidates of all sites.
func (s *summary[K, V]) add(key K, value V, total *atomic.Int64) {
	if n := len(s.keys); n < leastCandidates || n < candidates && total.Load() < maxCandidates {
		total.Add(1)
		s.keys = append(s.keys, key)
		s.slots = append(s.slots, slot[V]{value, 1, 1, 1})
		return
	}
	lightest := len(s.slots) - 1
	for i := range s.slots {
		if s.slots[i].weight < s.slots[lightest].weight {
			lightest = i
		}
	}
	s.keys[lightest] = key
	s.slots[lightest] = slot[V]{value, s.slots[lightest].weight + 1, 1, 1}
}

// fade halves everything, so that the past counts less than the present.
func (s *summary[K, V]) fade() {
	for i := range s.slots {
		s.slots[i].weight /= 2
		s.slots[i].all /= 2
	}
}
