package listen

import (
	"context"
	"net/http"
	"net/netip"
	"time"
)

// Exchange is one request with its response, from the moment its handler knows whose it is until the handler ends.
type Exchange struct {
	Client netip.Addr
	SiteID string
	// Writer and Cancel are of an exchange that shares its connection with others, as in HTTP/2: the server's own response
	// writer, or one that unwraps to it, and what ends the context that its stages and its origin work with. Both are nil
	// where it ends with its connection.
	Writer http.ResponseWriter
	Cancel context.CancelFunc

	killed     bool
	next, prev *Exchange
}

// Begin enters an exchange; bans made from now on end it. Check for a ban after it, so that none slips between.
func (c *Conn) Begin(x *Exchange) {
	c.mu.Lock()
	if x.next = c.exchanges; x.next != nil {
		x.next.prev = x
	}
	c.exchanges = x
	c.mu.Unlock()
}

// End leaves an exchange. Nothing touches its writer from then on, so it has to be called before the handler ends, which
// is when the server takes the writer back.
func (c *Conn) End(x *Exchange) {
	c.mu.Lock()
	if x.prev != nil {
		x.prev.next = x.next
	} else {
		c.exchanges = x.next
	}
	if x.next != nil {
		x.next.prev = x.prev
	}
	x.next, x.prev = nil, nil
	c.mu.Unlock()
}

// holds reports whether an exchange is in progress that is banned and was not ended yet.
func (c *Conn) holds(banned func(siteID string, addr, peer netip.Addr) bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for x := c.exchanges; x != nil; x = x.next {
		if !x.killed && banned(x.SiteID, x.Client, c.Peer) {
			return true
		}
	}
	return false
}

// kill ends the banned exchanges in progress, the connection where one of them can only end with it. None of them leaves
// while it is being ended. The registry's locks are not held: the server may be closing the connection at the same time,
// and that takes one.
func (c *Conn) kill(banned func(siteID string, addr, peer netip.Addr) bool) {
	c.mu.Lock()
	whole := false
	for x := c.exchanges; x != nil && !whole; x = x.next {
		switch {
		case x.killed || !banned(x.SiteID, x.Client, c.Peer):
		case x.Writer == nil:
			whole = true
		default:
			x.kill()
		}
	}
	c.mu.Unlock()
	if whole {
		c.Abort()
	}
}

// A time in the past.
var longAgo = time.Unix(1, 0)

// kill ends an exchange alone. A write that waits wakes only when the stream is closed, which a limit in the past does;
// a read, when its own limit has passed; the rest sees its context.
func (x *Exchange) kill() {
	x.killed = true
	control := http.NewResponseController(x.Writer)
	// A server without limits has the context alone.
	_ = control.SetWriteDeadline(longAgo)
	_ = control.SetReadDeadline(longAgo)
	if x.Cancel != nil {
		x.Cancel()
	}
}
