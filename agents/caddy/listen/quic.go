package listen

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
	"go.uber.org/zap"
	"go.uber.org/zap/exp/zapslog"

	"edge.svc/caddy/exchange"
)

const (
	// As of TCP: a connection without a request for so long ends, and what is larger than this header gets a bare 431.
	quicIdle        = 75 * time.Second
	maxHeaderBlock  = 96 << 10
	maxQUICRequests = 100
	// HTTP/3 needs three of a client; others are kinds that nobody knows.
	maxQUICStreams = 8
	// A handshake ends without a packet for so long, and after twice the time in any case.
	quicHandshakeIdle = 5 * time.Second
	// What a client may send ahead of who reads it, of a request and of all of a connection: at first, and where it is read
	// as fast as it comes.
	streamWindow, connectionWindow       = 64 << 10, 128 << 10
	maxStreamWindow, maxConnectionWindow = 2 << 20, 4 << 20
	// Handshakes of clients whose address nobody has verified; above, they have to answer a packet first. Who sends with
	// the addresses of others then takes no room from them. It is at most a part of those that may be under way.
	maxUnverified  = 64
	partUnverified = 4
	// Enough that two nodes behind one address, or two processes, never make the same.
	connectionIDBytes = 8
	// From GOAWAY to the end of what is still under way.
	quicFarewell = time.Second
)

var (
	errQUICNoRoom = errors.New("the client has too many connections")
	errQUICEnded  = errors.New("the connection was closed before its ClientHello was complete")
)

// quicPort serves HTTP/3 on one UDP socket.
type quicPort struct {
	wrapper   *Wrapper
	tls       exchange.TLS
	named     uint16
	real      uint16
	socket    net.PacketConn
	transport *quic.Transport
	listener  *quic.Listener
	server    *http3Server
	done      chan struct{}
	// Handshakes of addresses that are not verified.
	unverified atomic.Int64
}

// serveQUIC answers HTTP/3 on a socket, which it closes at its end; the port is the one of configuration.
func (w *Wrapper) serveQUIC(socket net.PacketConn, named uint16, decider exchange.TLS, secret *quicSecret, handler http.Handler) (*quicPort, error) {
	p := &quicPort{wrapper: w, tls: decider, named: named, socket: socket, done: make(chan struct{})}
	if udp, ok := socket.LocalAddr().(*net.UDPAddr); ok {
		p.real = uint16(udp.Port)
	}
	unverified := w.registry.limiter.unverified()
	p.transport = &quic.Transport{
		Conn: socket, ConnectionIDLength: connectionIDBytes,
		StatelessResetKey: secret.reset(), TokenGeneratorKey: secret.token(),
		VerifySourceAddress: func(net.Addr) bool { return p.unverified.Load() >= unverified },
		ConnContext:         p.connect,
	}
	listener, err := p.transport.Listen(http3.ConfigureTLSConfig(p.config()), &quic.Config{
		HandshakeIdleTimeout: quicHandshakeIdle, MaxIdleTimeout: quicIdle,
		MaxIncomingStreams: maxQUICRequests, MaxIncomingUniStreams: maxQUICStreams,
		InitialStreamReceiveWindow: streamWindow, InitialConnectionReceiveWindow: connectionWindow,
		MaxStreamReceiveWindow: maxStreamWindow, MaxConnectionReceiveWindow: maxConnectionWindow,
		AllowConnectionWindowIncrease: func(conn *quic.Conn, bytes uint64) bool {
			c, _ := conn.Context().Value(connKey{}).(*Conn)
			return c != nil && w.registry.limiter.widen(c, bytes)
		},
		// Early data can be sent again by anybody who saw it.
		Allow0RTT: false,
	})
	if err != nil {
		return nil, errors.Join(err, p.transport.Close(), socket.Close())
	}
	p.listener = listener
	p.server = newHTTP3Server(w, handler)
	go func() {
		defer close(p.done)
		p.server.serve(listener)
	}()
	return p, nil
}

// quicLog takes what quic-go has to say when something went wrong here, such as a panic that nobody else caught. What clients
// do wrong is counted.
func quicLog(log *zap.Logger) *slog.Logger {
	return slog.New(zapslog.NewHandler(log.WithOptions(zap.IncreaseLevel(zap.ErrorLevel)).Core()))
}

// ServeHTTP3 answers HTTP/3 on a socket, for servers outside of Caddy; see New. The socket is closed with what it returns.
func (w *Wrapper) ServeHTTP3(socket net.PacketConn, port uint16, decider exchange.TLS, handler http.Handler) (end func(), err error) {
	p, err := w.serveQUIC(socket, port, decider, readQUICSecret(w.core.StateDir()), handler)
	if err != nil {
		return nil, err
	}
	return p.end, nil
}

// connect takes a connection in with the first packet of its client: the record that limits, bans, its handshake and its
// requests share.
func (p *quicPort) connect(ctx context.Context, info *quic.ClientInfo) (context.Context, error) {
	w := p.wrapper
	peer := peerOf(info.RemoteAddr)
	record := &quicConn{local: p.socket.LocalAddr(), remote: info.RemoteAddr}
	if !info.AddrVerified {
		record.unverified = &p.unverified
		p.unverified.Add(1)
	}
	c := &Conn{Conn: record, Peer: peer, port: p.real, named: p.named, core: w.core}
	if !w.registry.admit(c, w.countedFor(w.core.Tables(), peer, proxyMode(w.core.Tables()))) || abort(w.registry.limiter.shake(c), c) {
		c.shaken()
		return nil, errQUICNoRoom
	}
	context.AfterFunc(ctx, func() {
		cause := context.Cause(ctx)
		if c.shaken() {
			p.tls.Failed(cause)
		} else if breach := breachOf(cause); breach != "" {
			w.registry.http3Errors.add(breach)
		}
		_ = c.Close()
	})
	return context.WithValue(ctx, connKey{}, c), nil
}

// config has the handshakes of QUIC decided as those of TCP are, with the record of the connection in the place of one.
func (p *quicPort) config() *tls.Config {
	config := p.tls.ServerConfig().Clone()
	decide := config.GetConfigForClient
	config.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		c, ok := hello.Context().Value(connKey{}).(*Conn)
		if !ok || c.Conn.(*quicConn).isClosed() {
			return nil, errQUICEnded
		}
		hello.Conn = c
		decided, err := decide(hello)
		if decided == nil || decided.GetCertificate == nil {
			return decided, err
		}
		// Who looks for the certificate is given no connection by QUIC either.
		decided = decided.Clone()
		certificate := decided.GetCertificate
		decided.GetCertificate = func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			hello.Conn = c
			return certificate(hello)
		}
		return decided, err
	}
	return config
}

func (p *quicPort) address() net.Addr { return p.socket.LocalAddr() }

// close ends the port. Clients hear that they have to connect anew; what they have under way goes on until the context
// ends.
func (p *quicPort) close(ctx context.Context) {
	_ = p.listener.Close()
	<-p.done
	p.server.close(ctx)
	_ = p.transport.Close()
	_ = p.socket.Close()
}
