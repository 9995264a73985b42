package store

import (
	"sync/atomic"
	"syscall"
	"time"
)

// doorkeeper remembers keys that were asked for once, approximately and not for ever.
type doorkeeper struct{ slots [1 << 15]atomic.Uint32 }

// again reports whether a key was seen before, and remembers it.
func (d *doorkeeper) again(k Key) bool {
	h := k.URL ^ k.Variant*0x9e3779b97f4a7c15
	mark := uint32(h>>32) | 1
	return d.slots[h%uint64(len(d.slots))].Swap(mark) == mark
}

func (s *Store) wakeEviction() {
	select {
	case s.evict <- struct{}{}:
	default:
	}
}

const (
	// The index is sampled for the object that leaves.
	samples = 16
	// Eviction goes on until there is room for more, in parts per hundred of the bound.
	evictTo = 98
	// How many objects leave before the log, and other processes, are looked at.
	evictAtOnce = 4096
)

// evictAll deletes the objects least recently used, approximately, once the files have more than they may.
func (s *Store) evictAll() {
	most := s.maxBytes.Load()
	if s.used.Load() <= most {
		return
	}
	for range evictAtOnce {
		if s.used.Load() <= most/100*evictTo || !s.evictOne() {
			return
		}
	}
	s.wakeEviction()
}

func (s *Store) evictOne() bool {
	e, ok := s.index.sample(samples)
	if !ok || !s.owns() {
		return false
	}
	if s.drop(e.url, e.id) {
		s.counts.Evicted.Add(1)
	}
	return true
}

// minFree is how much of a disk stays free, in bytes: 5 % or 1 GiB, whichever is less.
func minFree(total int64) int64 { return min(total/20, 1<<30) }

func diskSpace(dir string) (total, free int64, err error) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		return 0, 0, err
	}
	return int64(st.Blocks) * st.Bsize, int64(st.Bavail) * st.Bsize, nil
}

// lookAtDisk sees how much may be written until it looks again; it stops storing while the disk has too little room, and evicts up to 256 MiB for each look.
func (s *Store) lookAtDisk() {
	total, free, err := s.free(s.dir)
	if err != nil {
		return
	}
	missing := minFree(total) - free
	s.room.Store(-missing)
	s.tight.Store(missing > 0)
	for until := s.used.Load() - min(missing, 256<<20); missing > 0 && s.used.Load() > until; {
		if !s.evictOne() {
			return
		}
	}
}

// removeInactive deletes what nobody asked for.
func (s *Store) removeInactive() {
	before := s.now().Add(-time.Duration(s.inactive.Load())).Unix()
	s.index.each(func(entries []entry) bool {
		for i := range entries {
			if int64(entries[i].used) < before && s.drop(entries[i].url, entries[i].id) {
				s.counts.Inactive.Add(1)
			}
		}
		return s.owns()
	})
}

func (s *Store) owns() bool { return s.owned.Load() }
