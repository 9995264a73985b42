package listen

import (
	"net/netip"
	"sync/atomic"

	"edge.svc/caddy/core"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
)

// state is what a core has of its listeners.
type state struct {
	core *core.Core
	// A listener believes the PROXY header of every peer.
	anyProxyPeer atomic.Bool
}

var states = core.NewComponent("listeners", func(c *core.Core) *state { return &state{core: c} })

// AnyProxyPeer reports whether a listener believes the PROXY header of every peer.
func AnyProxyPeer(c *core.Core) bool { return states.Of(c).anyProxyPeer.Load() }

// BelieveAnyProxyPeer notes that a listener does.
func BelieveAnyProxyPeer(c *core.Core) { states.Of(c).anyProxyPeer.Store(true) }

// claimed reports whether a client's address is only what its peer says: any peer may send a PROXY header, and this one
// named somebody else.
func claimed(c *core.Core, setting *ClientIPSetting, client, peer netip.Addr) bool {
	return setting.Mode == configv1.ClientIpMode_CLIENT_IP_MODE_PROXY_PROTOCOL && client != peer && AnyProxyPeer(c)
}

// FillStatus says how many connections are open and what their limits did, and names settings that do not do what they seem to.
func (s *state) FillStatus(status *edgev1.GetStatusResponse) {
	status.ActiveConnections = uint64(max(Process.Connections(), 0))
	status.Serving = Process.Serving()
	counters := Process.Counters()
	status.Connections = counters.message()
	fillTLS(status, counters)
	if ClientIP.Of(s.core.Tables()).Mode == configv1.ClientIpMode_CLIENT_IP_MODE_PROXY_PROTOCOL && s.anyProxyPeer.Load() {
		status.Warnings = append(status.Warnings, "proxy_protocol mode without proxy peers (--proxy-peers): whoever connects can name any client address, so none is exempt")
	}
}

// fillTLS tells what the listeners know of handshakes; who decides them tells the rest.
func fillTLS(status *edgev1.GetStatusResponse, counters Counters) {
	if status.Tls == nil {
		status.Tls = &edgev1.TlsCounters{}
	}
	status.Tls.InProgress = uint64(counters.Handshakes)
	for _, limit := range []reason{inHandshake, networkHandshakes} {
		if n := counters.Refused[reasonNames[limit]] + counters.Evicted[reasonNames[limit]]; n > 0 {
			if status.Tls.Refused == nil {
				status.Tls.Refused = map[string]uint64{}
			}
			status.Tls.Refused["limit"] += n
		}
	}
}
