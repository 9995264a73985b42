package listen

import (
	"bytes"
	"io"
	"net/http"
	"runtime"
	"sync"
	"time"

	"edge.svc/caddy/exchange"
)

// renewals is how often in its time a limit on writes is renewed at most: setting one for each write costs more than many
// answers do.
const renewals = 12

// BoundWrites limits what is written from now on to the idle time, up to a twelfth more. It is of the goroutine that
// answers the requests of a connection, which come one after the other.
func (c *Conn) BoundWrites(idle time.Duration) { c.BoundWritesAt(time.Now(), idle) }

// BoundWritesAt is BoundWrites for who has read the clock.
func (c *Conn) BoundWritesAt(now time.Time, idle time.Duration) {
	if now.Sub(c.bounded) >= idle/renewals {
		c.bounded = now
		// A connection that is closed already says so with the write itself.
		_ = c.Conn.SetWriteDeadline(now.Add(idle + idle/renewals))
	}
}

// SetWriteDeadline sets a limit. The one of BoundWrites is not taken off, as the server does between two requests: it holds
// for what the server itself writes before the next request renews it.
func (c *Conn) SetWriteDeadline(t time.Time) error {
	if t.IsZero() && !c.bounded.IsZero() {
		return nil
	}
	return c.Conn.SetWriteDeadline(t)
}

// boundStream limits what is written to a stream of its own to the idle time. One that was ended stays so.
func (c *Conn) boundStream(control *http.ResponseController, x *Exchange, idle time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !x.killed {
		// Without a limit the write itself waits as long as its connection lives.
		_ = control.SetWriteDeadline(time.Now().Add(idle))
	}
}

const (
	// What net/http's own buffer does not hold together with a header, it sends in two parts; each costs as much as all
	// the rest of a page.
	minGathered = 2 << 10
	// Room for the largest page that is not compressed, and a header.
	maxGathered     = 24 << 10
	maxGatheredBody = 16 << 10
)

var gathers = sync.Pool{New: func() any { return new(make([]byte, 0, maxGathered)) }}

// Gather sends the answer that is written next with one system call. Its body has so many bytes, and all of them will be
// written.
func (c *Conn) Gather(body int) {
	if minGathered <= body && body <= maxGatheredBody {
		c.gathering = body
	}
}

// Write writes to the client, whole answers where Gather asks for it.
func (c *Conn) Write(p []byte) (int, error) {
	if c.plain {
		return c.http1.write(p, c.writeRaw)
	}
	if c.overTLS {
		return c.records.write(p, c.send)
	}
	return c.writeRaw(p)
}

func (c *Conn) writeRaw(p []byte) (int, error) {
	if c.holding {
		return c.hold(p)
	}
	if c.gathering == 0 {
		return c.send(p)
	}
	if c.held == nil {
		header := bytes.Index(p, []byte("\r\n\r\n"))
		missing := header + 4 + c.gathering - len(p)
		if c.gathering = max(missing, 0); header < 0 || missing <= 0 || len(p)+missing > maxGathered {
			c.gathering = 0
			return c.send(p)
		}
		c.held = gathers.Get().(*[]byte)
		*c.held = append((*c.held)[:0], p...)
		return len(p), nil
	}
	held := append(*c.held, p...)
	if c.gathering -= len(p); c.gathering > 0 {
		*c.held = held
		return len(p), nil
	}
	n, err := c.send(held)
	n = max(n-len(held)+len(p), 0)
	*c.held = held[:0]
	gathers.Put(c.held)
	c.held, c.gathering = nil, 0
	return n, err
}

// copies are buffers for what the system does not send by itself.
var copies = sync.Pool{New: func() any { return new([64 << 10]byte) }}

// ReadFrom writes all that r has. The system sends a file by itself where no TLS lies between and nothing is gathered: net/http
// asks for it with the body of a response, when its header has left.
func (c *Conn) ReadFrom(r io.Reader) (int64, error) {
	if part, ok := r.(*exchange.FilePart); ok && c.gathering == 0 && c.http1.handled.Load() && c.takesFiles() {
		return c.sendFile(part)
	}
	system, ok := c.Conn.(io.ReaderFrom)
	if !ok || !c.plain || c.shared || c.gathering > 0 || c.holding || !c.http1.handled.Load() {
		buffer := copies.Get().(*[64 << 10]byte)
		defer copies.Put(buffer)
		return io.CopyBuffer(struct{ io.Writer }{c}, r, buffer[:])
	}
	n, err := system.ReadFrom(r)
	c.meter.SentBody(n)
	return n, err
}

// send writes to the socket and counts what left.
func (c *Conn) send(p []byte) (int, error) {
	if c.shared {
		// Answers that are nearly ready leave together with the next write, while this one is under way.
		runtime.Gosched()
	}
	n, err := c.Conn.Write(p)
	if c.plain && !c.shared {
		c.meter.Sent(p[:max(n, 0)])
	}
	return n, err
}
