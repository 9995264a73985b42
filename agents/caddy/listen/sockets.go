package listen

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/caddyserver/caddy/v2"
	"golang.org/x/sys/unix"

	"edge.svc/caddy/core"
	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
	"edge.svc/caddy/internal/hold"
)

// The networks on which Caddy's two servers listen: without TLS, and with.
const (
	networkHTTP  = "svc-http"
	networkHTTPS = "svc-https"
)

func init() {
	for network, overTLS := range map[string]bool{networkHTTP: false, networkHTTPS: true} {
		caddy.RegisterNetwork(network, func(ctx context.Context, _, host, portRange string, offset uint, config net.ListenConfig) (any, error) {
			module, ok := ctx.(caddy.Context)
			if !ok {
				return nil, errors.New("only an HTTP server of Caddy may use this network")
			}
			c, err := core.FromContext(module)
			if err != nil {
				return nil, err
			}
			number, err := strconv.ParseUint(portRange, 10, 16)
			if err != nil || offset != 0 {
				return nil, fmt.Errorf("%q must be one port", portRange)
			}
			return portsOf.Of(c).listen(ctx, overTLS, host, uint16(number), config)
		})
	}
}

// sockets is a listener that accepts from several sockets, which come and go while it serves: the one of its address, and
// those of the cluster's ports on the same host.
type sockets struct {
	ports  *ports
	tls    bool
	host   string
	number uint16
	config net.ListenConfig
	// Whose listener it is, once there is a server; for the ports of HTTP/3, which lie beside those of TLS.
	wrapper *Wrapper

	// By the port as configuration names it, under the lock of ports; with what is wrong with those that are not open.
	open   map[uint16]*socket
	failed map[uint16]string

	accepted  chan *socketConn
	accepting sync.WaitGroup
	done      chan struct{}
	closeOnce sync.Once
}

// socket is one that is listened on.
type socket struct {
	net.Listener
	name uint16
	// The name under which the holder has it.
	held hold.Socket
	// closed says that connections that came over it are to end when they have nothing to do.
	closed atomic.Bool
}

// socketConn is a connection with the socket it came over.
type socketConn struct {
	net.Conn
	socket *socket
}

func (s *sockets) baseName() uint16 {
	if s.tls {
		return core.HTTPSPort
	}
	return core.HTTPPort
}

// update opens the ports of the cluster that wants answers true for and closes others; it tries the address itself again
// where it is not open.
func (s *sockets) update(wants func(name uint16) bool, extra []uint16, isBase func(number uint16) bool) {
	for name, at := range s.open {
		if name != s.baseName() && !wants(name) {
			s.release(at)
			delete(s.open, name)
		}
	}
	for name := range s.failed {
		if name != s.baseName() && !wants(name) {
			delete(s.failed, name)
		}
	}
	for _, name := range append([]uint16{s.baseName()}, extra...) {
		switch {
		case s.open[name] != nil || name != s.baseName() && !wants(name):
		case name != s.baseName() && isBase(name):
			s.failed[name] = "it is one of the node's usual ports"
		default:
			_ = s.openPort(context.Background(), name)
		}
	}
}

// openPort opens a port, by its name. What fails is kept to be told.
func (s *sockets) openPort(ctx context.Context, name uint16) error {
	number := name
	if name == s.baseName() {
		number = s.number
	}
	listener, held, err := s.ports.holder.listen(s.host, number, func() (net.Listener, error) {
		config := s.config
		if name == core.HTTPPort {
			// As Caddy does: a process that takes over may listen before the former one has ended.
			config.Control = sharePort
		}
		return config.Listen(ctx, "tcp", hostPort(s.host, number))
	})
	if err != nil {
		s.failed[name] = reasonOf(err)
		return err
	}
	delete(s.failed, name)
	at := &socket{Listener: listener, name: name, held: held}
	s.open[name] = at
	s.opened(at)
	s.accepting.Go(func() { s.acceptFrom(at) })
	return nil
}

func sharePort(_, _ string, raw syscall.RawConn) error {
	var failure error
	err := raw.Control(func(descriptor uintptr) {
		failure = unix.SetsockoptInt(int(descriptor), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
	})
	return errors.Join(err, failure)
}

// reasonOf is what is wrong, without the address, which is told beside it.
func reasonOf(err error) string {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errno.Error()
	}
	return err.Error()
}

// The pause after a failure to accept, such as for want of descriptors, doubles up to the longest.
const (
	shortestPause = 5 * time.Millisecond
	longestPause  = time.Second
)

// acceptFrom hands on the connections of a socket until it is closed. One that fails for another reason is closed and
// opened again.
func (s *sockets) acceptFrom(at *socket) {
	pause := shortestPause
	for {
		conn, err := at.Accept()
		if err != nil {
			if at.closed.Load() {
				return
			}
			if temporary, ok := err.(interface{ Temporary() bool }); ok && temporary.Temporary() {
				time.Sleep(pause)
				pause = min(2*pause, longestPause)
				continue
			}
			s.lost(at, err)
			return
		}
		pause = shortestPause
		select {
		case s.accepted <- &socketConn{conn, at}:
		case <-s.done:
			_ = conn.Close()
			return
		}
	}
}

func (s *sockets) lost(at *socket, err error) {
	s.ports.mu.Lock()
	defer s.ports.mu.Unlock()
	if s.open[at.name] == at {
		s.release(at)
		delete(s.open, at.name)
		s.failed[at.name] = reasonOf(err)
		s.ports.look()
	}
}

// belongTo says whose listener it is.
func (s *sockets) belongTo(w *Wrapper) {
	s.ports.mu.Lock()
	defer s.ports.mu.Unlock()
	s.wrapper = w
	for _, at := range s.open {
		s.opened(at)
	}
}

func (s *sockets) opened(at *socket) {
	if s.tls && s.wrapper != nil {
		s.wrapper.openedTLS(at.Addr(), at.name)
	}
}

// end closes a socket here. A holder that has it keeps it open for the next process.
func (s *sockets) end(at *socket) {
	at.closed.Store(true)
	if s.tls && s.wrapper != nil {
		s.wrapper.closedTLS(at.Addr())
	}
	_ = at.Close()
}

// release closes a socket for good, and what lies beside it.
func (s *sockets) release(at *socket) {
	s.end(at)
	s.ports.holder.release(at.held, besideOf(at.Addr()))
}

// Accept returns the next connection of any of the sockets.
func (s *sockets) Accept() (net.Conn, error) {
	select {
	case conn := <-s.accepted:
		return conn, nil
	case <-s.done:
		return nil, net.ErrClosed
	}
}

// Close closes all sockets. What was accepted before is still handed on: its client knows of no end.
func (s *sockets) Close() error {
	s.closeOnce.Do(func() {
		s.ports.forget(s)
		handed := make(chan struct{})
		go func() {
			s.accepting.Wait()
			close(handed)
		}()
		go func() {
			select {
			case <-handed:
			case <-time.After(finishTime):
			}
			close(s.done)
		}()
	})
	return nil
}

// closeAll is of the lock of ports. Connections go on: the server ends them in its own way.
func (s *sockets) closeAll() {
	for _, at := range s.open {
		s.end(at)
	}
	clear(s.open)
	clear(s.failed)
}

// Addr is the address that the listener was made for.
func (s *sockets) Addr() net.Addr {
	s.ports.mu.Lock()
	defer s.ports.mu.Unlock()
	if at := s.open[s.baseName()]; at != nil {
		return at.Addr()
	}
	return &net.TCPAddr{IP: net.ParseIP(s.host), Port: int(s.number)}
}

func (s *sockets) problems() (all []*edgev1.PortProblem) {
	for _, name := range slices.Sorted(maps.Keys(s.failed)) {
		number := name
		if name == s.baseName() {
			number = s.number
		}
		all = append(all, &edgev1.PortProblem{Port: uint32(number), Reason: s.failed[name]})
	}
	return all
}
