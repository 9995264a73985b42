package listen

import (
	"net/netip"

	"edge.svc/caddy/exchange"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
)

// proxyMode says whether connections of HTTP begin with a PROXY header.
func proxyMode(tables *exchange.Tables) bool {
	return ClientIP.Of(tables).Mode == configv1.ClientIpMode_CLIENT_IP_MODE_PROXY_PROTOCOL
}

// countedFor is whose connection it is as far as the limits for networks go, invalid for that of a proxy that is trusted:
// what it sends is of many clients. A PROXY header of the connection will tell.
func (w *Wrapper) countedFor(tables *exchange.Tables, peer netip.Addr, proxied bool) netip.Addr {
	if proxied && w.peers != nil || ClientIP.Of(tables).Trusts(peer) {
		return netip.Addr{}
	}
	return peer
}

// admits reports whether a peer may connect.
func (w *Wrapper) admits(peer netip.Addr, proxied bool) bool {
	return w.peers == nil || w.peers.Lookup(peer) || !proxied
}

// expectsProxy reports whether the connection begins with a PROXY header.
func (c *Conn) expectsProxy(tables *exchange.Tables) bool {
	if c.proxy != nil {
		return c.proxy(tables)
	}
	return proxyMode(tables)
}
