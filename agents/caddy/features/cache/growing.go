package cache

import (
	"context"
	"errors"
	"sync"

	"edge.svc/caddy/exchange"
	"edge.svc/caddy/features/cache/store"
)

const (
	piece = 64 << 10
	// maxBehind is how much of a body is in memory where the disk takes no more of it.
	maxBehind = 1 << 20
	// maxAbandoned is how much may be left of a response that nobody waits for, for it to be stored nonetheless.
	maxAbandoned = 16 << 20
)

var (
	pieces       = sync.Pool{New: func() any { return new([piece]byte) }}
	errAbandoned = errors.New("nobody waits for the response")
)

// growing is the body of a response while it comes. Its origin writes at its own pace into a file, and each client reads at
// its own. Where the disk fails, the rest passes through memory, at the pace of the slowest client.
type growing struct {
	writer *store.Writer
	// expected is the length that the origin named, -1 for none.
	expected int64
	cancel   context.CancelFunc

	mu   sync.Mutex
	more sync.Cond
	// length is how much came, onDisk how much of it the writer has. What follows from base on is in tail.
	length, onDisk, base int64
	tail                 []byte
	failing              bool
	ended                bool
	err                  error
	readers              map[*reader]struct{}
	// The client that the fill was begun for has not said what it reads; the fill goes on without any client.
	expects, behind bool
	// How much came when the last client left, -1 while there is one.
	abandonedAt int64
	// Nothing more comes: the writer can close once nobody reads.
	finished, released bool
}

func newGrowing(w *store.Writer, expected int64, cancel context.CancelFunc) *growing {
	g := &growing{writer: w, expected: expected, cancel: cancel, readers: map[*reader]struct{}{}, abandonedAt: -1, expects: true}
	g.more.L = &g.mu
	return g
}

// Write takes a part of the body from the origin.
func (g *growing) Write(p []byte) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.hopeless() {
		return errAbandoned
	}
	if !g.failing {
		// Readers wait for the lock while the disk takes a piece of at most some 64 KiB.
		if err := g.writer.Write(p); err == nil {
			g.length += int64(len(p))
			g.onDisk, g.base = g.length, g.length
			g.more.Broadcast()
			return nil
		}
		g.failing = true
		g.writer.Abort()
	}
	for len(g.tail) > maxBehind && !g.hopeless() {
		g.more.Wait()
		g.trim()
	}
	if g.hopeless() {
		return errAbandoned
	}
	g.tail = append(g.tail, p...)
	g.length += int64(len(p))
	g.more.Broadcast()
	return nil
}

// Flush has nothing to do: what came can be read.
func (g *growing) Flush() error { return nil }

// hopeless reports whether nobody waits for the response, and it is not worth the rest. The caller holds the lock.
func (g *growing) hopeless() bool {
	switch {
	case len(g.readers) > 0 || g.expects:
		return false
	case g.failing:
		return true
	case g.behind:
		return false
	}
	if g.expected >= 0 {
		return g.expected-g.length > maxAbandoned
	}
	if g.abandonedAt < 0 {
		g.abandonedAt = g.length
	}
	return g.length-g.abandonedAt > maxAbandoned
}

// trim forgets what every reader has. The caller holds the lock.
func (g *growing) trim() {
	if len(g.readers) == 0 {
		return
	}
	least := g.length
	for r := range g.readers {
		least = min(least, r.at)
	}
	if n := least - g.base; n > 0 {
		g.tail = append(g.tail[:0], g.tail[n:]...)
		g.base = least
	}
}

// end says that no more comes.
func (g *growing) end(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err == nil && g.expected >= 0 && g.length != g.expected {
		err = errShort
	}
	g.ended, g.err = true, err
	g.more.Broadcast()
}

var errShort = errors.New("the response is shorter than its length")

// finish closes the writer once the last reader has left.
func (g *growing) finish() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.finished = true
	g.release()
}

// release closes the writer where nobody needs it any more. The caller holds the lock.
func (g *growing) release() {
	if g.finished && !g.expects && !g.released && len(g.readers) == 0 {
		g.released = true
		g.writer.Release()
	}
}

// settle says that the client that the fill was begun for reads, or does not. behind has the fill go on without any.
func (g *growing) settle(behind bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.expects, g.behind = false, behind
	if !g.ended && g.hopeless() {
		g.cancel()
	}
	g.release()
	g.more.Broadcast()
}

// read adds a client, which gets so many bytes from a place on, -1 for all that comes. It returns nil where what it asks for
// is in memory no more.
func (g *growing) read(from, length int64) *reader {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.released || from < g.base && g.base > g.onDisk {
		return nil
	}
	r := &reader{g: g, at: from, left: length}
	g.readers[r] = struct{}{}
	g.abandonedAt = -1
	return r
}

// reader is the body that one client gets. It is an exchange.Source.
type reader struct {
	g        *growing
	at, left int64
}

// next returns bytes that came, or waits for them after a flush. It returns none at the end.
func (r *reader) next(buffer []byte, sink exchange.Sink) ([]byte, error) {
	g := r.g
	flushed := false
	g.mu.Lock()
	for {
		switch {
		case r.left == 0:
			g.mu.Unlock()
			return nil, nil
		case r.at < g.onDisk:
			g.mu.Unlock()
			n, err := g.writer.ReadAt(r.part(buffer), r.at)
			if n > 0 {
				err = nil
			}
			return buffer[:n], err
		case r.at < g.length:
			n := copy(r.part(buffer), g.tail[r.at-g.base:])
			g.mu.Unlock()
			return buffer[:n], nil
		case g.ended:
			err := g.err
			g.mu.Unlock()
			return nil, err
		case !flushed:
			flushed = true
			g.mu.Unlock()
			if err := sink.Flush(); err != nil {
				return nil, err
			}
			g.mu.Lock()
		default:
			g.more.Wait()
		}
	}
}

func (r *reader) part(buffer []byte) []byte {
	if r.left < 0 {
		return buffer
	}
	return buffer[:min(int64(len(buffer)), r.left)]
}

// CopyTo sends the body as it comes.
func (r *reader) CopyTo(sink exchange.Sink) error {
	buffer := pieces.Get().(*[piece]byte)
	for {
		p, err := r.next(buffer[:], sink)
		if err != nil {
			// The disk may still have the piece.
			return err
		}
		if len(p) == 0 {
			pieces.Put(buffer)
			return nil
		}
		if err := sink.Write(p); err != nil {
			// A server of HTTP/2 may still be writing the piece.
			return err
		}
		r.g.mu.Lock()
		r.at += int64(len(p))
		if r.left > 0 {
			r.left -= int64(len(p))
		}
		if r.g.failing {
			r.g.more.Broadcast()
		}
		r.g.mu.Unlock()
	}
}

// Close takes the client away.
func (r *reader) Close() {
	g := r.g
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.readers, r)
	if !g.ended && g.hopeless() {
		g.cancel()
	}
	g.release()
	if g.failing {
		g.more.Broadcast()
	}
}
