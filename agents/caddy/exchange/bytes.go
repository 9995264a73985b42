package exchange

import (
	"net"
	"net/http"
)

// BillTo has an account pay for what the exchange carries, where no meter counts the bytes of the connection: over TLS, and
// where exchanges share a connection. Heads count as HTTP/1 writes them, without what TLS and frames take; bodies count as
// they pass. Call it once.
func (x *Exchange) BillTo(a *Account) {
	x.account, x.Body.account = a, a
	in := &x.In
	// The request line and the empty line.
	n := len(in.Method) + 1 + len(in.Target.Raw) + len(" HTTP/1.1\r\n\r\n")
	if _, named := in.Header["Host"]; !named {
		n += len("Host: \r\n") + len(in.HostRaw)
	}
	a.receive(uint64(n+fieldBytes(in.Header)) + uint64(x.Body.total))
}

// fieldBytes is what fields take with what HTTP/1 puts around them.
func fieldBytes(h http.Header) (n int) {
	for name, values := range h {
		for _, value := range values {
			n += len(name) + len(value) + len(": \r\n")
		}
	}
	return n
}

// A field that the server adds where nobody else did.
const dateField = len("Date: " + http.TimeFormat + "\r\n")

// sentHead counts the head of an answer.
func (x *Exchange) sentHead(status int) {
	if x.account == nil {
		return
	}
	h := x.writer.Header()
	n := len("HTTP/1.1 200 \r\n\r\n") + len(http.StatusText(status)) + fieldBytes(h)
	if _, dated := h["Date"]; !dated {
		n += dateField
	}
	x.account.send(uint64(n))
}

// sent counts bytes of a body that were written to the client.
func (x *Exchange) sent(n int64) {
	x.bodySent += n
	if x.account != nil && n > 0 {
		x.account.send(uint64(n))
	}
}

// billedConn is the connection of a tunnel that no meter counts.
type billedConn struct {
	net.Conn
	account *Account
}

// Read counts what came.
func (c *billedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.account.receive(uint64(max(n, 0)))
	return n, err
}

// Write counts what left.
func (c *billedConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.account.send(uint64(max(n, 0)))
	return n, err
}

// CloseWrite ends the sending half.
func (c *billedConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return http.ErrNotSupported
}
