package waf

import "sync"

const (
	// What is told of a site of one minute: requests that were attacks, and others in which something matched.
	maxAttacksTold = 10
	maxOthersTold  = 2
	// What is told of all sites beside the first attack and the first other of each: however much is going on at others, each
	// site is heard of.
	maxFurtherTold = 600
	// Sites that are remembered; those beyond are told nothing of.
	maxSitesTold = 5000
	// A clock that goes back as many minutes was set: no request takes so long.
	maxBack = 5
)

// sample chooses the requests that events tell of: the first of each minute.
type sample struct {
	mu      sync.Mutex
	minute  int64
	further int
	sites   map[string]*told
}

type told struct{ attacks, others int }

// takes reports whether an event tells of a request.
func (s *sample) takes(siteID string, minute int64, attack bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	// A request that began earlier and took its time is one of this minute.
	if s.sites == nil || minute > s.minute || minute < s.minute-maxBack {
		s.minute, s.further, s.sites = minute, 0, map[string]*told{}
	}
	of := s.sites[siteID]
	if of == nil {
		if len(s.sites) == maxSitesTold {
			return false
		}
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
	if *taken > 0 {
		if s.further == maxFurtherTold {
			return false
		}
		s.further++
	}
	*taken++
	return true
}
