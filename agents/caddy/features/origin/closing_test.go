package origin

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// idle waits for the only connection of an edge to be idle and returns it, to be changed where nobody uses it.
func (e *edge) idle() *conn {
	e.t.Helper()
	for range 60_000 {
		if e.transports.idle.Load() == 1 {
			for i := range e.transports.shards {
				if c := e.transports.shards[i].newest; c != nil {
					return c
				}
			}
		}
		time.Sleep(time.Millisecond)
	}
	e.t.Fatal("no connection is idle")
	return nil
}

func TestIdleConnectionsAreKeptForLessThanTheirOriginKeepsThem(t *testing.T) {
	for _, c := range []struct {
		field string
		want  time.Duration
	}{
		{"", time.Minute},
		{"Keep-Alive: timeout=5\r\n", 4 * time.Second},
		{"Keep-Alive: max=100, Timeout = 15\r\n", 14 * time.Second},
		{"Keep-Alive: timeout=1\r\n", 500 * time.Millisecond},
		{"Keep-Alive: timeout=3600\r\n", time.Minute},
		{"Keep-Alive: timeout=soon\r\n", time.Minute},
		{"Keep-Alive: max=5\r\n", time.Minute},
	} {
		o, _ := answering(t, "HTTP/1.1 200 OK\r\n"+c.field+"Content-Length: 2\r\n\r\nok")
		e := newEdge(t, settings(), originAt("a", o.Addr().String()))
		e.wantGet("/", 200, "ok")
		e.Server.Close()
		if idle := e.idle(); idle.idleUntil.Sub(idle.idleSince) != c.want {
			t.Errorf("%q: %s", c.field, idle.idleUntil.Sub(idle.idleSince))
		}
	}
}

func TestConnectionsThatTheirOriginIsAboutToCloseAreNotUsed(t *testing.T) {
	o, _ := answering(t, okAnswer)
	e := newEdge(t, settings(), originAt("a", o.Addr().String()))
	e.transports.sweeping.Store(true)
	e.wantGet("/", 200, "ok")
	e.idle()
	e.wantGet("/", 200, "ok")
	if n := o.connections.Load(); n != 1 {
		t.Fatalf("%d connections", n)
	}
	e.idle().idleUntil = time.Now().Add(-time.Millisecond)
	e.wantGet("/", 200, "ok")
	if n := o.connections.Load(); n != 2 {
		t.Errorf("%d connections", n)
	}
}

// What cannot be repeated gets a connection that was in use a moment ago, or a new one.
func TestRequestsThatCannotBeRepeatedTakeFreshConnections(t *testing.T) {
	for _, c := range []struct {
		method string
		body   func() io.Reader
		fresh  bool
	}{
		{"GET", func() io.Reader { return nil }, false},
		{"PUT", func() io.Reader { return strings.NewReader("body") }, false},
		{"PUT", func() io.Reader { return unknownLength{strings.NewReader("body")} }, true},
		{"POST", func() io.Reader { return strings.NewReader("body") }, true},
		{"PATCH", func() io.Reader { return nil }, true},
		{"LOCK", func() io.Reader { return nil }, true},
	} {
		o, _ := answering(t, okAnswer)
		e := newEdge(t, settings(), originAt("a", o.Addr().String()))
		e.wantGet("/", 200, "ok")
		e.idle().idleSince = time.Now().Add(-freshFor - time.Millisecond)
		if status, body := e.send(c.method, "/", c.body()); status != 200 || body != "ok" {
			t.Fatal(c.method, status, body)
		}
		want := int64(1)
		if c.fresh {
			want = 2
		}
		if n := o.connections.Load(); n != want {
			t.Errorf("%s: %d connections, not %d", c.method, n, want)
		}
	}
}

// An origin may close a kept connection while a request is on its way: it is not down for that.
func TestClosingAKeptConnectionIsNoFailure(t *testing.T) {
	o := newRawOrigin(t, func(c net.Conn, number int64) {
		r := bufio.NewReader(c)
		for i := 0; ; i++ {
			if _, _, err := readRequest(r); err != nil || number == 1 && i == 1 {
				return
			}
			fmt.Fprint(c, okAnswer)
		}
	})
	e := newEdge(t, settings(), originAt("a", o.Addr().String()))
	e.wantGet("/", 200, "ok")
	e.idle().idleSince = time.Now().Add(time.Hour)
	if status, body := e.send("POST", "/", strings.NewReader("body")); status != 502 || body != "edge: origin-unreachable" {
		t.Errorf("%d %s", status, body)
	}
	if n := e.state.failed.Load(); n != 0 {
		t.Errorf("%d origins have failed", n)
	}
	if status, body := e.send("POST", "/", strings.NewReader("body")); status != 200 || body != "ok" {
		t.Errorf("%d %s", status, body)
	}
	if n := o.connections.Load(); n != 2 {
		t.Errorf("%d connections", n)
	}
}
