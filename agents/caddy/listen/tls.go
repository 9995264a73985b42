package listen

import (
	"crypto/rand"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
	"edge.svc/caddy/pages"
)

// The first byte of a record with a hello.
const handshakeRecord = 0x16

const (
	// What a client that does not speak TLS may still send while it is answered, and how long it may take.
	maxUnread  = 64 << 10
	unreadTime = 500 * time.Millisecond
	// How long handshakes may go on when nothing more is accepted, and how often it is looked whether they do.
	finishTime = time.Second
	finishLook = 5 * time.Millisecond
)

var (
	errNotTLS         = errors.New("the client does not speak TLS")
	errManyHandshakes = errors.New("too many TLS handshakes are in progress")
)

// nobody decides where nothing knows certificates: every handshake fails.
type nobody struct{}

func (nobody) ServerConfig() *tls.Config {
	return &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return nil, errNoTLS }}
}

func (nobody) Failed(error) {}

// idleShakers is how many goroutines wait for the next handshake. Each has a stack that has grown for one: growing it
// anew is a twentieth of what a handshake costs.
const idleShakers = 32

// tlsListener makes the handshakes of connections before the server gets them, each in a goroutine that serves no other
// meanwhile: what they need of the stack is not kept with the connection, and the server knows none that never was one.
type tlsListener struct {
	*listener
	decides exchange.TLS
	config  *tls.Config
	shaken  chan net.Conn
	// Connections for goroutines that wait, and how many do.
	arrived chan *Conn
	idle    atomic.Int32
	// Handshakes under way.
	shaking atomic.Int64
	// Closed when nothing more is accepted, with the reason.
	ended chan struct{}
	err   error
}

func newTLSListener(l *listener) *tlsListener {
	decides := core.Find[exchange.TLS](l.wrapper.core)
	if decides == nil {
		decides = nobody{}
	}
	t := &tlsListener{listener: l, decides: decides, config: decides.ServerConfig(), shaken: make(chan net.Conn), arrived: make(chan *Conn), ended: make(chan struct{})}
	go t.run()
	return t
}

func (t *tlsListener) run() {
	for {
		c, err := t.accept()
		if err != nil {
			t.finish()
			t.err = err
			close(t.ended)
			return
		}
		c.overTLS = true
		t.shaking.Add(1)
		select {
		case t.arrived <- c:
		default:
			go t.shakeAll(c)
		}
	}
}

// finish waits for the handshakes under way, for a while: those clients know of no end.
func (t *tlsListener) finish() {
	for limit := time.Now().Add(finishTime); t.shaking.Load() > 0 && time.Now().Before(limit); {
		time.Sleep(finishLook)
	}
}

// shakeAll makes the handshake of a connection, and of those that come after it.
func (t *tlsListener) shakeAll(c *Conn) {
	for {
		contained("a handshake", func() { t.shake(c) })
		t.shaking.Add(-1)
		if t.idle.Add(1) > idleShakers {
			t.idle.Add(-1)
			return
		}
		select {
		case c = <-t.arrived:
			t.idle.Add(-1)
		case <-t.ended:
			return
		}
	}
}

// shake makes the handshake of a connection. The time for it is that for the head of its first request.
func (t *tlsListener) shake(c *Conn) {
	conn := tls.Server(c, t.config)
	err := conn.Handshake()
	c.registry.limiter.shaken(c)
	if err != nil {
		switch {
		case errors.Is(err, errNotTLS):
			c.askForTLS()
		case !errors.Is(err, errManyHandshakes):
			t.decides.Failed(err)
		}
		_ = c.Close()
		return
	}
	var served net.Conn = conn
	if conn.ConnectionState().NegotiatedProtocol != protoHTTP2 {
		served = newSecureConn(conn, c)
	}
	select {
	case t.shaken <- served:
	case <-t.ended:
		_ = c.Close()
	}
}

// Accept returns the next connection with which TLS is spoken.
func (t *tlsListener) Accept() (net.Conn, error) {
	select {
	case conn := <-t.shaken:
		return conn, nil
	case <-t.ended:
		return nil, t.err
	}
}

// beginsTLS looks at the first bytes of a connection on a port with TLS.
func (c *Conn) beginsTLS(p []byte) error {
	if p[0] != handshakeRecord {
		return errNotTLS
	}
	if abort(c.registry.limiter.shake(c), c) {
		return errManyHandshakes
	}
	return nil
}

// askForTLS answers a client that speaks something else. Nobody has read its request, so the page is the same for all.
func (c *Conn) askForTLS() {
	var id [16]byte
	_, _ = rand.Read(id[:])
	page := pages.Raw(http.StatusBadRequest, pages.HTTPSRequired, hex.EncodeToString(id[:]))
	limit := time.Now().Add(unreadTime)
	_ = c.Conn.SetDeadline(limit)
	n, err := c.Conn.Write(page)
	c.meter.Sent(page[:n])
	if err != nil || c.CloseWrite() != nil {
		return
	}
	// What is not read when the connection closes would take the answer with it.
	_, _ = io.CopyN(io.Discard, c.Conn, maxUnread)
}
