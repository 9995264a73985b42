package listen

import (
	"errors"
	"net"
	"net/netip"
	"path/filepath"
	"sync/atomic"
	"syscall"

	"go.uber.org/zap"

	"edge.svc/caddy/core"
	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
	"edge.svc/caddy/internal/hold"
)

// holdSocket is where a process answers that keeps this one's sockets open while it is started anew.
var holdSocket = core.NewOption("hold_socket", "", func(path string) error {
	if !filepath.IsAbs(path) {
		return errors.New("must be an absolute path")
	}
	return nil
})

// holder is that process as the listeners see it. Without one, and while it does not respond, they open sockets themselves;
// those are given to it as soon as it does.
type holder struct {
	core *core.Core
	// Nil without one.
	client *hold.Client
	away   atomic.Bool
}

var holderOf = core.NewComponent("holder", func(c *core.Core) *holder {
	h := &holder{core: c}
	if path := holdSocket.Of(c); path != "" {
		h.client = hold.NewClient(path)
	}
	return h
})

// listen returns a listener on a TCP address, and the name under which the holder has it or is to have it. open opens it
// without a holder.
func (h *holder) listen(host string, number uint16, open func() (net.Listener, error)) (net.Listener, hold.Socket, error) {
	name := hold.Socket{Network: "tcp", Address: h.resolve(host, number)}
	if h.client == nil || number == 0 {
		listener, err := open()
		return listener, hold.Socket{}, err
	}
	listener, err := h.client.Listen(name.Address)
	if h.saw(err) {
		return listener, name, err
	}
	listener, err = open()
	return listener, name, err
}

// listenUDP returns the UDP port beside a socket of TCP.
func (h *holder) listenUDP(beside net.Addr) (net.PacketConn, error) {
	if h.client == nil {
		return listenUDP(beside)
	}
	conn, err := h.client.ListenPacket(besideOf(beside).Address)
	if h.saw(err) {
		return conn, err
	}
	return listenUDP(beside)
}

// besideOf is the name of the UDP port beside a socket of TCP.
func besideOf(address net.Addr) hold.Socket {
	return hold.Socket{Network: "udp", Address: address.String()}
}

// resolve gives a host the address that is listened on: the holder asks no name service.
func (h *holder) resolve(host string, number uint16) string {
	text := hostPort(host, number)
	if _, err := netip.ParseAddr(host); host != "" && err != nil {
		if address, err := net.ResolveTCPAddr("tcp", text); err == nil {
			return address.String()
		}
	}
	return text
}

// release has the holder close sockets.
func (h *holder) release(names ...hold.Socket) {
	if h.client == nil {
		return
	}
	for _, name := range names {
		if name.Address != "" {
			h.saw(h.client.Close(name))
		}
	}
}

// keep gives the holder what it lacks, such as after it was started anew, and has it close what it should not have.
func (h *holder) keep(all map[hold.Socket]syscall.Conn, settled bool) {
	if h.client == nil {
		return
	}
	http3Ports.Of(h.core).held(all)
	has, err := h.client.List()
	if !h.saw(err) || err != nil {
		return
	}
	for _, name := range has {
		if _, wanted := all[name]; wanted {
			delete(all, name)
		} else if settled {
			h.core.Log().Info("the holder closes a socket that nobody needs any more", zap.Stringer("socket", name))
			h.release(name)
		}
	}
	for name, opened := range all {
		if err := h.client.Adopt(name, opened); err != nil {
			h.saw(err)
			h.core.Log().Warn("cannot give a socket to the holder", zap.Stringer("socket", name), zap.Error(err))
		}
	}
}

// saw reports whether the holder responded, be it with an error.
func (h *holder) saw(err error) bool {
	away := errors.Is(err, hold.ErrAway)
	if h.away.Swap(away) != away {
		if away {
			h.core.Log().Warn("the holder of sockets does not respond", zap.Error(err))
		} else {
			h.core.Log().Info("the holder of sockets responds")
		}
	}
	return !away
}

// FillStatus warns when ports would close with this process.
func (h *holder) FillStatus(status *edgev1.GetStatusResponse) {
	if h.away.Load() {
		status.Warnings = append(status.Warnings, "the holder of sockets does not respond: a restart of the data plane closes its ports for a moment")
	}
}
