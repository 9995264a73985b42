package hold

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"

	"golang.org/x/sys/unix"
)

// open opens a socket as the data plane itself would, and returns its descriptor.
func open(s Socket) (int, error) {
	if _, _, err := s.parse(); err != nil {
		return -1, err
	}
	var config net.ListenConfig
	var opened interface {
		syscall.Conn
		Close() error
	}
	if s.Network == "udp" {
		conn, err := config.ListenPacket(context.Background(), "udp", s.Address)
		if err != nil {
			return -1, err
		}
		opened = conn.(*net.UDPConn)
	} else {
		listener, err := config.Listen(context.Background(), "tcp", s.Address)
		if err != nil {
			return -1, err
		}
		opened = listener.(*net.TCPListener)
	}
	defer opened.Close()
	return duplicate(opened)
}

// duplicate returns another descriptor of what Go has open. Unlike File, it leaves the shared state of both alone.
func duplicate(opened syscall.Conn) (int, error) {
	raw, err := opened.SyscallConn()
	if err != nil {
		return -1, err
	}
	copied := -1
	var failed error
	err = raw.Control(func(fd uintptr) { copied, failed = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0) })
	return copied, errors.Join(err, failed)
}

// is says what is wrong where a descriptor is not the socket of this name.
func (s Socket) is(fd int) error {
	address, port, err := s.parse()
	if err != nil {
		return err
	}
	want := unix.SOCK_STREAM
	if s.Network == "udp" {
		want = unix.SOCK_DGRAM
	}
	kind, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE)
	if err != nil {
		return err
	}
	if kind != want {
		return fmt.Errorf("the descriptor is no socket of %s", s.Network)
	}
	if s.Network == "tcp" {
		if listens, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ACCEPTCONN); err != nil || listens == 0 {
			return errors.New("the socket does not listen")
		}
	}
	name, err := unix.Getsockname(fd)
	if err != nil {
		return err
	}
	var bound netip.AddrPort
	switch name := name.(type) {
	case *unix.SockaddrInet4:
		bound = netip.AddrPortFrom(netip.AddrFrom4(name.Addr), uint16(name.Port))
	case *unix.SockaddrInet6:
		bound = netip.AddrPortFrom(netip.AddrFrom16(name.Addr).Unmap(), uint16(name.Port))
	default:
		return errors.New("the socket is not of the internet")
	}
	same := bound.Addr() == address.WithZone("").Unmap()
	if !address.IsValid() || address.IsUnspecified() {
		same = bound.Addr().IsUnspecified()
	}
	if !same || bound.Port() != port {
		return fmt.Errorf("the socket is bound to %s", bound)
	}
	return nil
}
