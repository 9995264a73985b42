package origin

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"testing"
	"time"
)

// turnOver is a connection to an origin whose end the test has.
func turnOver(t *testing.T) (*conn, *net.TCPConn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	near, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	far, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	c := newConn(near, near.(*net.TCPConn), dialKey{}, netip.Addr{}, nil)
	c.ctx, c.readTimeout = t.Context(), time.Minute
	t.Cleanup(func() { near.Close(); far.Close() })
	return c, far.(*net.TCPConn)
}

func TestATurnWaitsForTheResponse(t *testing.T) {
	request := []byte("GET / HTTP/1.1\r\n\r\n")
	for name, c := range map[string]struct {
		// What the origin does with a request.
		origin func(*testing.T, *conn, *net.TCPConn)
		now    func() time.Time
		want   string
		err    error
	}{
		"that comes at once": {origin: func(_ *testing.T, _ *conn, far *net.TCPConn) { io.WriteString(far, "response") }, want: "response"},
		"that comes after the moment": {origin: func(_ *testing.T, c *conn, far *net.TCPConn) {
			time.Sleep(2 * patience)
			io.WriteString(far, "response")
		}, want: "response"},
		"when the moment is over":      {origin: func(_ *testing.T, _ *conn, far *net.TCPConn) { io.WriteString(far, "response") }, now: func() time.Time { return time.Now().Add(-time.Second) }, want: "response"},
		"that is the end":              {origin: func(_ *testing.T, _ *conn, far *net.TCPConn) { far.CloseWrite() }, err: io.EOF},
		"of an origin that is stopped": {origin: func(_ *testing.T, c *conn, _ *net.TCPConn) { c.abort() }, err: errAborted},
	} {
		t.Run(name, func(t *testing.T) {
			near, far := turnOver(t)
			go func() {
				got := make([]byte, len(request))
				if _, err := io.ReadFull(far, got); err != nil || !bytes.Equal(got, request) {
					t.Errorf("%q, %v", got, err)
				}
				c.origin(t, near, far)
			}()
			now := time.Now()
			if c.now != nil {
				now = c.now()
			}
			if n, err := near.takeTurn(request, now); n != len(request) || err != nil {
				t.Fatal(n, err)
			}
			for near.w < len(c.want) {
				if err := near.fill(); err != nil {
					t.Fatal(err)
				}
			}
			if got := string(near.buf[near.r:near.w]); got != c.want || near.received != int64(len(c.want)) {
				t.Errorf("%q of %d bytes", got, near.received)
			}
			if c.err != nil {
				if err := near.fill(); !errors.Is(err, c.err) {
					t.Errorf("%v, not %v", err, c.err)
				}
			}
		})
	}
}

// A request for which the socket has no room at once leaves whole all the same.
func TestATurnWritesTheWholeRequest(t *testing.T) {
	near, far := turnOver(t)
	request := bytes.Repeat([]byte("0123456789abcdef"), 1<<20)
	got := make(chan []byte)
	go func() {
		b := make([]byte, len(request))
		_, _ = io.ReadFull(far, b)
		io.WriteString(far, "ok")
		got <- b
	}()
	if n, err := near.takeTurn(request, time.Now()); n != len(request) || err != nil {
		t.Fatal(n, err)
	}
	if !bytes.Equal(<-got, request) {
		t.Error("the request is another one")
	}
	if err := near.fill(); err != nil || string(near.buf[near.r:near.w]) != "ok" {
		t.Error(err)
	}
}

// What is aborted before its turn sends nothing.
func TestATurnThatIsAbortedSendsNothing(t *testing.T) {
	near, far := turnOver(t)
	ctx, cancel := context.WithCancel(t.Context())
	near.ctx = ctx
	cancel()
	near.abort()
	if n, err := near.takeTurn([]byte("GET"), time.Now()); n != 0 || !errors.Is(err, errAborted) {
		t.Error(n, err)
	}
	near.Close()
	if b, err := io.ReadAll(far); len(b) > 0 || err != nil {
		t.Errorf("%q, %v", b, err)
	}
}
