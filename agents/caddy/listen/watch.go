package listen

import (
	"context"
	"errors"
	"net"
	"syscall"
	"time"
)

// watch looks for the end of the client without a read, so that all that the client sends stays where it is.
type watch struct {
	// The connection, also as the system knows it, and what ends the requests of it; nil where only a read can tell.
	conn net.Conn
	raw  syscall.RawConn
	end  context.CancelFunc
	// A look is to begin where the request goes on for long.
	due bool
	// Closed with the look under way; nil without one. stopping has it end.
	over     chan struct{}
	stopping bool
}

// watchOver has the end of the client found without a read, where the connection can.
func (r *reads) watchOver(conn net.Conn, end context.CancelFunc) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.conn, r.end = conn, end
	if system, ok := conn.(syscall.Conn); ok {
		r.raw, _ = system.SyscallConn()
	}
}

// later takes a look for the end of the client over, which net/http begins by a read of one byte without a deadline. It reports
// whether the read is to return nothing. A second read in a row is none of these: who reads again waits for bytes.
func (r *reads) later() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.raw == nil || r.due || r.over != nil || r.closed || !r.wanted.IsZero() {
		return false
	}
	r.due = true
	r.list()
	return true
}

// beginWatch begins the look. The caller holds the lock.
func (r *reads) beginWatch() {
	r.due, r.over = false, make(chan struct{})
	go r.watchClient()
}

func (r *reads) watchClient() {
	for {
		gone, err := clientGone(r.raw)
		r.mu.Lock()
		if !r.stopping && !r.closed && r.wanted.IsZero() && timedOut(err) {
			// A deadline of before, which nobody wants any more.
			r.holds = time.Time{}
			_ = r.conn.SetReadDeadline(time.Time{})
			r.mu.Unlock()
			continue
		}
		left := !r.stopping && (gone || err != nil && !timedOut(err))
		close(r.over)
		r.over = nil
		r.mu.Unlock()
		if left {
			r.end()
		}
		return
	}
}

// unwatch ends the look, because the connection is read again. The caller holds the lock.
func (r *reads) unwatch() {
	r.due = false
	if r.over == nil {
		return
	}
	r.stopping = true
	over := r.over
	_ = r.conn.SetReadDeadline(longAgo)
	r.mu.Unlock()
	<-over
	r.mu.Lock()
	r.stopping, r.holds = false, time.Time{}
	_ = r.conn.SetReadDeadline(time.Time{})
}

// clientGone waits until the client sends something or ends the connection, and reports whether it did the latter. What it sent
// stays to be read.
func clientGone(raw syscall.RawConn) (gone bool, err error) {
	var n int
	var failed error
	err = raw.Read(func(fd uintptr) bool {
		var one [1]byte
		for {
			n, _, failed = syscall.Recvfrom(int(fd), one[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
			if failed != syscall.EINTR {
				return failed != syscall.EAGAIN
			}
		}
	})
	return err == nil && (n == 0 || failed != nil), err
}

func timedOut(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}
