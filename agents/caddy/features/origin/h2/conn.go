package h2

import (
	"encoding/binary"
	"net"
	"sync"
	"time"

	"golang.org/x/net/http2/hpack"

	"edge.svc/caddy/exchange"
)

const (
	// What an origin may send of a body before it is taken.
	streamWindow = 256 << 10
	// Streams of a connection at most. Their windows together are the connection's: a body that nobody takes holds no other.
	maxStreams = 256
	connWindow = maxStreams * streamWindow
	// Streams that are opened until the connection ends.
	maxID = 1 << 30
	// Frames that bring nothing, in a second.
	maxWaste = 2000
	// Two of them without a byte, or in one write, end a connection.
	tickEvery = 15 * time.Second
	// Time for what is left to write at the end.
	lastWrite = 5 * time.Second
)

// Conn is a connection to an origin that carries many requests.
type Conn struct {
	net   net.Conn
	ready chan struct{}
	// Wakes the writer.
	wake chan struct{}
	tick time.Duration

	mu sync.Mutex
	// Why the connection takes no more requests, and carries none.
	err error
	// Set with err, or once the last stream of a connection that drains is over: what is left to write is written.
	closing bool
	// It takes no more requests, and ends with the last one that it carries.
	draining bool
	// The origin takes no more streams.
	leaving  bool
	streams  map[uint32]*Stream
	lastID   uint32
	reserved int
	started  bool
	limits

	reader reader
	health health

	out, spare []byte
	// Streams that wait for the connection, in their order.
	queue []*Stream
	// The one whose turn it is to send a frame.
	turn *Stream
}

// limits are those of the origin, and of this side.
type limits struct {
	// Streams that the origin takes.
	most uint32
	// First windows of streams, and what may be sent on the connection.
	streamSend, send int64
	maxFrame         int
	// What the origin may still send on the connection, and what it has sent since it was last told.
	receive, taken int64
}

// health is how the connection is watched.
type health struct {
	timer *time.Timer
	// Reads and writes that ended, and their numbers at the last tick.
	reads, seenReads   uint64
	writes, seenWrites uint64
	writing            bool
	// A PING is under way, and was at the last tick.
	pinging, asked bool
	// The origin has sent no HEADERS and no DATA since the last PING. Servers of gRPC count such pings, and end a
	// connection after the third.
	blocked bool
	// Resets that the PING under way is behind, and those after it.
	behind, later int
	// Frames that bring nothing, since when.
	waste int
	since time.Time
}

// New begins HTTP/2 on a connection that is the Conn's from now on.
func New(c net.Conn) *Conn { return newConn(c, tickEvery) }

func newConn(to net.Conn, tick time.Duration) *Conn {
	c := &Conn{
		net: to, ready: make(chan struct{}), wake: make(chan struct{}, 1), tick: tick, streams: map[uint32]*Stream{},
		limits: limits{most: maxStreams, streamSend: firstWindow, send: firstWindow, maxFrame: minFrame, receive: connWindow},
	}
	c.reader.decoder = hpack.NewDecoder(tableSize, c.reader.take)
	c.reader.decoder.SetMaxStringLength(maxHeader)
	c.out = append(c.out, preface...)
	c.out = appendHead(c.out, 3*6, frameSettings, 0, 0)
	c.out = appendSetting(c.out, settingPush, 0)
	c.out = appendSetting(c.out, settingWindow, streamWindow)
	c.out = appendSetting(c.out, settingHeaderSize, maxHeader)
	c.out = appendWindow(c.out, 0, connWindow-firstWindow)
	c.health.timer = time.AfterFunc(tick, c.look)
	failed := func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.fail(errClosed)
		_ = c.net.Close()
	}
	exchange.Go("writing to an origin over HTTP/2", c.write, failed)
	exchange.Go("reading from an origin over HTTP/2", c.read, failed)
	c.signal()
	return c
}

// Ready is closed once the origin has sent its settings, or the connection has failed.
func (c *Conn) Ready() <-chan struct{} { return c.ready }

// Err says why the connection takes no more requests, nil where it does.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.over()
}

func (c *Conn) over() error {
	if c.err == nil && c.draining {
		return errClosed
	}
	return c.err
}

// Reserve keeps room for one more stream, for Open. It reports false where there is none.
func (c *Conn) Reserve() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	h := &c.health
	if c.over() != nil || len(c.streams)+c.reserved+h.behind+h.later >= int(min(c.most, maxStreams)) {
		return false
	}
	c.reserved++
	return true
}

// InFlight is how many requests the connection carries.
func (c *Conn) InFlight() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.streams) + c.reserved
}

// Drain has the connection take no more requests, and end with the last one that it carries.
func (c *Conn) Drain() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.draining = true
	c.rest()
}

// Close ends the connection, and all requests on it.
func (c *Conn) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fail(errClosed)
}

// rest ends a connection that drains and carries nothing, under the lock.
func (c *Conn) rest() {
	if c.draining && len(c.streams)+c.reserved == 0 {
		c.fail(errClosed)
	}
}

// fail ends the connection, under the lock.
func (c *Conn) fail(err error) {
	if c.err != nil {
		return
	}
	c.err, c.closing = err, true
	c.health.timer.Stop()
	code := uint32(codeNo)
	if broken, ok := err.(*connError); ok {
		code = broken.code
	}
	c.out = appendGoAway(c.out, code)
	for id, s := range c.streams {
		delete(c.streams, id)
		s.fail(err)
	}
	c.queue, c.turn = nil, nil
	if !c.started {
		c.started = true
		close(c.ready)
	}
	_ = c.net.SetWriteDeadline(time.Now().Add(lastWrite))
	if err == errStuck {
		_ = c.net.Close()
	}
	c.signal()
}

// look ends a connection whose origin is gone without a word, each tick.
func (c *Conn) look() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return
	}
	h := &c.health
	switch {
	case h.writing && h.writes == h.seenWrites:
		c.fail(errStuck)
		return
	case len(c.streams) > 0 && h.reads == h.seenReads:
		if h.pinging && h.asked {
			c.fail(errStuck)
			return
		}
		c.ping()
	}
	h.asked, h.seenReads, h.seenWrites = h.pinging, h.reads, h.writes
	h.timer.Reset(c.tick)
}

// ping asks the origin for a sign, under the lock, unless it would count as one too many.
func (c *Conn) ping() {
	h := &c.health
	if h.pinging || h.blocked {
		return
	}
	h.pinging, h.blocked = true, true
	h.behind, h.later = h.later, 0
	c.out = append(appendHead(c.out, pingBytes, framePing, 0, 0), make([]byte, pingBytes)...)
	c.signal()
}

// pinged takes the answer to a PING, under the lock.
func (c *Conn) pinged() {
	h := &c.health
	h.pinging, h.behind = false, 0
	if h.later > 0 {
		c.settleResets()
	}
}

// reset tells the origin that a stream is over, under the lock. It counts as open until the origin has read that.
func (c *Conn) reset(stream, code uint32) {
	c.out = appendReset(c.out, stream, code)
	c.health.later++
	c.settleResets()
	c.signal()
}

// settleResets waits for the origin to read resets, under the lock. Where it may not be asked, they count no more.
func (c *Conn) settleResets() {
	if c.ping(); !c.health.pinging {
		c.health.later = 0
	}
}

// wasted counts a frame that brings nothing, under the lock.
func (c *Conn) wasted() {
	h := &c.health
	if h.waste++; h.waste <= maxWaste {
		return
	}
	now := time.Now()
	if now.Sub(h.since) < time.Second {
		c.fail(&connError{codeEnhanceYourCalm, "too many frames that bring nothing"})
	}
	h.waste, h.since = 0, now
}

func uint32At(p []byte) uint32 { return binary.BigEndian.Uint32(p) }
