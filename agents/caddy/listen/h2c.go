package listen

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"time"
)

// priMethod is that of the request with which HTTP/2 begins for a server of HTTP/1 (RFC 9113 §3.4).
const priMethod = "PRI"

// afterPRI is what follows the request in the preface.
const afterPRI = "SM\r\n\r\n"

// BeginsHTTP2 reports whether a request of a plain connection is the beginning of HTTP/2 without TLS.
func (c *Conn) BeginsHTTP2(r *http.Request) bool {
	return r.ProtoMajor == 2 && r.Method == priMethod && r.RequestURI == "*" && c.plain && !c.shared && !c.QUIC()
}

// ServeHTTP2 takes the connection of such a request from its server, and serves HTTP/2 on it until its end, under the same
// limits on frames as with TLS. It reports false where the server has no HTTP/2.
func (c *Conn) ServeHTTP2(w http.ResponseWriter, r *http.Request) bool {
	server, _ := r.Context().Value(http.ServerContextKey).(*http.Server)
	if server == nil || server.TLSNextProto[protoAny] == nil {
		return false
	}
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return false
	}
	early, _ := buffered.Reader.Peek(buffered.Reader.Buffered())
	// From here on, requests count by themselves. What came before is the node's.
	c.shared = true
	framed := &framedConn{Conn: &earlyConn{Conn: conn, early: append([]byte(nil), early...)}, errors: &c.registry.http2Errors, under: c}
	if err := framed.expect(afterPRI); err != nil {
		if errors.Is(err, errPreface) {
			framed.errors.add("conn_PROTOCOL_ERROR_preface")
		}
		_ = conn.Close()
		return true
	}
	server.TLSNextProto[protoAny](server, tls.Client(anyConn{framed}, nil), connHandler{r.Context(), server.Handler})
	return true
}

// connHandler has the requests of a connection begin with its context.
type connHandler struct {
	ctx context.Context
	http.Handler
}

// BaseContext is for the server of HTTP/2.
func (h connHandler) BaseContext() context.Context { return h.ctx }

// earlyConn is a connection of which something was read already.
type earlyConn struct {
	net.Conn
	early []byte
}

func (c *earlyConn) Read(p []byte) (int, error) {
	if len(c.early) > 0 {
		n := copy(p, c.early)
		c.early = c.early[n:]
		return n, nil
	}
	return c.Conn.Read(p)
}

// expect reads what a client has to send next.
func (c *framedConn) expect(text string) error {
	_ = c.SetReadDeadline(time.Now().Add(prefaceTime))
	came := make([]byte, len(text))
	if _, err := io.ReadFull(c.Conn, came); err != nil {
		return err
	}
	if string(came) != text {
		return errPreface
	}
	return c.SetReadDeadline(time.Time{})
}
