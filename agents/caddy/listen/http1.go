package listen

import (
	"crypto/rand"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"edge.svc/caddy/exchange"
	"edge.svc/caddy/pages"
)

// http1 is what the edge changes of a connection on which net/http speaks HTTP/1: empty lines before requests, and the
// responses that net/http makes itself. It is inside TLS.
type http1 struct {
	lead lead
	// A handler has the request: what is written is its own.
	handled atomic.Bool
	// A response of net/http went out as one of the edge. What else it writes of it is left out.
	refused atomic.Bool
}

// read reads until there is something for the server.
func (h *http1) read(p []byte, from func([]byte) (int, error)) (int, error) {
	for {
		n, err := from(p)
		if n = h.lead.filter(p[:n]); n > 0 || err != nil || len(p) == 0 {
			return n, err
		}
	}
}

// write writes what the server says. A response that it makes before any handler sees the request has neither
// X-Svc-Error nor a request id: it leaves as a response of the edge instead.
func (h *http1) write(p []byte, to func([]byte) (int, error)) (int, error) {
	switch {
	case h.handled.Load():
	case h.refused.Load():
		return len(p), nil
	default:
		status := exchange.StatusOf(p)
		if status < 400 {
			break
		}
		h.refused.Store(true)
		if _, err := to(refusal(status)); err != nil {
			return 0, err
		}
		return len(p), nil
	}
	return to(p)
}

// refusal is the response of the edge in the place of one that net/http makes: 400, 417, 431, 501 or 505.
func refusal(status int) []byte {
	code := pages.BadRequest
	if status == http.StatusRequestHeaderFieldsTooLarge {
		code = pages.HeaderTooLarge
	}
	var id [16]byte
	_, _ = rand.Read(id[:])
	return pages.Raw(status, code, hex.EncodeToString(id[:]))
}

// secureConn is a connection of HTTP/1 over TLS. It hides that it is one from servers, which would take the TLS
// connection out of it: Caddy wraps connections that tell, and hides what they can do. Requests get their TLS state from
// FromRequest.
type secureConn struct {
	tls   *tls.Conn
	under *Conn
	state *tls.ConnectionState
	reads reads
}

func newSecureConn(conn *tls.Conn, under *Conn) *secureConn {
	state := conn.ConnectionState()
	return &secureConn{tls: conn, under: under, state: &state}
}

func (c *secureConn) Read(p []byte) (int, error)         { return c.under.http1.read(p, c.read) }
func (c *secureConn) read(p []byte) (int, error)         { return c.reads.read(c.tls, p, true) }
func (c *secureConn) Write(p []byte) (int, error)        { return c.under.http1.write(p, c.write) }
func (c *secureConn) write(p []byte) (int, error)        { return c.under.together(p, c.tls.Write) }
func (c *secureConn) CloseWrite() error                  { return c.tls.CloseWrite() }
func (c *secureConn) LocalAddr() net.Addr                { return c.tls.LocalAddr() }
func (c *secureConn) RemoteAddr() net.Addr               { return c.tls.RemoteAddr() }
func (c *secureConn) SetReadDeadline(t time.Time) error  { return c.reads.setDeadline(c.tls, t) }
func (c *secureConn) SetWriteDeadline(t time.Time) error { return c.tls.SetWriteDeadline(t) }

func (c *secureConn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

func (c *secureConn) Close() error {
	err := c.tls.Close()
	c.reads.close()
	return err
}
