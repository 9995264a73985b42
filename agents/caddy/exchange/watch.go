package exchange

import (
	"sync"
	"sync/atomic"
	"time"
)

// watch is a part of what looks for writes that wait for their clients. One goroutine looks at all parts, as a timer for
// each response would cost more than a short response does. Parts keep requests from waiting for one another.
type watch struct {
	mu    sync.Mutex
	first *behind
	_     [48]byte
}

// idleLooks is how often the goroutine finds nothing to look at before it ends.
const idleLooks = 50

var (
	watches   [16]watch
	nextWatch atomic.Uint32
	watching  atomic.Bool
)

func (w *watch) enter(b *behind) {
	w.mu.Lock()
	b.older = w.first
	if b.older != nil {
		b.older.newer = b
	}
	w.first = b
	w.mu.Unlock()
	if !watching.Load() && watching.CompareAndSwap(false, true) {
		go lookAround()
	}
}

func (w *watch) leave(b *behind) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if b.newer != nil {
		b.newer.older = b.older
	} else {
		w.first = b.older
	}
	if b.older != nil {
		b.older.newer = b.newer
	}
	b.older, b.newer = nil, nil
}

func lookAround() {
	for idle := 0; idle < idleLooks; idle++ {
		time.Sleep(slowWrite)
		if lookOnce() {
			idle = 0
		}
	}
	watching.Store(false)
	// Whoever came meanwhile may have found the goroutine at work.
	if lookOnce() && watching.CompareAndSwap(false, true) {
		go lookAround()
	}
}

// lookOnce reports whether there was anything to look at.
func lookOnce() (found bool) {
	for i := range watches {
		w := &watches[i]
		w.mu.Lock()
		for b := w.first; b != nil; b = b.older {
			found = true
			b.look()
		}
		w.mu.Unlock()
	}
	return found
}
