package listen

import (
	"sync/atomic"
	"time"
)

// What a client of HTTP/2 takes until it says more (RFC 9113 §6.9.2).
const firstWindow = 65_535

// slowWrite is how long a write to a connection may last until its client counts as one that does not read.
const slowWrite = 100 * time.Millisecond

// flowMargin is what other requests of a connection may write before the last bytes of one leave.
const flowMargin = 16 << 10

// flow is what the client of an HTTP/2 connection takes: an estimate that is never too high. The server buffers the last
// bytes of a response and writes them after the handler, when the request counts nothing any more. Where that could have
// to wait for the client, the handler waits instead.
type flow struct {
	// Bytes that the windows of the connection allowed so far, without the first one, less those of response bodies.
	left atomic.Int64
	// By how much the window that each stream begins with differs from the first one.
	stream atomic.Int64
	// Nanoseconds of the clock since which a write lasts, 0 while there is none.
	writing atomic.Int64
}

// spend counts a body that was handed to the server, and reports whether the client may leave some of it waiting.
func (f *flow) spend(body int64) (mayWait bool) {
	left := f.left.Add(-body) + firstWindow
	since := f.writing.Load()
	return left < flowMargin || body > f.stream.Load()+firstWindow || since != 0 && time.Now().UnixNano()-since > int64(slowWrite)
}

// MayWait hears of a response with a body of so many bytes. Over HTTP/1 the next request waits for it anyway.
func (c *carried) MayWait(body int64) bool {
	return c.control != nil && (c.conn.flow.spend(body) || c.refused || c.conn.QUIC())
}
