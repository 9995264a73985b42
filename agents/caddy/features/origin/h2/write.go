package h2

import (
	"runtime"
	"slices"
)

const (
	// What is kept of the buffers between writes.
	keptBuffer = 64 << 10
	// Bodies wait while so much is to be written.
	maxOut = 64 << 10
)

// signal has the writer write what was appended.
func (c *Conn) signal() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// write writes what requests and the reader append, until the connection ends.
func (c *Conn) write() {
	for range c.wake {
		// Requests that are ready to go on add theirs: a write costs more than a request does.
		runtime.Gosched()
		if c.flush() {
			return
		}
	}
}

// flush writes all there is, and reports whether the connection is over.
func (c *Conn) flush() (over bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.out) > 0 {
		p := c.out
		c.out, c.spare = c.spare[:0], nil
		c.health.writing = true
		c.mu.Unlock()
		_, err := c.net.Write(p)
		c.mu.Lock()
		c.health.writing = false
		c.health.writes++
		if cap(p) <= keptBuffer {
			c.spare = p
		}
		if err != nil {
			c.fail(err)
			c.out = nil
		}
		c.grant()
	}
	if c.closing {
		_ = c.net.Close()
	}
	return c.closing
}

// grant gives its turn to the stream that waits for longest, under the lock, if there is room for a frame.
func (c *Conn) grant() {
	if c.turn != nil || len(c.queue) == 0 || c.send <= 0 || len(c.out) > maxOut {
		return
	}
	c.turn = c.queue[0]
	c.queue = slices.Delete(c.queue, 0, 1)
	c.turn.sendable()
}
