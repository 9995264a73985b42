package cache

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"edge.svc/caddy/features/cache/store"
)

var (
	errPanicked     = errors.New("the fill panicked")
	errOtherVersion = errors.New("the origin validated another version")
)

// fills are those under way that others may join, by the text of their key.
type fills struct {
	mu    sync.Mutex
	byKey map[string]*fill
	// How often a URL was changed by a request, by a part of its hash: what a fill fetched before is not stored.
	changes [1 << 12]atomic.Uint32
}

func (s *fills) changesOf(url uint64) *atomic.Uint32 { return &s.changes[url%uint64(len(s.changes))] }

// join returns the fill of a key, or one that lead makes, which takes the place of a fill that joinable refuses; leads says which.
func (s *fills) join(key string, joinable func(*fill) bool, lead func() *fill) (f *fill, leads bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.byKey[key]; f != nil && joinable(f) {
		return f, false
	}
	f = lead()
	s.byKey[key] = f
	return f, true
}

func (s *fills) remove(f *fill) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byKey[f.key.text] == f {
		delete(s.byKey, f.key.text)
	}
}

// doom has the fills of a URL stored no more, and joined by nobody.
func (s *fills) doom(url uint64) { s.changesOf(url).Add(1) }

func (s *fills) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.byKey)
}

// markLasts is how long requests for a key do not wait for one another after a response that is not stored.
const markLasts = 120 * time.Second

// markers remember keys whose response was not stored. A key may take the place of another.
type markers struct{ slots [1 << 14]atomic.Uint64 }

func (m *markers) slot(k store.Key) (at *atomic.Uint64, mark uint64) {
	h := k.URL ^ k.Variant
	return &m.slots[h%uint64(len(m.slots))], h >> 32 << 32
}

// mark remembers a key from now on. Times are in seconds.
func (m *markers) mark(k store.Key, now time.Time) {
	at, mark := m.slot(k)
	at.Store(mark | uint64(uint32(now.Unix())))
}

func (m *markers) marked(k store.Key, now time.Time) bool {
	at, mark := m.slot(k)
	v := at.Load()
	age := now.Unix() - int64(uint32(v))
	return v != 0 && v>>32<<32 == mark && age >= 0 && age < int64(markLasts/time.Second)
}

func (m *markers) clear(k store.Key) {
	at, _ := m.slot(k)
	at.Store(0)
}
