package store

import (
	"math/rand/v2"
	"sync"
)

// Key is the hash of a URL with its site, and the one of all else that distinguishes responses.
type Key struct{ URL, Variant uint64 }

// entry is what the index knows of an object.
type entry struct {
	url, variant, id, size uint64
	// Check sum of the head.
	sum uint32
	// Unix time in seconds of the last use.
	used uint32
	// The next of the same bucket, or of the free ones; 0 for none.
	next  uint32
	vary  uint16
	flags uint8
}

const (
	// The body was written or checked by this process.
	checked = 1 << iota
	// The slot is in use.
	live
)

const (
	shards = 64
	// slab is how many entries are made at once.
	slab = 512
	// maxVariants is how many responses of one URL are kept; the one least recently used leaves for another.
	maxVariants = 256
)

// shard is a part of the index.
type shard struct {
	mu    sync.RWMutex
	heads []uint32
	slabs []*[slab]entry
	// Slot 0 stands for none.
	made, count int
	free        uint32
}

func (s *shard) at(slot uint32) *entry { return &s.slabs[slot/slab][slot%slab] }

func (s *shard) bucket(url uint64) *uint32 { return &s.heads[(url>>6)&uint64(len(s.heads)-1)] }

// index is safe for concurrent use.
type index struct{ shards [shards]shard }

func (x *index) of(url uint64) *shard { return &x.shards[url%shards] }

// find returns the newest entry of a URL whose variant is the one that variant computes for its list of varying fields. Its
// time of use becomes now.
func (x *index) find(url uint64, now uint32, variant func(vary uint16) uint64) (found entry, ok bool) {
	s := x.of(url)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.heads) == 0 {
		return found, false
	}
	var at *entry
	for slot := *s.bucket(url); slot != 0; {
		e := s.at(slot)
		if e.url == url && (at == nil || e.id > at.id) && e.variant == variant(e.vary) {
			at = e
		}
		slot = e.next
	}
	if at == nil {
		return found, false
	}
	at.used = now
	return *at, true
}

// put adds an entry, and returns those whose place it takes: the same key, or the variants of a URL beyond the bound. It returns
// the entry itself where that is not added: because it is older, or because wrong says so; nil never does. Whoever makes that
// true and then removes the URL leaves nothing of it.
func (x *index) put(e entry, wrong func() bool) (replaced []entry) {
	s := x.of(e.url)
	s.mu.Lock()
	defer s.mu.Unlock()
	if wrong != nil && wrong() {
		return []entry{e}
	}
	if s.count >= len(s.heads) {
		s.grow()
	}
	variants, oldest := 0, uint32(0)
	for slot := *s.bucket(e.url); slot != 0; {
		old := s.at(slot)
		next := old.next
		if old.url == e.url {
			if old.variant == e.variant && old.vary == e.vary {
				if old.id > e.id {
					// What was read from disk is older than what was stored since.
					return []entry{e}
				}
				replaced = append(replaced, *old)
				s.remove(slot)
			} else if variants++; oldest == 0 || old.used < s.at(oldest).used {
				oldest = slot
			}
		}
		slot = next
	}
	if variants >= maxVariants {
		replaced = append(replaced, *s.at(oldest))
		s.remove(oldest)
	}
	slot := s.free
	if slot != 0 {
		s.free = s.at(slot).next
	} else {
		if s.made%slab == 0 {
			s.slabs = append(s.slabs, new([slab]entry))
			if s.made == 0 {
				s.made = 1
			}
		}
		slot = uint32(s.made)
		s.made++
	}
	head := s.bucket(e.url)
	e.next, e.flags = *head, e.flags|live
	*s.at(slot), *head = e, slot
	s.count++
	return replaced
}

// remove takes a slot out of its bucket. The caller holds the lock.
func (s *shard) remove(slot uint32) {
	e := s.at(slot)
	for link := s.bucket(e.url); *link != 0; link = &s.at(*link).next {
		if *link == slot {
			*link = e.next
			break
		}
	}
	*e = entry{next: s.free}
	s.free = slot
	s.count--
}

func (s *shard) grow() {
	s.heads = make([]uint32, max(len(s.heads)*2, 16))
	for slot := uint32(1); slot < uint32(s.made); slot++ {
		if e := s.at(slot); e.flags&live != 0 {
			head := s.bucket(e.url)
			e.next, *head = *head, slot
		}
	}
}

// change has f change the entry with an id, or removes it where f returns false.
func (x *index) change(url, id uint64, f func(*entry) (keep bool)) (was entry, ok bool) {
	s := x.of(url)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.heads) == 0 {
		return was, false
	}
	for slot := *s.bucket(url); slot != 0; slot = s.at(slot).next {
		e := s.at(slot)
		if e.url != url || e.id != id {
			continue
		}
		was = *e
		if !f(e) {
			s.remove(slot)
		}
		return was, true
	}
	return was, false
}

// removeURL removes all entries of a URL.
func (x *index) removeURL(url uint64) (removed []entry) {
	s := x.of(url)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.heads) == 0 {
		return nil
	}
	for slot := *s.bucket(url); slot != 0; {
		e := s.at(slot)
		next := e.next
		if e.url == url {
			removed = append(removed, *e)
			s.remove(slot)
		}
		slot = next
	}
	return removed
}

// sample returns the entry least recently used of some random ones.
func (x *index) sample(n int) (found entry, ok bool) {
	for range n * 4 {
		s := &x.shards[rand.IntN(shards)]
		s.mu.RLock()
		if s.made > 1 {
			if e := s.at(1 + rand.Uint32N(uint32(s.made-1))); e.flags&live != 0 {
				if n--; !ok || e.used < found.used {
					found, ok = *e, true
				}
			}
		}
		s.mu.RUnlock()
		if n == 0 {
			break
		}
	}
	if !ok {
		return x.any()
	}
	return found, ok
}

// any returns the first entry from a random shard on, for an index that has almost none.
func (x *index) any() (entry, bool) {
	from := rand.IntN(shards)
	for i := range shards {
		s := &x.shards[(from+i)%shards]
		s.mu.RLock()
		for slot := uint32(1); slot < uint32(s.made); slot++ {
			if e := *s.at(slot); e.flags&live != 0 {
				s.mu.RUnlock()
				return e, true
			}
		}
		s.mu.RUnlock()
	}
	return entry{}, false
}

// each copies the entries of one shard after another.
func (x *index) each(yield func(entries []entry) bool) {
	var list []entry
	for i := range x.shards {
		s := &x.shards[i]
		s.mu.RLock()
		list = list[:0]
		for slot := uint32(1); slot < uint32(s.made); slot++ {
			if e := s.at(slot); e.flags&live != 0 {
				list = append(list, *e)
			}
		}
		s.mu.RUnlock()
		if !yield(list) {
			return
		}
	}
}

func (x *index) len() (n int) {
	for i := range x.shards {
		s := &x.shards[i]
		s.mu.RLock()
		n += s.count
		s.mu.RUnlock()
	}
	return n
}
