package origin

import (
	"bytes"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// memory is a connection that gives fixed bytes, at most 7 at a time, so that every boundary is crossed.
type memory struct {
	net.Conn
	data []byte
}

func (m *memory) Read(p []byte) (int, error) {
	if len(m.data) == 0 {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), 7)], m.data)
	m.data = m.data[n:]
	return n, nil
}

func (m *memory) SetReadDeadline(time.Time) error { return nil }

// corked sends what is written while it holds in one piece with what comes after.
type corked struct {
	net.Conn
	hold    bool
	pending []byte
}

func (c *corked) Write(p []byte) (int, error) {
	c.pending = append(c.pending, p...)
	if c.hold {
		return len(p), nil
	}
	_, err := c.Conn.Write(c.pending)
	c.pending = nil
	return len(p), err
}

// gathered is a sink that keeps what it gets.
type gathered struct{ bytes.Buffer }

func (g *gathered) Write(p []byte) error {
	_, err := g.Buffer.Write(p)
	return err
}

func (g *gathered) Flush() error { return nil }

func httpTLS(t *testing.T, h http.Handler) *httptest.Server {
	s := httptest.NewUnstartedServer(h)
	s.EnableHTTP2 = true
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}
