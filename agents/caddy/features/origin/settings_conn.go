package origin

import (
	"encoding/binary"
	"net"

	"golang.org/x/net/http2"
)

const (
	frameHeadBytes = 9
	maxSettings    = 16 << 10
)

// settingsConn looks for the SETTINGS of an origin, with which every connection of HTTP/2 begins: they say how many requests
// it takes. Until then nobody knows whether the origin speaks HTTP/2 at all. Reads belong to one goroutine.
type settingsConn struct {
	net.Conn
	// Closed once net/http has read the frame, or with the failure in err.
	ready chan struct{}
	err   error

	head [frameHeadBytes]byte
	// Bytes that came of the head, and bytes to come after it.
	headed  int
	payload int
	over    bool
}

func newSettingsConn(c net.Conn) *settingsConn {
	return &settingsConn{Conn: c, ready: make(chan struct{})}
}

func (c *settingsConn) Read(p []byte) (int, error) {
	if c.over {
		return c.Conn.Read(p)
	}
	if c.headed == frameHeadBytes && c.payload <= 0 {
		// It asks for more, so it has seen the frame.
		c.end(nil)
		return c.Conn.Read(p)
	}
	n, err := c.Conn.Read(p)
	if err == nil {
		err = c.follow(p[:n])
	}
	if err != nil {
		c.end(err)
	}
	return n, err
}

func (c *settingsConn) end(err error) {
	c.err, c.over = err, true
	close(c.ready)
}

func (c *settingsConn) follow(p []byte) error {
	if c.headed < frameHeadBytes {
		n := copy(c.head[c.headed:], p)
		c.headed += n
		p = p[n:]
		if c.headed < frameHeadBytes {
			return nil
		}
		c.payload = int(binary.BigEndian.Uint32(c.head[:4]) >> 8)
		if http2.FrameType(c.head[3]) != http2.FrameSettings || c.payload > maxSettings {
			return errNotHTTP2
		}
	}
	c.payload -= len(p)
	return nil
}
