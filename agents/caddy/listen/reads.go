package listen

import (
	"net"
	"os"
	"sync"
	"time"
)

// reads is how a server of HTTP/1 reads from a connection. It spares what net/http asks for with every request and what is
// over before it matters:
//
//   - Deadlines: six for a request. One is handed on only where it ends a read earlier than the one that holds; a read that
//     ends too early is repeated.
//   - The look for the end of the client while a request is answered: a read of one byte without a deadline. It is put off
//     until the answer has taken a moment, see putOff; most end before. Where the system lets it look at the connection
//     without a read, net/http gets nothing at once instead of a goroutine that waits, and the look is the edge's own.
type reads struct {
	mu sync.Mutex
	// What was asked for, and what holds; zero for none.
	wanted, holds time.Time
	reading       int
	putOff
	watch
}

// putOff is a read that has not begun, under the lock of its reads.
type putOff struct {
	waiting bool
	wake    chan struct{}
	closed  bool
	// Counts what was put off; what it was at the last look. In a list of what is looked at; how often nothing waited.
	turn, seen uint64
	listed     bool
	unused     int
}

// read reads from the connection. look says that a read of one byte may be put off.
func (r *reads) read(from net.Conn, p []byte, look bool) (int, error) {
	r.mu.Lock()
	r.unwatch()
	if look && len(p) == 1 && r.wanted.IsZero() && !r.closed {
		r.wait()
		if isPast(r.wanted) {
			r.mu.Unlock()
			return 0, os.ErrDeadlineExceeded
		}
	}
	for {
		_ = r.handOn(from)
		r.reading++
		r.mu.Unlock()
		n, err := from.Read(p)
		r.mu.Lock()
		r.reading--
		if n > 0 || !r.tooEarly(err) {
			r.mu.Unlock()
			return n, err
		}
		r.holds = r.wanted
		_ = from.SetReadDeadline(r.wanted)
	}
}

// tooEarly reports whether a read ended with a deadline that nobody wants any more. The caller holds the lock.
func (r *reads) tooEarly(err error) bool {
	if err == nil || !timedOut(err) || r.closed {
		return false
	}
	return r.wanted != r.holds && (r.wanted.IsZero() || time.Now().Before(r.wanted))
}

// setDeadline takes a deadline for reads, also for one that is under way.
func (r *reads) setDeadline(of net.Conn, t time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wanted = t
	if r.due {
		// What comes next is of the next request.
		r.due = false
		return nil
	}
	if r.waiting {
		r.begin()
		return nil
	}
	if r.reading > 0 {
		return r.handOn(of)
	}
	return nil
}

// handOn hands a deadline on that comes before the one that holds. The caller holds the lock.
func (r *reads) handOn(to net.Conn) error {
	if r.wanted.IsZero() || !r.holds.IsZero() && !r.wanted.Before(r.holds) {
		return nil
	}
	r.holds = r.wanted
	return to.SetReadDeadline(r.wanted)
}

// close ends a read that is put off, after the connection was closed.
func (r *reads) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed, r.due = true, false
	if r.waiting {
		r.begin()
	}
	if r.end != nil {
		r.end()
	}
}

// isPast reports whether a deadline is one that ends a read at once, as servers set it.
func isPast(t time.Time) bool { return !t.IsZero() && t.Unix() <= longAgo.Unix() }

// wait puts a read off until it is to begin. The caller holds the lock.
func (r *reads) wait() {
	if r.wake == nil {
		r.wake = make(chan struct{}, 1)
	}
	r.waiting = true
	r.list()
	r.mu.Unlock()
	<-r.wake
	r.mu.Lock()
}

// list has the connection looked at. The caller holds the lock.
func (r *reads) list() {
	r.turn++
	if !r.listed {
		r.listed = true
		looks.add(r)
	}
}

// begin has a read begin that is put off. The caller holds the lock.
func (r *reads) begin() {
	r.waiting = false
	r.wake <- struct{}{}
}

const (
	// A read that is put off begins after this time, or up to twice as long.
	lookEvery = 40 * time.Millisecond
	// A connection that put nothing off in so many looks is not looked at.
	maxUnused = 25
)

// looker begins what is put off for long. One goroutine serves all connections: a timer for each request would cost more
// than the read.
type looker struct {
	mu      sync.Mutex
	list    []*reads
	looking bool
}

var looks looker

func (l *looker) add(r *reads) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, r)
	if !l.looking {
		l.looking = true
		go l.run()
	}
}

func (l *looker) run() {
	for l.look() {
		time.Sleep(lookEvery)
	}
}

// look reports whether anything is left to look at.
func (l *looker) look() bool {
	l.mu.Lock()
	list := l.list
	l.list = nil
	l.mu.Unlock()
	kept := list[:0]
	for _, r := range list {
		if r.look() {
			kept = append(kept, r)
		}
	}
	clear(list[len(kept):])
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(kept, l.list...)
	l.looking = len(l.list) > 0
	return l.looking
}

// look has a read begin that was put off at the last look already. It reports whether the connection stays in the list.
func (r *reads) look() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case !r.waiting && !r.due && r.turn == r.seen:
		r.unused++
	case r.waiting && r.turn == r.seen:
		r.begin()
		r.unused = 0
	case r.due && r.turn == r.seen:
		r.beginWatch()
		r.unused = 0
	default:
		r.seen, r.unused = r.turn, 0
	}
	r.listed = !r.closed && r.unused < maxUnused
	return r.listed
}
