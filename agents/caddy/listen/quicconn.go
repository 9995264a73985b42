package listen

import (
	"errors"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

var errDatagrams = errors.New("a QUIC connection cannot be read or written as bytes")

// quicConn is a QUIC connection as the registry and the limits on connections know it: something that has an address and
// can be ended. There is one from its client's first packet on.
type quicConn struct {
	local, remote net.Addr
	// Counts handshakes of addresses that nobody has verified; nil where this one is.
	unverified *atomic.Int64
	over       atomic.Bool

	mu     sync.Mutex
	conn   *quic.Conn
	closed bool
	// Of requests that the client took back, and of heads that it did not finish.
	resets, unfinished spent
	// Streams whose request has not come yet.
	heads map[quic.StreamID]time.Time
}

// attach says which connection it is, once its handshake is over. One that was to end before ends now.
func (q *quicConn) attach(conn *quic.Conn) {
	q.mu.Lock()
	q.conn = conn
	closed := q.closed
	q.mu.Unlock()
	if closed {
		endQUIC(conn, http3.ErrCodeNoError)
	}
}

// handshakeOver ends the handshake, well or not; it reports whether it had not ended yet.
func (q *quicConn) handshakeOver() bool {
	if !q.over.CompareAndSwap(false, true) {
		return false
	}
	if q.unverified != nil {
		q.unverified.Add(-1)
	}
	return true
}

// headBegins notes a stream whose request is read, and since when.
func (q *quicConn) headBegins(stream quic.StreamID, now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.heads == nil {
		q.heads = map[quic.StreamID]time.Time{}
	}
	q.heads[stream] = now
}

// headEnds notes that the request of a stream is there, or will not be; it reports whether that is new, and since when it
// was read.
func (q *quicConn) headEnds(stream quic.StreamID) (since time.Time, reading bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	since, reading = q.heads[stream]
	delete(q.heads, stream)
	return since, reading
}

// isClosed reports whether the connection has to end.
func (q *quicConn) isClosed() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.closed
}

// Close ends the connection with all of its streams. It waits for nothing.
func (q *quicConn) Close() error {
	q.mu.Lock()
	q.closed = true
	conn := q.conn
	q.mu.Unlock()
	if conn != nil {
		endQUIC(conn, http3.ErrCodeNoError)
	}
	return nil
}

// endQUIC ends a connection from elsewhere: closing waits for the goroutine of the connection, which may be waiting for
// the caller.
func endQUIC(conn *quic.Conn, code http3.ErrCode) {
	go func() {
		// Never fails.
		_ = conn.CloseWithError(quic.ApplicationErrorCode(code), "")
	}()
}

func (q *quicConn) Read([]byte) (int, error)         { return 0, errDatagrams }
func (q *quicConn) Write([]byte) (int, error)        { return 0, errDatagrams }
func (q *quicConn) LocalAddr() net.Addr              { return q.local }
func (q *quicConn) RemoteAddr() net.Addr             { return q.remote }
func (q *quicConn) SetDeadline(time.Time) error      { return errDatagrams }
func (q *quicConn) SetReadDeadline(time.Time) error  { return errDatagrams }
func (q *quicConn) SetWriteDeadline(time.Time) error { return errDatagrams }

// shaken ends the handshake of a connection over QUIC; it reports whether it had not ended yet.
func (c *Conn) shaken() bool {
	if !c.Conn.(*quicConn).handshakeOver() {
		return false
	}
	c.registry.limiter.shaken(c)
	return true
}

// QUIC reports whether requests come over QUIC: they share no bytes of a connection, only what is known of it.
func (c *Conn) QUIC() bool {
	_, is := c.Conn.(*quicConn)
	return is
}

func peerOf(address net.Addr) netip.Addr {
	switch a := address.(type) {
	case *net.TCPAddr:
		return a.AddrPort().Addr().WithZone("").Unmap()
	case *net.UDPAddr:
		return a.AddrPort().Addr().WithZone("").Unmap()
	}
	return netip.Addr{}
}
