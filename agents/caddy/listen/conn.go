package listen

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pires/go-proxyproto"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
)

// Enough for a PROXY header with its extensions; a longer one closes the connection.
const proxyBufferBytes = 4096

// Conn is a client connection. The PROXY header is read with the first bytes, by the goroutine of the connection: a
// client that sends nothing holds up only itself.
type Conn struct {
	net.Conn
	// Peer is the TCP peer, invalid on other networks.
	Peer netip.Addr
	// The port that was connected to, 0 on other networks, and as configuration names it.
	port, named uint16
	// Where it came from, nil on networks that are not ours.
	socket *socket
	// TLS is spoken on the port.
	overTLS bool
	// Set while the hello of TLS is looked at, by the goroutine of the connection; requests come after.
	handshake *exchange.Handshake

	core     *core.Core
	registry *Registry
	// What it carries, for whom. Without TLS only: bytes are those of HTTP.
	meter exchange.Meter
	shard *registryShard
	// Neighbours in the shard, under its lock.
	next, prev *Conn
	closed     atomic.Bool
	// Of the limiter, under its lock.
	standing standing
	// The head of a request was whole.
	requested atomic.Bool

	// Whether its listener expects a PROXY header, nil where the cluster's setting for HTTP says so.
	proxy func(*exchange.Tables) bool

	// Of the reading goroutine.
	started bool
	greeted bool
	rest    *bufio.Reader

	http1   http1
	reads   reads
	records records
	// State of TLS, for requests of HTTP/1; else nil.
	secure *tls.ConnectionState

	// No TLS lies between the connection and its requests.
	plain bool
	// Requests share the connection, as in HTTP/2.
	shared bool
	// What its client takes over HTTP/2.
	flow flow
	// Requests in a row that found no room.
	refusals atomic.Int32
	// Of the goroutine that answers: when writes were bounded last, how many bytes of an answer are still to be gathered,
	// and what was gathered of it.
	bounded   time.Time
	gathering int
	held      *[]byte
	// The next write is the head of a response, which waits for a file.
	holding bool

	mu        sync.Mutex
	proxied   netip.Addr
	exchanges *Exchange
}

var (
	errNoProxyAddress = errors.New("the PROXY header has no TCP address")
	errNoRoom         = errors.New("the client in the PROXY header has too many connections")
)

// Read reads the PROXY header first where the listener expects one.
func (c *Conn) Read(p []byte) (int, error) {
	if !c.plain {
		return c.readRaw(p)
	}
	if len(p) == 1 && c.rest == nil && c.reads.later() {
		return 0, nil
	}
	return c.http1.read(p, c.readRaw)
}

// begin reads the PROXY header, once. It closes the connection where it fails.
func (c *Conn) begin() error {
	if c.started {
		return nil
	}
	c.started = true
	if !c.expectsProxy(c.core.Tables()) {
		return nil
	}
	err := c.readProxyHeader()
	if err != nil {
		c.Close()
	}
	return err
}

func (c *Conn) readRaw(p []byte) (int, error) {
	if err := c.begin(); err != nil {
		return 0, err
	}
	if c.rest != nil {
		n, err := c.rest.Read(p)
		if c.rest.Buffered() == 0 {
			c.rest = nil
		}
		return c.took(p[:n], err)
	}
	n, err := c.reads.read(c.Conn, p, c.plain)
	return c.took(p[:n], err)
}

// SetReadDeadline limits reads; it holds for one that is under way, too.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.reads.setDeadline(c.Conn, t) }

// SetDeadline limits reads and writes.
func (c *Conn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.Conn.SetWriteDeadline(t))
}

// took looks at what was read.
func (c *Conn) took(p []byte, err error) (int, error) {
	if c.overTLS && !c.greeted && len(p) > 0 {
		c.greeted = true
		if refused := c.beginsTLS(p); refused != nil {
			return 0, refused
		}
	}
	c.received(p)
	return len(p), err
}

func (c *Conn) received(p []byte) {
	if c.plain && !c.shared {
		c.meter.Received(p)
	}
}

// headerReader counts what comes before any request.
type headerReader struct {
	net.Conn
	bytes int
}

func (r *headerReader) Read(p []byte) (int, error) {
	n, err := r.Conn.Read(p)
	r.bytes += n
	return n, err
}

func (c *Conn) readProxyHeader() error {
	raw := &headerReader{Conn: c.Conn}
	reader := bufio.NewReaderSize(raw, proxyBufferBytes)
	// Who fails here has sent nothing but this.
	defer func() {
		rest := 0
		if c.rest != nil {
			rest = c.rest.Buffered()
		}
		if c.plain {
			c.meter.ReceivedBefore(raw.bytes - rest)
		}
	}()
	header, err := readProxy(reader)
	if err != nil {
		// Who sends nothing and leaves, as checks of balancers do, breaks nothing.
		if !errors.Is(err, io.EOF) {
			c.registry.limiter.refuse(proxyHeader)
		}
		return err
	}
	client := c.Peer
	if !header.Command.IsLocal() && !header.TransportProtocol.IsUnspec() {
		source, ok := header.SourceAddr.(*net.TCPAddr)
		if !ok {
			c.registry.limiter.refuse(proxyHeader)
			return errNoProxyAddress
		}
		client = source.AddrPort().Addr().WithZone("").Unmap()
		if abort(c.registry.limiter.identify(c, client), c) {
			return errNoRoom
		}
	}
	c.mu.Lock()
	c.proxied = client
	c.mu.Unlock()
	if reader.Buffered() > 0 {
		c.rest = reader
	}
	return nil
}

const (
	proxyLine = "PROXY "
	// The longest line of version 1, with its end.
	maxProxyLine = 107
)

// readProxy reads a PROXY header. One of version 2 without an address family, which its parser refuses, says as little as
// one of a check of the balancer itself: the peer is the client.
func readProxy(reader *bufio.Reader) (*proxyproto.Header, error) {
	awaitLine(reader)
	const before, family = 12, 13
	if p, err := reader.Peek(1); err == nil && p[0] == proxyproto.SIGV2[0] {
		p, err := reader.Peek(before + 4)
		if err == nil && bytes.HasPrefix(p, proxyproto.SIGV2) && p[before] == byte(proxyproto.PROXY) && p[family] == byte(proxyproto.UNSPEC) {
			length := before + 4 + int(binary.BigEndian.Uint16(p[before+2:]))
			if _, err := reader.Peek(length); err != nil {
				return nil, err
			}
			_, err = reader.Discard(length)
			return &proxyproto.Header{Version: 2, Command: proxyproto.LOCAL}, err
		}
	}
	return proxyproto.Read(reader)
}

// awaitLine waits until a PROXY header of version 1 has come whole, because its parser takes nothing else, while a
// network may deliver it in any two segments. Everything else, and what ends before, is for the parser to judge.
func awaitLine(reader *bufio.Reader) {
	for n := 1; n <= maxProxyLine; n++ {
		p, err := reader.Peek(n)
		if err != nil || n <= len(proxyLine) && p[n-1] != proxyLine[n-1] || p[n-1] == '\n' {
			return
		}
	}
}

// Proxied is the address from the PROXY header, invalid without one.
func (c *Conn) Proxied() netip.Addr {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.proxied
}

// Port is the one that was connected to, as configuration names it.
func (c *Conn) Port() uint16 { return c.named }

// SetHandshake notes what the handshake decided. It is called before any request is read.
func (c *Conn) SetHandshake(h *exchange.Handshake) {
	c.handshake = h
	noteHello(c.RemoteAddr(), h)
}

// client is whose connection it is; invalid while it is not known because the PROXY header has not come yet.
func (c *Conn) client(tables *exchange.Tables) netip.Addr {
	if c.expectsProxy(tables) {
		return c.Proxied()
	}
	return c.Peer
}

// Close closes the connection and leaves the registry.
func (c *Conn) Close() error {
	if !c.closed.CompareAndSwap(false, true) {
		return net.ErrClosed
	}
	c.registry.remove(c)
	err := c.Conn.Close()
	c.reads.close()
	c.meter.Close()
	return err
}

// CloseWrite ends the sending half. The HTTP server does so before it closes on a client that is still sending: without
// it the reset would overtake the answer.
func (c *Conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// Abort closes the connection with a reset: what is still to be sent is thrown away and no port lingers.
func (c *Conn) Abort() {
	if tcp, ok := c.Conn.(interface{ SetLinger(int) error }); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}

type connKey struct{}

// FromRequest returns the connection of a request, nil when it did not come through the wrapper. Every handler asks for it
// before anything else. It also completes what the request says of TLS.
func FromRequest(r *http.Request) *Conn {
	c := FromContext(r.Context())
	if c != nil && r.TLS == nil {
		r.TLS = c.secure
	}
	return c
}

// FromContext returns the connection of a request, nil when it did not come through the wrapper. That is how a connection
// is known to have sent the head of a request, for which its time is limited, and who writes its response.
func FromContext(ctx context.Context) *Conn {
	c, _ := ctx.Value(connKey{}).(*Conn)
	if c != nil {
		c.http1.handled.Store(true)
		c.asked()
	}
	return c
}

// Plain reports whether requests come over the connection itself, without TLS.
func (c *Conn) Plain() bool { return c.plain }

// withConn puts the connection under a TLS layer, or the connection itself, into the context of its requests. It reads
// nothing.
func withConn(ctx context.Context, conn net.Conn) context.Context {
	if c, ok := conn.(*Conn); ok {
		c.plain = true
		var end context.CancelFunc
		// Closing ends it.
		ctx, end = context.WithCancel(ctx)
		c.reads.watchOver(c.Conn, end)
	}
	secure, _ := conn.(interface{ ConnectionState() tls.ConnectionState })
	for {
		switch c := conn.(type) {
		case *Conn:
			c.shared = secure != nil && secure.ConnectionState().NegotiatedProtocol == "h2"
			return context.WithValue(ctx, connKey{}, c)
		case *secureConn:
			c.under.secure = c.state
			return context.WithValue(ctx, connKey{}, c.under)
		case interface{ NetConn() net.Conn }:
			conn = c.NetConn()
		default:
			return ctx
		}
	}
}
