package origin

import (
	"context"
	"io"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	smallBuffer = 4 << 10
	largeBuffer = 32 << 10
	// Largest header of an answer, interim answers included.
	maxHeader = 64 << 10
)

var (
	smallBuffers = sync.Pool{New: func() any { return new([smallBuffer]byte) }}
	largeBuffers = sync.Pool{New: func() any { return new([largeBuffer]byte) }}
)

// conn is a connection to an origin with its own read buffer. One request uses it at a time; only abort may be called
// from elsewhere.
type conn struct {
	net.Conn
	key  dialKey
	addr netip.Addr
	// Policy under which addr was allowed.
	policy *AddressPolicy
	uses   uint32
	// The TCP connection below TLS, to look whether it is still silent while idle.
	raw    syscall.RawConn
	peek   func(fd uintptr)
	silent bool

	buf  []byte
	r, w int
	// Bytes received since the request was sent.
	received int64

	readTimeout time.Duration
	// When a request was written that the next read is for; zero where the clock is to be read.
	asked time.Time
	// Of requests that are written and waited for at once; nil before the first. failed is what ended the last one.
	turn      *turn
	failed    error
	aborted   atomic.Bool
	abortFunc func()
	// The request that uses the connection, and the watch over its client: nil until the origin is slow.
	ctx    context.Context
	stop   func() bool
	upload *upload

	// What it has of the connections in use; nothing while it is idle.
	capacity *capacity
	places   *places

	// Idle list of the shard, see transport.go.
	newer, older         *conn
	idleSince, idleUntil time.Time
}

var longAgo = time.Unix(1, 0)

func newConn(c net.Conn, tcp *net.TCPConn, key dialKey, addr netip.Addr, policy *AddressPolicy) *conn {
	n := &conn{Conn: c, key: key, addr: addr, policy: policy}
	n.abortFunc = n.abort
	if raw, err := tcp.SyscallConn(); err == nil {
		n.raw = raw
		n.peek = func(fd uintptr) {
			var one [1]byte
			_, _, err := syscall.Recvfrom(int(fd), one[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
			n.silent = err == syscall.EAGAIN
		}
	}
	return n
}

// usable says whether an idle connection is open and silent. An origin that closed it, or that sent what nobody asked
// for, must not be heard by the next request.
func (c *conn) usable() bool {
	if c.raw == nil {
		return false
	}
	c.silent = false
	// Control, unlike Read, looks at the connection even when an old deadline has passed.
	if c.raw.Control(c.peek) != nil || !c.silent {
		return false
	}
	if c.key.tls == plain {
		return true
	}
	// TLS may have read more than was asked for: with a deadline in the past only what it holds can be returned.
	if c.Conn.SetReadDeadline(longAgo) != nil {
		return false
	}
	var one [1]byte
	n, err := c.Conn.Read(one[:])
	return n == 0 && isTimeout(err)
}

// abort makes everything that waits on the connection fail. The connection is not used again.
func (c *conn) abort() {
	c.aborted.Store(true)
	_ = c.Conn.SetDeadline(longAgo)
}

// Most answers come within this time; only then is it worth while to watch over the client as well.
const patience = 40 * time.Millisecond

// watch makes the end of the client end the waiting for the origin.
func (c *conn) watch() {
	if c.stop == nil {
		c.stop = context.AfterFunc(c.ctx, c.abortFunc)
	}
}

// unwatch ends the use by a request and says whether its client is still there.
func (c *conn) unwatch() bool {
	there := c.ctx.Err() == nil
	if c.stop != nil {
		there = c.stop()
	}
	c.stop, c.ctx = nil, nil
	return there
}

// armRead starts the read timeout anew. While a request body is under way the origin may stay silent.
func (c *conn) armRead() error {
	if u := c.upload; u != nil {
		u.mu.Lock()
		defer u.mu.Unlock()
		if !u.sent {
			return c.arm(time.Time{})
		}
	}
	return c.arm(time.Now().Add(c.readTimeout))
}

// read waits for the origin, at first for a moment without watching over the client.
func (c *conn) read(p []byte) (int, error) {
	if err := c.failed; err != nil {
		c.failed = nil
		return 0, err
	}
	if c.stop == nil && c.ctx != nil {
		now := c.asked
		if c.asked = (time.Time{}); now.IsZero() {
			now = time.Now()
		}
		if err := c.arm(now.Add(patience)); err != nil {
			return 0, err
		}
		n, err := c.Conn.Read(p)
		if n > 0 || err == nil || !isTimeout(err) {
			return n, err
		}
		c.watch()
	}
	if err := c.armRead(); err != nil {
		return 0, err
	}
	return c.Conn.Read(p)
}

func (c *conn) arm(deadline time.Time) error {
	if err := c.Conn.SetReadDeadline(deadline); err != nil {
		return err
	}
	// Whoever aborts sets the flag first and the deadline second, so one of the two is seen.
	if c.aborted.Load() {
		return errAborted
	}
	return nil
}

// fill reads more into the buffer, which has room.
func (c *conn) fill() error {
	switch {
	case c.buf == nil:
		c.buf = smallBuffers.Get().(*[smallBuffer]byte)[:]
	case c.r == c.w:
		c.r, c.w = 0, 0
	case c.w == len(c.buf) && c.r > 0:
		c.w = copy(c.buf, c.buf[c.r:c.w])
		c.r = 0
	}
	n, err := c.read(c.buf[c.w:])
	c.w += n
	c.received += int64(n)
	if n > 0 {
		return nil
	}
	if err == nil {
		return io.ErrNoProgress
	}
	return err
}

// grow makes the buffer at least size bytes.
func (c *conn) grow(size int) {
	if len(c.buf) >= size {
		return
	}
	var next []byte
	if size <= largeBuffer {
		next = largeBuffers.Get().(*[largeBuffer]byte)[:]
	} else {
		next = make([]byte, size)
	}
	n := copy(next, c.buf[c.r:c.w])
	c.releaseBuffer()
	c.buf, c.r, c.w = next, 0, n
}

func (c *conn) releaseBuffer() {
	releaseBuffer(c.buf)
	c.buf, c.r, c.w = nil, 0, 0
}

// releaseBuffer gives a read buffer back to the others of its size.
func releaseBuffer(buf []byte) {
	switch len(buf) {
	case smallBuffer:
		smallBuffers.Put((*[smallBuffer]byte)(buf))
	case largeBuffer:
		largeBuffers.Put((*[largeBuffer]byte)(buf))
	}
}

// Close ends the connection and gives its buffer back; nobody may be reading any more.
func (c *conn) Close() error {
	c.releaseBuffer()
	err := c.Conn.Close()
	c.leave()
	return err
}

// leave gives the place among the connections in use back.
func (c *conn) leave() {
	c.capacity.leave(c.places)
	c.places = nil
}
