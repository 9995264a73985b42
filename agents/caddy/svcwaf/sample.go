package svcwaf

import "sync"

// What is told of one minute: requests of a site that were attacks, others of it in which something matched, and requests
// of all sites.
const (
	maxAttacksTold = 10
	maxOthersTold  = 2
	maxTold        = 60
)

// sample chooses the requests that events tell of: the first of each minute. What it remembers is bounded by what it takes.
type sample struct {
	mu     sync.Mutex
	minute int64
	told   int
	sites  map[string]*told
}

type told struct{ attacks, others int }

// takes reports whether an event tells of a request.
func (s *sample) takes(siteID string, minute int64, attack bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	// A request that began earlier and took its time is one of this minute.
	if s.sites == nil || minute > s.minute {
		s.minute, s.told, s.sites = minute, 0, map[string]*told{}
	}
	if s.told == maxTold {
		return false
	}
	of := s.sites[siteID]
	if of == nil {
		of = new(told)
		s.sites[siteID] = of
	}
	taken, most := &of.others, maxOthersTold
	if attack {
		taken, most = &of.attacks, maxAttacksTold
	}
	if *taken == most {
		return false
	}
	*taken++
	s.told++
	return true
}
