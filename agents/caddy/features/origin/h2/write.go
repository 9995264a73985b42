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
	for {
		p, over := c.gathered()
		if len(p) == 0 {
			if over {
				_ = c.net.Close()
			}
			return over
		}
		_, err := c.net.Write(p)
		c.written(p, err)
	}
}

// gathered is what is to be written, and whether nothing comes after it.
func (c *Conn) gathered() (p []byte, over bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.out) > 0 {
		p = c.out
		c.out, c.spare = c.spare[:0], nil
		c.health.writing = true
	}
	return p, c.closing
}

func (c *Conn) written(p []byte, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
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

// grant gives its turn to the stream that waits for longest, under the lock, if there is room for a frame.
func (c *Conn) grant() {
	if c.turn != nil || len(c.queue) == 0 || c.send <= 0 || len(c.out) > maxOut {
		return
	}
	c.turn = c.queue[0]
	c.queue = slices.Delete(c.queue, 0, 1)
	c.turn.sendable()
}
