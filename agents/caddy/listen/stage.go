package listen

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"time"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
	"edge.svc/caddy/internal/inflight"
)

// carried is what the listener knows of an exchange: the connection it came over, and its entry there.
type carried struct {
	conn *Conn
	// The limit on writes to the connection; 0 where another sets one.
	writeIdle time.Duration
	// Limits of the exchange's own stream, and when they were set last; nil where it has its connection to itself, or the
	// server sets them.
	bounded time.Time
	control *http.ResponseController
	entry   Exchange
	listed  bool
	holding inflight.Holding
	// Only a response of the edge is to come.
	refused bool
}

var carriedBy = exchange.NewFact[carried]()

// Carry tells an exchange which connection it came over, nil where that is not known. writeIdle is the time in which
// something of an answer must go on; 0 where the server sets limits itself.
func Carry(x *exchange.Exchange, conn *Conn, writeIdle time.Duration) {
	c := carriedBy.Of(x)
	c.conn = conn
	if conn != nil && conn.plain && x.In.Major == 1 && !x.Local {
		x.Meter = &conn.meter
		x.Meter.Begin(x.Body.Length, x.EndsAfter())
	}
	if c.writeIdle = writeIdle; writeIdle > 0 && conn != nil {
		x.Writes = c
		if x.In.Major != 1 {
			c.control = http.NewResponseController(x.Writer())
		}
	}
}

// BoundWrites limits the writes that follow.
func (c *carried) BoundWrites() {
	if c.control == nil {
		c.conn.BoundWrites(c.writeIdle)
		return
	}
	if now := time.Now(); now.Sub(c.bounded) >= c.writeIdle/renewals {
		c.bounded = now
		c.conn.boundStream(c.control, &c.entry, c.writeIdle+c.writeIdle/renewals)
	}
}

// Lasts has a stream of its own go on for so long without a write: servers of HTTP/2 end a stream whose limit passed, also
// where nothing waits to be written.
func (c *carried) Lasts(idle time.Duration) {
	if c.control == nil || idle <= c.writeIdle {
		return
	}
	c.writeIdle, c.bounded = idle, time.Time{}
	c.BoundWrites()
}

// Gather has the answer that is written next leave in one piece. What leaves in records of TLS does not.
func (c *carried) Gather(bodyBytes int) {
	if c.conn.plain && c.control == nil {
		c.conn.Gather(bodyBytes)
	}
}

// TakesFiles reports whether the system sends files by itself.
func (c *carried) TakesFiles() bool { return c.control == nil && c.conn.takesFiles() }

// HoldHead has the head of a response wait for the file behind it.
func (c *carried) HoldHead() {
	if c.conn.plain && c.control == nil {
		c.conn.holding = true
	}
}

// ReleaseHead ends that.
func (c *carried) ReleaseHead() {
	if c.conn.holding {
		c.conn.holding = false
		// A connection that is closed says so with the next write.
		_ = c.conn.release()
	}
}

// Client is the stage that finds out who asks.
func Client(node *core.Core) exchange.Stage {
	return func(x *exchange.Exchange) *exchange.Answer {
		in := &x.In
		if c := carriedBy.Of(x); c.conn != nil {
			in.Peer, in.Proxied = c.conn.Peer, c.conn.Proxied()
			if c.conn.QUIC() {
				// Clients of QUIC may move to another address, as phones do.
				in.Peer = remoteOf(in.Remote, in.Peer)
			}
			if from := c.conn.socket; from != nil && from.closed.Load() {
				x.CloseAfter()
			}
			in.Port, in.NamedPort, in.Handshake = c.conn.port, c.conn.named, c.conn.handshake
		} else {
			in.Peer = remoteOf(in.Remote, in.Peer)
		}
		setting := ClientIP.Of(x.Tables)
		in.Client = setting.Resolve(in.Peer, in.Proxied, in.Header)
		if scheme := setting.SchemeOf(in.Peer, in.Header); scheme != "" {
			in.Scheme = scheme
		}
		in.Claimed = claimed(node, setting, in.Client, in.Peer)
		in.HideForwardedFor = setting.hidesForwardedFor()
		return nil
	}
}

// Register is the stage that makes an exchange known to new bans, until its end. Stages after it look for bans, so that
// none slips between.
func Register(*core.Core) exchange.Stage {
	return func(x *exchange.Exchange) *exchange.Answer {
		c := carriedBy.Of(x)
		if c.conn == nil {
			return nil
		}
		c.entry.Client, c.entry.SiteID = x.In.Client, x.Plan.SiteID
		if x.In.Major != 1 {
			ctx, cancel := context.WithCancel(x.Context())
			x.SetContext(ctx)
			c.endWith(cancel)
		}
		c.listed = true
		c.conn.Begin(&c.entry)
		x.Registered = c
		return nil
	}
}

// Leave makes the exchange unknown to new bans.
func (c *carried) Leave() {
	if c.listed {
		c.listed = false
		c.conn.End(&c.entry)
	}
}

// Finish takes the exchange out of the registry at its end.
func Finish(*core.Core) exchange.FinishStage {
	return func(x *exchange.Exchange) {
		c := carriedBy.Of(x)
		c.Leave()
		c.holding.Leave()
		if c.entry.Cancel != nil {
			c.entry.Cancel()
		}
	}
}

// remoteOf reads the other end of a connection as a server names it; unknown where it has no address.
func remoteOf(remote string, unknown netip.Addr) netip.Addr {
	if peer, err := netip.ParseAddrPort(remote); err == nil {
		return peer.Addr().WithZone("").Unmap()
	}
	return unknown
}

// portOf is the port of an address, 0 where it has none.
func portOf(address net.Addr) uint16 {
	if tcp, ok := address.(*net.TCPAddr); ok {
		return uint16(tcp.Port)
	}
	return 0
}
