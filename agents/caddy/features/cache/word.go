package cache

import (
	"sync/atomic"

	"edge.svc/caddy/exchange"
)

// Word is what X-Cache says.
type Word uint8

// The words.
const (
	Bypass Word = iota
	Miss
	Hit
	Expired
	Stale
	Updating
	Revalidated
	words
)

var wordNames = [words]string{"BYPASS", "MISS", "HIT", "EXPIRED", "STALE", "UPDATING", "REVALIDATED"}

var wordValues = func() (values [words][]string) {
	for w, name := range wordNames {
		values[w] = []string{name}
	}
	return values
}()

// String is the word.
func (w Word) String() string { return wordNames[w] }

// state is the fact that the word becomes.
func (w Word) state() exchange.CacheState {
	return exchange.CacheState{
		Word: wordNames[w],
		Hit:  w == Hit || w == Stale || w == Updating || w == Revalidated,
		Miss: w == Miss || w == Expired,
	}
}

// counters count responses by their word since the process began.
type counters struct{ words [words]atomic.Uint64 }

func (c *counters) add(w Word) { c.words[w].Add(1) }
