package listen

import (
	"context"
	"errors"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

var errNoTLS = errors.New("no module decides about TLS handshakes")

// listenUDP opens the UDP port beside a socket of TCP. Another process may have it too for a moment, as with TCP: one that
// takes over from this one.
func listenUDP(beside net.Addr) (net.PacketConn, error) {
	config := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		var failure error
		err := raw.Control(func(fd uintptr) { failure = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1) })
		return errors.Join(err, failure)
	}}
	return config.ListenPacket(context.Background(), "udp", beside.String())
}
