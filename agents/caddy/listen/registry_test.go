package listen

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"testing"
	"time"

	"edge.svc/caddy/core"
	"edge.svc/caddy/features/bans"
	_ "edge.svc/caddy/features/lists"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
	nodev1 "edge.svc/caddy/gen/svc/node/v1"
	"edge.svc/caddy/internal/edgetest"
)

func newCore(t *testing.T, clientIP *configv1.ClientIp) *core.Core {
	t.Helper()
	c := core.New(core.Options{StateDir: t.TempDir(), Values: map[string]any{"ban_capacity": 100, "ban_max_mib": 1}})
	_, failed, err := c.Apply(nil, edgetest.Position(1), []*configv1.Entry{
		edgetest.Entry("client-ip", "", clientIP),
		edgetest.Entry("ip-list", "allow", &configv1.IpList{ListKind: configv1.IpListKind_IP_LIST_KIND_ALLOW, EntryCount: 1}),
		edgetest.Entry("ip-list-chunk", "allow/0", &configv1.IpListChunk{ListId: "allow", Cidrs: []string{"192.0.2.200/32"}}),
	}, nil)
	if err != nil || len(failed) > 0 {
		t.Fatal(failed, err)
	}
	return c
}

func banAll(t *testing.T, c *core.Core, siteID string, cidrs ...string) {
	t.Helper()
	var banned []*nodev1.Ban
	for _, cidr := range cidrs {
		banned = append(banned, &nodev1.Ban{
			Id: "ban-" + cidr[:9], SiteId: siteID, Cidr: cidr, Source: nodev1.BanSource_BAN_SOURCE_MANUAL,
			ExpiresAtMs: time.Now().Add(time.Hour).UnixMilli(),
		})
	}
	base := bans.Of(c).State().GetPosition()
	if _, err := bans.Of(c).Apply(base, &nodev1.BanPosition{Epoch: 1, Sequence: base.GetSequence() + 1}, banned, nil, nil); err != nil {
		t.Fatal(err)
	}
}

// open is a connection of a peer; the other end is returned too.
func open(t *testing.T, r *Registry, node *core.Core, peer string) (*Conn, net.Conn) {
	t.Helper()
	here, there := net.Pipe()
	c := &Conn{Conn: here, Peer: netip.MustParseAddr(peer), core: node}
	r.add(c)
	t.Cleanup(func() { c.Close(); there.Close() })
	return c, there
}

func (c *Conn) isClosed() bool { return c.closed.Load() }

func TestGlobalBanClosesItsConnections(t *testing.T) {
	c := newCore(t, &configv1.ClientIp{
		Mode: configv1.ClientIpMode_CLIENT_IP_MODE_HEADER, Header: "x", TrustedCidrs: []string{"192.0.2.100/32"},
	})
	r := &Registry{}
	banned, _ := open(t, r, c, "192.0.2.1")
	other, _ := open(t, r, c, "198.51.100.1")
	trusted, _ := open(t, r, c, "192.0.2.100")
	allowed, _ := open(t, r, c, "192.0.2.200")
	banAll(t, c, "", "192.0.2.0/24")
	r.sweep(c)
	if !banned.isClosed() || other.isClosed() || trusted.isClosed() || allowed.isClosed() {
		t.Errorf("closed: banned %v, other %v, trusted %v, allowed %v", banned.isClosed(), other.isClosed(), trusted.isClosed(), allowed.isClosed())
	}
	if r.Connections() != 3 {
		t.Errorf("%d connections", r.Connections())
	}
}

// Where any peer may send a PROXY header, an allow list protects the peers on it, and nobody who names one of them.
func TestClaimedAddressIsNotExemptFromTheSweep(t *testing.T) {
	for anyPeer, wantClosed := range map[bool]bool{true: true, false: false} {
		c := newCore(t, &configv1.ClientIp{Mode: configv1.ClientIpMode_CLIENT_IP_MODE_PROXY_PROTOCOL})
		states.Of(c).anyProxyPeer.Store(anyPeer)
		r := &Registry{}
		allowed := netip.MustParseAddr("192.0.2.200")
		claims, _ := open(t, r, c, "198.51.100.1")
		claims.proxied = allowed
		own, _ := open(t, r, c, "192.0.2.200")
		own.proxied = allowed
		// The exchange tells its client, and the connection whose it is.
		onSite, _ := open(t, r, c, "198.51.100.1")
		onSite.Begin(&Exchange{Client: allowed, SiteID: "a"})
		banAll(t, c, "", "192.0.2.0/24")
		r.sweep(c)
		if claims.isClosed() != wantClosed || own.isClosed() || onSite.isClosed() != wantClosed {
			t.Errorf("any peer %v: closed: claims %v, own %v, exchange %v", anyPeer, claims.isClosed(), own.isClosed(), onSite.isClosed())
		}
	}
}

func TestEndOfAnExemptionEndsWhatItKeptOpen(t *testing.T) {
	c := newCore(t, &configv1.ClientIp{})
	r := &Registry{wake: make(chan struct{}, 1)}
	r.watch(c)
	allowed, there := open(t, r, c, "192.0.2.200")
	banAll(t, c, "", "192.0.2.0/24")
	if _, _, err := c.Apply(edgetest.Position(1), edgetest.Position(2), nil, []*configv1.EntryKey{edgetest.Key("ip-list", "allow"), edgetest.Key("ip-list-chunk", "allow/0")}); err != nil {
		t.Fatal(err)
	}
	_ = there.SetReadDeadline(time.Now().Add(20 * time.Second))
	if _, err := there.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("%v", err)
	}
	if !allowed.isClosed() {
		t.Error("still open")
	}
}

// writer is the response writer of an exchange that shares its connection.
type writer struct {
	http.ResponseWriter
	reads, writes time.Time
	limits        int
}

func (w *writer) SetReadDeadline(until time.Time) error {
	w.reads = until
	w.limits++
	return nil
}

func (w *writer) SetWriteDeadline(until time.Time) error {
	w.writes = until
	w.limits++
	return nil
}

func TestBanEndsExchangesOfItsClientOnItsSite(t *testing.T) {
	c := newCore(t, &configv1.ClientIp{})
	r := &Registry{}
	onSite, _ := open(t, r, c, "192.0.2.1")
	elsewhere, _ := open(t, r, c, "192.0.2.1")
	http2, _ := open(t, r, c, "192.0.2.1")
	address := netip.MustParseAddr("192.0.2.1")
	onSite.Begin(&Exchange{Client: address, SiteID: "a"})
	elsewhere.Begin(&Exchange{Client: address, SiteID: "b"})
	ended, endBanned := context.WithCancel(context.Background())
	running, endOther := context.WithCancel(context.Background())
	defer endOther()
	banned, other, left := &writer{}, &writer{}, &writer{}
	http2.Begin(&Exchange{Client: address, SiteID: "a", Writer: banned, Cancel: endBanned})
	http2.Begin(&Exchange{Client: address, SiteID: "b", Writer: other, Cancel: endOther})
	gone := &Exchange{Client: address, SiteID: "a", Writer: left, Cancel: endOther}
	http2.Begin(gone)
	http2.End(gone)
	banAll(t, c, "a", "192.0.2.1/32")
	r.sweep(c)
	if !onSite.isClosed() || elsewhere.isClosed() || http2.isClosed() {
		t.Errorf("closed: %v %v %v", onSite.isClosed(), elsewhere.isClosed(), http2.isClosed())
	}
	if ended.Err() == nil || banned.reads.IsZero() || !banned.reads.Before(time.Now()) || banned.reads != banned.writes {
		t.Errorf("the banned stream: %v, read until %v, write until %v", ended.Err(), banned.reads, banned.writes)
	}
	if running.Err() != nil || other.limits+left.limits != 0 {
		t.Errorf("other streams: %v, %d limits", running.Err(), other.limits+left.limits)
	}
	r.sweep(c)
	if banned.limits != 2 {
		t.Errorf("the banned stream was ended again")
	}
}

func TestExchangesLeaveInAnyOrder(t *testing.T) {
	c := &Conn{}
	x := make([]Exchange, 4)
	for i := range x {
		c.Begin(&x[i])
	}
	for _, i := range []int{1, 3, 0, 2} {
		c.End(&x[i])
	}
	if c.exchanges != nil {
		t.Error("an exchange is left")
	}
}

func TestRegistryUnderLoad(t *testing.T) {
	node := newCore(t, &configv1.ClientIp{})
	r := &Registry{}
	banAll(t, node, "", "192.0.2.0/25")
	var wg sync.WaitGroup
	for worker := range 4 {
		wg.Go(func() {
			for i := range 500 {
				here, there := net.Pipe()
				c := &Conn{Conn: here, Peer: netip.AddrFrom4([4]byte{192, 0, 2, byte(i + worker)}), core: node}
				r.add(c)
				x := &Exchange{Client: c.Peer, SiteID: "a"}
				c.Begin(x)
				if i%10 == 0 {
					r.sweep(node)
				}
				c.End(x)
				c.Close()
				there.Close()
			}
		})
	}
	wg.Wait()
	if r.Connections() != 0 {
		t.Errorf("%d connections are left", r.Connections())
	}
	for i := range r.shards {
		if r.shards[i].first != nil {
			t.Fatalf("shard %d is not empty", i)
		}
	}
}

func proxied(t *testing.T, header ...string) (*Conn, string, error) {
	t.Helper()
	node := newCore(t, &configv1.ClientIp{Mode: configv1.ClientIpMode_CLIENT_IP_MODE_PROXY_PROTOCOL})
	c, there := open(t, &Registry{}, node, "192.0.2.1")
	go func() {
		for _, segment := range header {
			_, _ = io.WriteString(there, segment)
		}
		_, _ = io.WriteString(there, "hello")
		there.Close()
	}()
	if c.Proxied().IsValid() {
		t.Fatal("the header was read before the first read")
	}
	text, err := io.ReadAll(c)
	return c, string(text), err
}

func TestProxyHeader(t *testing.T) {
	for name, c := range map[string]struct{ header, want string }{
		"v1 IPv4":              {"PROXY TCP4 203.0.113.1 192.0.2.1 1 2\r\n", "203.0.113.1"},
		"v1 IPv6":              {"PROXY TCP6 2001:db8::1 2001:db8::2 1 2\r\n", "2001:db8::1"},
		"v1 mapped":            {"PROXY TCP6 ::ffff:203.0.113.1 ::ffff:192.0.2.1 1 2\r\n", "203.0.113.1"},
		"v1 unknown":           {"PROXY UNKNOWN\r\n", "192.0.2.1"},
		"v2 IPv4":              {"\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c\xcb\x00\x71\x01\x7f\x00\x00\x01\x00\x01\x00\x02", "203.0.113.1"},
		"v1 unknown, long":     {"PROXY UNKNOWN ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535\r\n", "192.0.2.1"},
		"v2 unspecified":       {"\r\n\r\n\x00\r\nQUIT\n\x21\x00\x00\x00", "192.0.2.1"},
		"v2 unspecified, more": {"\r\n\r\n\x00\r\nQUIT\n\x21\x00\x00\x04abcd", "192.0.2.1"},
		"v2 own request":       {"\r\n\r\n\x00\r\nQUIT\n\x20\x00\x00\x00", "192.0.2.1"},
	} {
		conn, text, err := proxied(t, c.header)
		if err != nil || text != "hello" || conn.Proxied() != netip.MustParseAddr(c.want) {
			t.Errorf("%s: %q from %s, %v", name, text, conn.Proxied(), err)
		}
		// A header may come in any two segments.
		for cut := 1; cut < len(c.header); cut++ {
			if conn, text, err := proxied(t, c.header[:cut], c.header[cut:]); err != nil || text != "hello" || conn.Proxied() != netip.MustParseAddr(c.want) {
				t.Errorf("%s, cut at %d: %q from %s, %v", name, cut, text, conn.Proxied(), err)
				break
			}
		}
	}
	for name, header := range map[string]string{
		"none": "", "bad address": "PROXY TCP4 300.0.0.1 1.1.1.1 1 2\r\n", "too long": "PROXY " + string(make([]byte, 200)), "unfinished": "PROXY TCP4 203.0.113.1 192.0.2.1 1", "nothing like it": "POST / HTTP/1.1\r\n\r\n",
		"v2 unix": "\r\n\r\n\x00\r\nQUIT\n\x21\x31\x00\xd8" + string(make([]byte, 216)),
	} {
		if conn, text, err := proxied(t, header); err == nil || text != "" || !conn.isClosed() {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
}

func TestProxyPeersAreReadAsAddressesAndRanges(t *testing.T) {
	peer := netip.MustParseAddr("10.1.2.3")
	c := newCore(t, &configv1.ClientIp{Mode: configv1.ClientIpMode_CLIENT_IP_MODE_PROXY_PROTOCOL})
	for text, want := range map[string]bool{
		"10.0.0.0/8": true, "10.1.2.3": true, "::ffff:10.1.2.3": true, "::ffff:10.0.0.0/104": true, "::ffff:0:0/96": true,
		"10.1.2.4": false, "::/0": false,
	} {
		w := &Wrapper{ProxyPeers: []string{text}, core: c}
		if err := w.parsePeers(); err != nil || w.admits(peer, proxyMode(c.Tables())) != want {
			t.Errorf("%s: admits %v, %v", text, w.admits(peer, proxyMode(c.Tables())), err)
		}
	}
	for _, text := range []string{"", "x", "10.0.0.0/33", "::1%eth0", "::ffff:10.0.0.0/95", "::ffff:0:0/0"} {
		if err := (&Wrapper{ProxyPeers: []string{text}}).parsePeers(); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}

func TestOnlyProxiesConnectInProxyMode(t *testing.T) {
	node := newCore(t, &configv1.ClientIp{Mode: configv1.ClientIpMode_CLIENT_IP_MODE_PROXY_PROTOCOL})
	for peers, want := range map[string]bool{"127.0.0.0/8": true, "192.0.2.0/24": false} {
		w := &Wrapper{ProxyPeers: []string{peers}, core: node, registry: &Registry{}}
		if err := w.parsePeers(); err != nil {
			t.Fatal(err)
		}
		raw, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		ln := w.WrapListener(raw)
		if !w.registry.Serving() {
			t.Error("not serving with a listener open")
		}
		accepted := make(chan net.Conn, 1)
		go func() {
			defer close(accepted)
			if c, err := ln.Accept(); err == nil {
				accepted <- c
			}
		}()
		conn, err := net.Dial("tcp", raw.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if !want {
			_ = conn.SetReadDeadline(time.Now().Add(20 * time.Second))
			if _, err := conn.Read(make([]byte, 1)); err == nil || errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the connection of a stranger stays open: %v", err)
			}
			ln.Close()
		}
		c, ok := <-accepted
		if ok != want {
			t.Errorf("%s: accepted %v", peers, ok)
		}
		if ok {
			c.Close()
			ln.Close()
		}
		conn.Close()
		if w.registry.Serving() || w.registry.Connections() != 0 {
			t.Error("a closed listener still counts")
		}
	}
}

// The HTTP server half-closes a connection before it gives up on a client that is still sending.
func TestSendingHalfClosesAlone(t *testing.T) {
	raw, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &Wrapper{core: newCore(t, &configv1.ClientIp{}), registry: &Registry{}}
	ln := w.WrapListener(raw)
	defer ln.Close()
	there, err := net.Dial("tcp", raw.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer there.Close()
	here, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer here.Close()
	half, ok := here.(interface{ CloseWrite() error })
	if !ok {
		t.Fatal("the server cannot half-close")
	}
	if err := half.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	_ = there.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := there.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("the other end read %v", err)
	}
	if _, err := there.Write([]byte("x")); err != nil {
		t.Error(err)
	}
	if n, err := here.Read(make([]byte, 1)); n != 1 || err != nil {
		t.Errorf("read %d %v", n, err)
	}
}
