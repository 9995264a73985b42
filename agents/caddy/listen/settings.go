package listen

import (
	"net/netip"

	"edge.svc/caddy/exchange"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
)

// proxyMode says whether connections begin with a PROXY header.
func proxyMode(tables *exchange.Tables) bool {
	return ClientIP.Of(tables).Mode == configv1.ClientIpMode_CLIENT_IP_MODE_PROXY_PROTOCOL
}

// countedFor is whose connection it is as far as the limits for networks go, invalid for that of a proxy that is trusted:
// what it sends is of many clients. In proxy_protocol mode the header of the connection will tell.
func (w *Wrapper) countedFor(tables *exchange.Tables, peer netip.Addr) netip.Addr {
	if proxyMode(tables) && w.peers != nil || ClientIP.Of(tables).Trusts(peer) {
		return netip.Addr{}
	}
	return peer
}

// admits reports whether a peer may connect.
func (w *Wrapper) admits(tables *exchange.Tables, peer netip.Addr) bool {
	return w.peers == nil || w.peers.Lookup(peer) || !proxyMode(tables)
}
