package exchange

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// MovableSource is a source whose copy another goroutine can take over while CopyTo waits in its sink. So a client that
// does not read frees what the body comes from.
type MovableSource interface {
	Source
	// MayMove reports whether that is possible. It is asked once, before CopyTo.
	MayMove() bool
	// Resume copies what follows the Write or Flush in which CopyTo waits, and gives up what the body comes from. CopyTo
	// gets ErrMoved from its sink, returns it, and touches nothing of the source.
	Resume(sink Sink) error
	// Interrupt makes Resume fail soon.
	Interrupt()
}

// ErrMoved says that another goroutine copies the rest of a body.
var ErrMoved = errors.New("another goroutine copies the rest of the body")

var errClientGone = errors.New("the client takes no more of the response")

const (
	// A write that takes so long, or up to twice as long, waits for the client.
	slowWrite = 20 * time.Millisecond
	// What is kept of a response: in pieces, and in all. One piece needs no memory of the budget.
	behindPiece = 32 << 10
	maxBehind   = 2 << 20
)

var behindPieces = sync.Pool{New: func() any { return new([behindPiece]byte) }}

// behind is the sink between a source and the client. Writes pass at once. If one waits for the client, the rest of the
// body is read in another goroutine and kept, and the waiting one writes what is kept. It is pooled.
type behind struct {
	next   Sink
	source MovableSource
	memory Memory
	// Another goroutine took over.
	moved atomic.Bool
	// Counts beginnings and ends of writes: odd while one is under way. Whoever takes over ends it as well.
	turns atomic.Uint64
	// The part of the watch that it is in, its neighbours there, and the turn at the last look.
	watch        *watch
	older, newer *behind
	seen         uint64

	mu sync.Mutex
	// There are more bytes to write, or no more will come; there is room for more.
	more, room sync.Cond
	pieces     []behindBytes
	// Pieces that the budget counts.
	counted int
	ended   bool
	gone    bool
	err     error
	// Why the write failed in which another goroutine took over.
	failed error
}

type behindBytes struct {
	room *[behindPiece]byte
	n    int
}

var behinds = sync.Pool{New: func() any {
	b := &behind{watch: &watches[nextWatch.Add(1)%uint32(len(watches))]}
	b.more.L, b.room.L = &b.mu, &b.mu
	return b
}}

// copyBehind copies a body to the client, by way of another goroutine if the client is slow.
func (x *Exchange) copyBehind(source MovableSource, client Sink) error {
	b := behinds.Get().(*behind)
	b.next, b.source, b.memory = client, source, x.Memory
	returned := false
	defer func() {
		if !returned {
			b.abandon()
		}
	}()
	err := b.watched(source)
	if err != nil && errors.Is(err, ErrMoved) {
		err = b.drain()
	}
	returned = true
	b.next, b.source, b.memory = nil, nil, nil
	behinds.Put(b)
	return err
}

func (b *behind) watched(source MovableSource) error {
	b.watch.enter(b)
	defer b.watch.leave(b)
	return source.CopyTo(b)
}

// abandon is for a panic in a write: whoever took over must end.
func (b *behind) abandon() {
	if !b.moved.Load() {
		return
	}
	b.mu.Lock()
	b.leave()
	b.mu.Unlock()
	_ = b.drain()
}

// Write passes bytes on.
func (b *behind) Write(p []byte) error {
	turn := b.turns.Add(1)
	err := b.next.Write(p)
	return b.end(turn, err)
}

// Flush passes the wish on.
func (b *behind) Flush() error {
	turn := b.turns.Add(1)
	err := b.next.Flush()
	return b.end(turn, err)
}

func (b *behind) end(turn uint64, err error) error {
	if b.turns.CompareAndSwap(turn, turn+1) {
		return err
	}
	if err != nil {
		b.mu.Lock()
		b.failed = err
		b.leave()
		b.mu.Unlock()
	}
	return ErrMoved
}

// look has another goroutine take over if the write of the last look is still under way.
func (b *behind) look() {
	turn := b.turns.Load()
	if turn&1 == 1 && b.seen == turn && b.turns.CompareAndSwap(turn, turn+1) {
		b.moved.Store(true)
		Go("reading a response ahead of its client", func() { b.finish(b.source.Resume(ahead{b})) }, func() { b.finish(errPanicked) })
	}
	b.seen = turn
}

var errPanicked = errors.New("reading a response panicked")

func (b *behind) finish(err error) {
	b.mu.Lock()
	b.ended, b.err = true, err
	b.mu.Unlock()
	b.more.Signal()
}

// leave says that the client takes no more. The caller holds the lock.
func (b *behind) leave() {
	if !b.gone {
		b.gone = true
		if !b.ended {
			b.source.Interrupt()
		}
		b.room.Signal()
	}
}

// drain writes what is kept, until the source ended. It returns the failure of either.
func (b *behind) drain() error {
	flushed := false
	b.mu.Lock()
	failed := b.failed
	for {
		switch {
		case len(b.pieces) > 0:
			piece := b.pieces[0]
			b.pieces = b.pieces[1:]
			if !b.gone {
				b.mu.Unlock()
				failed = b.next.Write(piece.room[:piece.n])
				flushed = false
				b.mu.Lock()
			}
			if failed == nil {
				// Else a server of HTTP/2 may still be writing it.
				behindPieces.Put(piece.room)
			}
			b.uncount()
			b.room.Signal()
		case b.ended:
			if failed == nil {
				failed = b.err
			}
			b.pieces, b.ended, b.gone, b.err, b.failed = nil, false, false, nil, nil
			b.moved.Store(false)
			b.mu.Unlock()
			return failed
		case !flushed && !b.gone:
			b.mu.Unlock()
			failed = b.next.Flush()
			flushed = true
			b.mu.Lock()
		default:
			b.more.Wait()
		}
		if failed != nil {
			b.leave()
		}
	}
}

// uncount gives the memory of pieces back that are not there any more.
func (b *behind) uncount() {
	if b.counted > len(b.pieces) {
		b.counted--
		if b.memory != nil {
			b.memory.Give(behindPiece)
		}
	}
}

// ahead is the sink that keeps bytes for drain.
type ahead struct{ b *behind }

// Write waits while there is no room.
func (k ahead) Write(p []byte) error {
	b := k.b
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(p) > 0 {
		if b.gone {
			return errClientGone
		}
		if last := len(b.pieces) - 1; last >= 0 && b.pieces[last].n < behindPiece {
			piece := &b.pieces[last]
			n := copy(piece.room[piece.n:], p)
			piece.n, p = piece.n+n, p[n:]
			b.more.Signal()
			continue
		}
		if !b.hasRoom() {
			b.room.Wait()
			continue
		}
		b.pieces = append(b.pieces, behindBytes{behindPieces.Get().(*[behindPiece]byte), 0})
	}
	return nil
}

// hasRoom reports whether one more piece may be kept, and counts it.
func (b *behind) hasRoom() bool {
	if len(b.pieces) == 0 {
		return true
	}
	if len(b.pieces) >= maxBehind/behindPiece || b.memory != nil && !b.memory.TakeSpare(behindPiece) {
		return false
	}
	b.counted++
	return true
}

// Flush has nothing to do: what is kept is written at once.
func (k ahead) Flush() error {
	if k.b.isGone() {
		return errClientGone
	}
	return nil
}

func (b *behind) isGone() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.gone
}
