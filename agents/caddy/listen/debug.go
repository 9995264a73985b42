//go:build svcdebug

package listen

import (
	"context"
	"net"
	"net/netip"
	"sync"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
)

// Builds for tests tell the fingerprint of every client that said hello, whatever became of its handshake, by the port that
// it came from. What nodes run has no such call.
func init() {
	core.RegisterCall("/debug/fingerprint", func(_ context.Context, _ *core.Core, port *wrapperspb.UInt32Value) (*wrapperspb.StringValue, error) {
		said.Lock()
		defer said.Unlock()
		return wrapperspb.String(said.byPort[uint16(port.GetValue())]), nil
	})
}

// said holds the last fingerprint of each port.
var said = struct {
	sync.Mutex
	byPort map[uint16]string
}{byPort: map[uint16]string{}}

// noteHello is told of each hello.
func noteHello(remote net.Addr, h *exchange.Handshake) {
	if address, err := netip.ParseAddrPort(remote.String()); err == nil {
		said.Lock()
		said.byPort[address.Port()] = h.JA4
		said.Unlock()
	}
}
