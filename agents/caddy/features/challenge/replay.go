package challenge

import (
	"hash/maphash"
	"sync"
)

const (
	replayShards   = 1024
	replayBucket   = 8
	replayCellSize = 8
	// A shard starts with this many buckets and doubles until the limit.
	replayFirstBuckets = 8
	// Minutes a mark can lie ahead: the life of a token, and what clocks of nodes may differ by.
	replayAheadMinutes = (tokenSeconds + maxAheadSeconds) / 60
)

// DefaultReplayBytes holds 2.4 million answers of five minutes, that is 8,000 a second, at little more than half full.
const DefaultReplayBytes = 40 << 20

// replayStore remembers which tokens were answered until they expire. A mark is a cell of eight bytes: 48 bits of a keyed
// fingerprint of the nonce and the minute in which the token expires. Marks of one minute are a generation; a generation
// that is over needs no clearing, its cells are simply free again. A mark lives in one of two buckets, each a cache
// line, whichever has more room: so a store fills evenly, and nothing is ever pushed out to make room.
type replayStore struct {
	seed       maphash.Seed
	maxBuckets int
	shards     [replayShards]replayShard
}

type replayShard struct {
	mu    sync.Mutex
	cells []uint64
	used  int
	// The last minute of any mark here.
	last int64
	_    [64]byte
}

func newReplayStore(maxBytes int) *replayStore {
	s := &replayStore{seed: maphash.MakeSeed(), maxBuckets: 1}
	for s.maxBuckets*2*replayBucket*replayCellSize*replayShards <= maxBytes {
		s.maxBuckets *= 2
	}
	return s
}

// spending is what marking a token came to.
type spending uint8

const (
	// spentNow is the first answer to a token.
	spentNow spending = iota
	// spentBefore is a later one.
	spentBefore
	// spentUnknown says that the store is full: the token is not marked.
	spentUnknown
)

// spend marks a token as answered. Of several at once with one nonce, exactly one is the first.
func (s *replayStore) spend(nonce []byte, expires, now int64) spending {
	h := maphash.Bytes(s.seed, nonce)
	shard := &s.shards[h>>54]
	minute, today := expires/60, now/60
	cell := h<<16 | uint64(uint16(minute))

	shard.mu.Lock()
	defer shard.mu.Unlock()
	if shard.last < today {
		// Everything here is over.
		shard.cells, shard.used = nil, 0
	}
	if shard.cells == nil {
		shard.cells = make([]uint64, min(replayFirstBuckets, s.maxBuckets)*replayBucket)
	}
	if shard.holds(cell) {
		return spentBefore
	}
	if most := s.maxBuckets * replayBucket; len(shard.cells) < most && shard.used*2 >= len(shard.cells) {
		shard.rebuild(today)
	}
	for !shard.put(cell, today) {
		if len(shard.cells) >= s.maxBuckets*replayBucket {
			return spentUnknown
		}
		shard.grow(today)
	}
	shard.last = max(shard.last, minute)
	return spentNow
}

// buckets returns the two buckets in which a mark may be.
func (s *replayShard) buckets(cell uint64) (a, b []uint64) {
	mask := uint64(len(s.cells)/replayBucket - 1)
	i, j := (cell>>16&mask)*replayBucket, (cell>>32&mask)*replayBucket
	return s.cells[i : i+replayBucket], s.cells[j : j+replayBucket]
}

func (s *replayShard) holds(cell uint64) bool {
	a, b := s.buckets(cell)
	for i := range replayBucket {
		if a[i] == cell || b[i] == cell {
			return true
		}
	}
	return false
}

// put writes a mark into the emptier of its buckets; false says that both are full.
func (s *replayShard) put(cell uint64, today int64) bool {
	a, b := s.buckets(cell)
	free, best := -1, a
	freeA, countA := roomIn(a, today)
	freeB, countB := roomIn(b, today)
	if free = freeA; countB > countA {
		free, best = freeB, b
	}
	if free < 0 {
		return false
	}
	best[free] = cell
	s.used++
	return true
}

func roomIn(bucket []uint64, today int64) (free, count int) {
	free = -1
	for i, cell := range bucket {
		if !isLive(cell, today) {
			free = i
			count++
		}
	}
	return free, count
}

// isLive reports whether the minute of a mark is not over. Minutes wrap around after 45 days; a mark that old would
// take room for some minutes more.
func isLive(cell uint64, today int64) bool {
	return cell != 0 && uint16(cell)-uint16(today) <= replayAheadMinutes
}

// rebuild makes room ahead of need when at least half of the cells hold live marks.
func (s *replayShard) rebuild(today int64) {
	live := 0
	for _, cell := range s.cells {
		if isLive(cell, today) {
			live++
		}
	}
	if s.used = live; live*2 >= len(s.cells) {
		s.grow(today)
	}
}

// grow doubles the shard. A mark that finds no place in the larger one is lost, which cannot be told from chance: both
// of its buckets would have to be full at a quarter of the load.
func (s *replayShard) grow(today int64) {
	old := s.cells
	s.cells, s.used = make([]uint64, 2*len(old)), 0
	for _, cell := range old {
		if isLive(cell, today) {
			s.put(cell, today)
		}
	}
}
