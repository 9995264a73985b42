package listen

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/net/http2"

	configv1 "edge.svc/caddy/gen/svc/config/v1"
)

// served is a server behind a wrapper, on which both protocols are spoken without TLS.
func served(t *testing.T, r *Registry) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		FromContext(r.Context())
	}))
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetHTTP1(true)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	w := New(newCore(t, &configv1.ClientIp{}), r)
	w.Serve(server.Config)
	server.Listener = w.WrapListener(server.Listener)
	server.Start()
	t.Cleanup(server.Close)
	return server
}

func until(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(90 * time.Second); !condition(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}

func TestFirstRequestEndsTheWaiting(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		r := NewRegistry()
		server := served(t, r)
		transport := &http.Transport{Protocols: new(http.Protocols)}
		transport.Protocols.SetHTTP1(!http2)
		transport.Protocols.SetUnencryptedHTTP2(http2)
		defer transport.CloseIdleConnections()
		silent, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer silent.Close()
		response, err := (&http.Client{Transport: transport}).Get(server.URL)
		if err != nil || response.ProtoMajor == 2 != http2 {
			t.Fatal(response, err)
		}
		response.Body.Close()
		until(t, "the silent connection alone waits", func() bool {
			now := r.Counters()
			return now.Open == 2 && now.Waiting == 1
		})
		// Idle connections that were of use stay, the other one goes.
		abort(r.limiter.expired(time.Now().Add(time.Hour)), nil)
		if now := r.Counters(); now.Open != 2 || now.Evicted["header-time"] != 0 {
			t.Errorf("without a limit: %+v", now)
		}
		r.limiter.set(Limits{HeaderTime: time.Minute})
		abort(r.limiter.expired(time.Now().Add(time.Hour)), nil)
		if now := r.Counters(); now.Open != 1 || now.Waiting != 0 || now.Evicted["header-time"] != 1 {
			t.Errorf("%+v", now)
		}
		_ = silent.SetReadDeadline(time.Now().Add(20 * time.Second))
		if _, err := silent.Read(make([]byte, 1)); err == nil || isTimeout(err) {
			t.Errorf("the silent connection: %v", err)
		}
	}
}

func isTimeout(err error) bool {
	timeout, ok := err.(net.Error)
	return ok && timeout.Timeout()
}

func TestBreachesOfHTTP2AreCounted(t *testing.T) {
	r := NewRegistry()
	server := served(t, r)
	for range 2 {
		conn, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
			t.Fatal(err)
		}
		framer := http2.NewFramer(conn, conn)
		if err := framer.WriteSettings(); err != nil {
			t.Fatal(err)
		}
		// A stream that was never opened.
		if err := framer.WriteRSTStream(1, http2.ErrCodeCancel); err != nil {
			t.Fatal(err)
		}
	}
	until(t, "both are counted", func() bool { return r.Counters().HTTP2Errors["conn_PROTOCOL_ERROR_reset_idle_stream"] == 2 })
}

func TestNamesOfBreachesAreBounded(t *testing.T) {
	var counted tally
	for i := range 2 * maxTallied {
		counted.add(fmt.Sprint(i))
	}
	if counts := counted.copy(); len(counts) != maxTallied+1 || counts[otherName] != maxTallied {
		t.Errorf("%d names, %d others", len(counts), counts[otherName])
	}
}

// In proxy_protocol mode a connection is its proxy's until the header says whose it is.
func TestProxiedConnectionsCountForTheirClients(t *testing.T) {
	core := newCore(t, &configv1.ClientIp{Mode: configv1.ClientIpMode_CLIENT_IP_MODE_PROXY_PROTOCOL})
	r := NewRegistry()
	r.limiter.set(Limits{PerAddress: 2})
	w := &Wrapper{ProxyPeers: []string{"127.0.0.0/8"}, core: core, registry: r}
	if err := w.parsePeers(); err != nil {
		t.Fatal(err)
	}
	raw, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ln := w.WrapListener(raw)
	defer ln.Close()
	come := func(header string) error {
		t.Helper()
		there, err := net.Dial("tcp", raw.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { there.Close() })
		if _, err := io.WriteString(there, header+"x"); err != nil {
			t.Fatal(err)
		}
		here, err := ln.Accept()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { here.Close() })
		_, err = here.Read(make([]byte, 1))
		return err
	}
	const one, another = "PROXY TCP4 203.0.113.1 192.0.2.1 1 2\r\n", "PROXY TCP4 203.0.113.2 192.0.2.1 1 2\r\n"
	for i, header := range []string{one, another, one, "PROXY UNKNOWN\r\n", "PROXY UNKNOWN\r\n", "PROXY UNKNOWN\r\n"} {
		if err := come(header); err != nil {
			t.Errorf("%d: %v", i, err)
		}
	}
	if err := come(one); err != errNoRoom {
		t.Errorf("a third one of a client: %v", err)
	}
	if err := come("nothing of that kind\r\n"); err == nil {
		t.Error("a connection without the header is read")
	}
	if now := r.Counters(); now.Open != 6 || now.Refused["address"] != 1 || now.Refused["proxy-header"] != 1 {
		t.Errorf("%+v", now)
	}
}

// What has no list of proxies is counted for its peer until the header comes; trusted proxies of header mode never.
func TestWhoIsCountedForANetwork(t *testing.T) {
	listed := &Wrapper{ProxyPeers: []string{"192.0.2.0/24"}}
	if err := listed.parsePeers(); err != nil {
		t.Fatal(err)
	}
	header := &configv1.ClientIp{Mode: configv1.ClientIpMode_CLIENT_IP_MODE_HEADER, Header: "x", TrustedCidrs: []string{"192.0.2.1/32"}}
	proxy := &configv1.ClientIp{Mode: configv1.ClientIpMode_CLIENT_IP_MODE_PROXY_PROTOCOL}
	for name, c := range map[string]struct {
		w    *Wrapper
		mode *configv1.ClientIp
		peer string
		want bool
	}{
		"a peer in direct mode":     {listed, &configv1.ClientIp{}, "192.0.2.1", true},
		"a trusted proxy":           {&Wrapper{}, header, "192.0.2.1", false},
		"a stranger in header mode": {&Wrapper{}, header, "192.0.2.2", true},
		"a proxy of the list":       {listed, proxy, "192.0.2.1", false},
		"whoever connects, no list": {&Wrapper{}, proxy, "192.0.2.1", true},
	} {
		addr := netip.MustParseAddr(c.peer)
		tables := newCore(t, c.mode).Tables()
		if got := c.w.countedFor(tables, addr, proxyMode(tables)); got.IsValid() != c.want || c.want && got != addr {
			t.Errorf("%s: %v", name, got)
		}
	}
}
