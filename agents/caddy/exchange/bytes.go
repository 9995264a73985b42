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
	a.receive(uint64(x.requestBytes()) + uint64(x.Body.total))
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

// sentHead counts the header of a response.
func (x *Exchange) sentHead(status int) {
	if status >= 200 || status == http.StatusSwitchingProtocols {
		x.statusSent = status
	} else {
		x.interimSent += int64(x.headBytes(status))
	}
	if x.account != nil {
		x.account.send(uint64(x.headBytes(status)))
	}
}

// sent counts bytes of a body that were written to the client.
func (x *Exchange) sent(n int64) {
	x.bodySent += n
	if x.account != nil && n > 0 {
		x.account.send(uint64(n))
	}
}

// countedConn is the connection of a tunnel. Without an account a meter counts it for its site.
type countedConn struct {
	net.Conn
	traffic *tunnelTraffic
	account *Account
}

func (c *countedConn) received(n int) {
	c.traffic.received.Add(int64(max(n, 0)))
	if c.account != nil {
		c.account.receive(uint64(max(n, 0)))
	}
}

// Read counts what came.
func (c *countedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.received(n)
	return n, err
}

// Write counts what left.
func (c *countedConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.traffic.sent.Add(int64(max(n, 0)))
	if c.account != nil {
		c.account.send(uint64(max(n, 0)))
	}
	return n, err
}

// CloseWrite ends the sending half.
func (c *countedConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return http.ErrNotSupported
}
