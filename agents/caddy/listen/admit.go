package listen

import (
	"context"
	"net/netip"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
	"edge.svc/caddy/internal/inflight"
	"edge.svc/caddy/pages"
)

// Admit is the stage that counts the memory of a request until its end, and refuses it beyond the limits. Requests of
// trusted proxies count for the client address behind them; those without one count in total only.
func Admit(*core.Core) exchange.Stage {
	return func(x *exchange.Exchange) *exchange.Answer {
		c := carriedBy.Of(x)
		if c.conn == nil {
			return nil
		}
		var network netip.Addr
		if !ClientIP.Of(x.Tables).Trusts(x.In.Client) {
			network = networkOf(x.In.Client)
		}
		if x.In.Major != 1 {
			c.entry.Writer = x.Writer()
		}
		verdict := c.conn.registry.inflight.Enter(&c.holding, network, c)
		if verdict == inflight.Entered {
			x.Memory = &c.holding
			c.conn.refusals.Store(0)
			return nil
		}
		c.refused = true
		if client := c.conn.client(x.Tables); client.IsValid() && networkOf(client) == network {
			c.conn.refused()
		}
		if verdict == inflight.Overrun {
			return x.Drop()
		}
		return pages.RespondBusy(x)
	}
}

// maxRefusals is how many requests in a row a connection may send that find no room. Each costs the edge a goroutine and a
// response, and takes only 20 bytes to send.
const maxRefusals = 32

// refused notes a refused request of the network that the connection itself comes from. Too many in a row end the
// connection: over HTTP/2 with its next request.
func (c *Conn) refused() {
	if c.refusals.Add(1) == maxRefusals+1 && c.QUIC() {
		c.registry.http3Errors.add("conn_refused_requests")
		c.Abort()
	}
}

// Evict ends the exchange for the memory it holds.
func (c *carried) Evict() {
	if c.entry.Writer == nil {
		c.conn.Abort()
		return
	}
	c.conn.mu.Lock()
	defer c.conn.mu.Unlock()
	c.entry.kill()
}

// endWith has the end of the exchange from outside call cancel, at once if it came already.
func (c *carried) endWith(cancel context.CancelFunc) {
	c.conn.mu.Lock()
	defer c.conn.mu.Unlock()
	if c.entry.Cancel = cancel; c.entry.killed {
		cancel()
	}
}
