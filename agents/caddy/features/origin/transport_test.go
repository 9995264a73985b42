package origin

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	configv1 "edge.svc/caddy/gen/svc/config/v1"
)

// counted is a connection that only knows whether it was closed.
type counted struct {
	net.Conn
	open *atomic.Int64
}

func (c counted) Close() error {
	c.open.Add(-1)
	return nil
}

func (c counted) SetReadDeadline(time.Time) error { return nil }

func idleAt(host string) *origin {
	key := newDialKey(host, 80, plain, "")
	return &origin{dial: key, shard: key.shard()}
}

func TestIdleConnectionsAreBounded(t *testing.T) {
	transports := NewTransportSet(func() *AddressPolicy { return nil })
	// No sweep but the test's own.
	transports.sweeping.Store(true)
	var open atomic.Int64
	put := func(o *origin, keep time.Duration) {
		open.Add(1)
		transports.put(&conn{Conn: counted{open: &open}, key: o.dial}, o, keep, time.Now())
	}
	same := idleAt("one.test")
	for range maxIdlePerOrigin + 100 {
		put(same, time.Hour)
	}
	if open.Load() != maxIdlePerOrigin || transports.idle.Load() != maxIdlePerOrigin {
		t.Fatalf("%d connections to one origin are open, %d counted", open.Load(), transports.idle.Load())
	}
	for i := range 3 * maxIdle {
		put(idleAt(fmt.Sprintf("h%d.test", i)), time.Hour)
	}
	if open.Load() > maxIdle || open.Load() < maxIdle/2 || transports.idle.Load() != open.Load() {
		t.Fatalf("%d connections are open, %d counted", open.Load(), transports.idle.Load())
	}
	before := open.Load()
	for i := range 100 {
		put(idleAt(fmt.Sprintf("short%d.test", i)), -time.Second)
	}
	transports.sweep()
	if open.Load() > before || open.Load() < before-100 {
		t.Fatalf("%d connections after the sweep, %d before", open.Load(), before)
	}
	transports.CloseIdle()
	if open.Load() != 0 || transports.idle.Load() != 0 {
		t.Fatalf("%d connections are left", open.Load())
	}
	for i := range transports.shards {
		if s := &transports.shards[i]; s.count != 0 || len(s.byKey) != 0 || s.newest != nil || s.oldest != nil {
			t.Fatalf("shard %d: %d connections, %d keys", i, s.count, len(s.byKey))
		}
	}
}

// An origin whose only connection was taken and closed leaves nothing behind.
func TestOriginsWithoutConnectionsAreForgotten(t *testing.T) {
	transports := NewTransportSet(func() *AddressPolicy { return nil })
	transports.sweeping.Store(true)
	var open atomic.Int64
	for i := range 100 {
		o := idleAt(fmt.Sprintf("h%d.test", i))
		transports.put(&conn{Conn: counted{open: &open}, key: o.dial}, o, time.Hour, time.Now())
		transports.take(o, false, time.Now())
	}
	transports.sweep()
	for i := range transports.shards {
		if n := len(transports.shards[i].byKey); n != 0 {
			t.Errorf("shard %d has %d keys", i, n)
		}
	}
	if transports.sweeping.Load() {
		t.Error("nothing is left to sweep")
	}
}

func TestSitesShareConnectionsToTheSameOrigin(t *testing.T) {
	o, seen := answering(t, okAnswer)
	e := newEdge(t, settings(), originAt("a", o.Addr().String()))
	for site := range 50 {
		p, err := Compile(fmt.Sprint("site", site), []*configv1.Origin{originAt("x", o.Addr().String())}, settings(), e.state)
		if err != nil {
			t.Fatal(err)
		}
		e.pool.Store(p)
		e.wantGet("/", 200, "ok")
		<-seen
	}
	if n := o.connections.Load(); n != 1 {
		t.Fatalf("50 sites took %d connections", n)
	}
}

func TestOnlyAllowedAnswersOfANameAreConnectedTo(t *testing.T) {
	o, seen := answering(t, okAnswer)
	origin := originAt("a", o.Addr().String())
	origin.Address = "Origin.Test"
	e := newEdge(t, settings(), origin)
	e.transports.resolver.lookup = func(_ context.Context, host string) ([]netip.Addr, error) {
		if host != "origin.test" {
			t.Errorf("asked for %s", host)
		}
		return []netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("::ffff:127.0.0.1"), netip.MustParseAddr("fe80::1"), netip.MustParseAddr("169.254.169.254")}, nil
	}
	e.wantGet("/", 200, "ok")
	if head := <-seen; !strings.Contains(head, "\r\nHost: "+e.Listener.Addr().String()+"\r\n") {
		t.Fatalf("got %q", head)
	}
	e.transports.policy = func() *AddressPolicy { return nil }
	e.wantGet("/", 502, "edge: no-origin")
}

// The first address does not answer; the second one must get its turn within the time to connect.
func TestNextAddressIsTriedWhenOneDoesNotAnswer(t *testing.T) {
	o, _ := answering(t, okAnswer)
	origin := originAt("a", o.Addr().String())
	origin.Address = "origin.test"
	e := newEdge(t, settings(), origin)
	e.transports.resolver.lookup = func(context.Context, string) ([]netip.Addr, error) {
		// Nothing listens on the first port of the other loopback addresses.
		return []netip.Addr{netip.MustParseAddr("127.0.0.2"), netip.MustParseAddr("127.0.0.3"), netip.MustParseAddr("127.0.0.1")}, nil
	}
	for range 10 {
		e.transports.CloseIdle()
		e.wantGet("/", 200, "ok")
	}
}

func TestAThousandRequestsAtOnceKeepTheirAnswersApart(t *testing.T) {
	o := httpOrigin(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.URL.Path) })
	e := newEdge(t, settings(), originAt("a", addressOf(o)))
	done := make(chan error)
	for i := range 200 {
		go func() {
			for j := range 5 {
				path := fmt.Sprintf("/%d/%d", i, j)
				if status, body := e.get(path); status != 200 || body != path {
					done <- fmt.Errorf("%s: got %d %s", path, status, body)
					return
				}
			}
			done <- nil
		}()
	}
	for range 200 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}
