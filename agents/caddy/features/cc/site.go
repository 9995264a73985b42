package cc

import (
	"hash/maphash"
	"math/rand/v2"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"
)

const (
	maxStripes = 8
	// Longer paths, and those with odd characters, are no candidates: they still count for their site.
	maxPathBytes = 512
)

// Site is what is counted for a site while requests come or a level is raised.
type Site struct {
	id     string
	number uint32
	total  *atomic.Int64
	// nil while everything is normal.
	published atomic.Pointer[published]

	// The first `used` stripes are in use. There are as many as processors get in each other's way.
	stripes [maxStripes]atomic.Pointer[stripe]
	used    atomic.Int32

	originAnswers, originErrors atomic.Uint64

	// Of the evaluation, under its lock.
	state siteState
}

// published is what requests read. It is immutable.
type published struct {
	level Level
	// Escalated paths only.
	paths map[string]Level
}

// stripe is a share of what is counted for a site.
type stripe struct {
	mu sync.Mutex
	// Candidates of all sites.
	total    *atomic.Int64
	requests uint64
	paths    summary[uint64, string]
	clients  summary[network, struct{}]
	// Keeps neighbours off one cache line.
	_ [32]byte
}

func newSite(id string, number uint32, total *atomic.Int64) *Site {
	s := &Site{id: id, number: number, total: total}
	s.stripes[0].Store(&stripe{total: total})
	s.used.Store(1)
	return s
}

var (
	pathSeed    = maphash.MakeSeed()
	stripeLimit = int32(min(maxStripes, runtime.GOMAXPROCS(0)))
)

// count adds a request; a client that is exempt from bans is none to name as heavy either.
func (s *Site) count(n network, named bool, path string) {
	hash := maphash.String(pathSeed, path)
	st := s.lock()
	defer st.mu.Unlock()
	st.requests++
	if !st.paths.hit(hash) {
		if candidate, ok := candidateOf(path); ok {
			st.paths.add(hash, candidate, st.total)
		}
	}
	if named && !st.clients.hit(n) {
		st.clients.add(n, struct{}{}, st.total)
	}
}

// lock locks one of the stripes. Meeting another processor there is what makes one more.
func (s *Site) lock() *stripe {
	used := s.used.Load()
	at := int32(0)
	if used > 1 {
		at = rand.Int32N(used)
	}
	st := s.stripes[at].Load()
	if st.mu.TryLock() {
		return st
	}
	if used < stripeLimit && s.stripes[used].CompareAndSwap(nil, &stripe{total: s.total}) {
		s.used.Store(used + 1)
	}
	st.mu.Lock()
	return st
}

// candidateOf copies a path, which may be a part of something large, unless it is none to name.
func candidateOf(path string) (string, bool) {
	if len(path) > maxPathBytes {
		return "", false
	}
	for i := 0; i < len(path); i++ {
		if c := path[i]; c < 0x20 || c == 0x7f || c == '?' {
			return "", false
		}
	}
	if !utf8.ValidString(path) {
		// Reports carry text only.
		return "", false
	}
	return strings.Clone(path), true
}

// Origin counts the outcome of a proxied request: the status of the origin's answer, 0 when there was none.
func (s *Site) Origin(status int) {
	s.originAnswers.Add(1)
	if status == 0 || status >= http.StatusInternalServerError {
		s.originErrors.Add(1)
	}
}

// forget gives back the room of a site that is no longer followed.
func (s *Site) forget() {
	for i := range s.used.Load() {
		st := s.stripes[i].Load()
		st.mu.Lock()
		st.total.Add(-int64(len(st.paths.keys) + len(st.clients.keys)))
		st.paths, st.clients = summary[uint64, string]{}, summary[network, struct{}]{}
		// Requests that are still on their way to it count nowhere.
		st.total = new(atomic.Int64)
		st.mu.Unlock()
	}
}

// drain calls back with what was counted since the last call and returns the number of requests.
func (s *Site) drain(fade bool, path func(path string, n uint32)) uint64 {
	requests := uint64(0)
	for i := range s.used.Load() {
		st := s.stripes[i].Load()
		st.mu.Lock()
		requests += st.requests
		st.requests = 0
		for j := range st.paths.slots {
			if at := &st.paths.slots[j]; at.fresh > 0 {
				path(at.value, at.fresh)
				at.fresh = 0
			}
		}
		if fade {
			st.paths.fade()
			st.clients.fade()
		}
		st.mu.Unlock()
	}
	return requests
}

// siteState is what the evaluation knows of a site.
type siteState struct {
	ladder                            ladder
	requests, origins, errors         window
	seenOriginAnswers, seenOriginErrs uint64
	paths                             map[string]*pathState
	// When the state was last told, and whether it was calm then.
	told     time.Duration
	toldCalm bool
}

// pathState is a candidate path, or one that is escalated.
type pathState struct {
	ladder   ladder
	requests window
}
