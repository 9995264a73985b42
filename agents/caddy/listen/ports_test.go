package listen

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quic-go/quic-go"

	"edge.svc/caddy/core"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
	"edge.svc/caddy/internal/edgetest"
	"edge.svc/caddy/internal/hold"
)

// listening is a server on a port that the system chose, with the ports of its cluster.
type listening struct {
	t        *testing.T
	core     *core.Core
	ports    *ports
	registry *Registry
	base     uint16
	end      func()
}

func listen(t *testing.T, overTLS bool, limits Limits) *listening {
	t.Helper()
	return listenHeld(t, overTLS, limits, nil)
}

// listenHeld listens on what a holder keeps.
func listenHeld(t *testing.T, overTLS bool, limits Limits, client *hold.Client) *listening {
	t.Helper()
	l := &listening{t: t, core: newCore(t, &configv1.ClientIp{}), registry: NewRegistry(), base: freePort(t)}
	l.registry.limiter.set(limits)
	l.ports = portsOf.Of(l.core)
	l.ports.holder.client = client
	stop := make(chan struct{})
	var ended sync.WaitGroup
	ended.Go(func() { l.ports.Run(stop) })
	raw, err := l.ports.listen(context.Background(), overTLS, "127.0.0.1", l.base, net.ListenConfig{})
	if err != nil {
		t.Fatal(err)
	}
	w := New(l.core, l.registry)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := FromContext(r.Context())
		fmt.Fprintf(w, "%d %d %s", c.port, c.named, r.Proto)
	})}
	w.Serve(server)
	ended.Go(func() { _ = server.Serve(w.WrapListener(raw)) })
	l.end = sync.OnceFunc(func() {
		server.Close()
		close(stop)
		ended.Wait()
	})
	t.Cleanup(l.end)
	return l
}

func freePort(t *testing.T) uint16 {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return portOf(ln.Addr())
}

func (l *listening) set(http, https []uint32) {
	l.t.Helper()
	edgetest.Change(l.t, l.core, []*configv1.Entry{edgetest.Entry("listen-ports", "", &configv1.ListenPorts{HttpPorts: http, HttpsPorts: https})})
}

func (l *listening) problems() []*edgev1.PortProblem {
	status := &edgev1.GetStatusResponse{}
	l.ports.FillStatus(status)
	return status.GetPortProblems()
}

func (l *listening) open() []uint32 {
	status := &edgev1.GetStatusResponse{}
	l.ports.FillStatus(status)
	return status.GetPorts()
}

func at(port uint16) string { return hostPort("127.0.0.1", port) }

func ask(client *http.Client, scheme string, port uint16) (string, error) {
	response, err := client.Get(scheme + "://" + at(port) + "/")
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return string(body), err
}

func refused(port uint16) bool {
	conn, err := net.Dial("tcp", at(port))
	if err == nil {
		conn.Close()
	}
	return err != nil
}

func clientFor(t *testing.T, keepAlive bool) *http.Client {
	transport := &http.Transport{
		DisableKeepAlives: !keepAlive, ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true, ServerName: "a.com"},
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// Ports come and go while others are asked over old connections and new ones, and nobody there sees anything of it.
func TestPortsOpenAndCloseUnderLoad(t *testing.T) {
	for _, scheme := range []string{"http", "https"} {
		t.Run(scheme, func(t *testing.T) {
			l := listen(t, scheme == "https", Limits{})
			extra, other := freePort(t), freePort(t)
			stop := make(chan struct{})
			var asking sync.WaitGroup
			for i := range 4 {
				client := clientFor(t, i%2 == 0)
				asking.Go(func() {
					for {
						select {
						case <-stop:
							return
						default:
						}
						if _, err := ask(client, scheme, l.base); err != nil {
							t.Error(err)
							return
						}
					}
				})
			}
			set := func(ports ...uint32) {
				if scheme == "https" {
					l.set(nil, ports)
				} else {
					l.set(ports, nil)
				}
			}
			kept := clientFor(t, true)
			set(uint32(other))
			until(t, "a port that stays is open", func() bool { _, err := ask(kept, scheme, other); return err == nil })
			for range 5 {
				set(uint32(extra), uint32(other))
				until(t, "the port is open", func() bool { return !refused(extra) })
				got, err := ask(clientFor(t, false), scheme, extra)
				if want := fmt.Sprintf("%d %d HTTP/", extra, extra); err != nil || !strings.HasPrefix(got, want) {
					t.Errorf("%q, not %q: %v", got, want, err)
				}
				set(uint32(other))
				until(t, "the port is closed", func() bool { return refused(extra) })
				if _, err := ask(kept, scheme, other); err != nil {
					t.Error(err)
				}
				if open := l.open(); !slices.IsSorted(open) || !slices.Contains(open, uint32(other)) || slices.Contains(open, uint32(extra)) {
					t.Errorf("%v are told to be open", open)
				}
			}
			close(stop)
			asking.Wait()
			if problems := l.problems(); len(problems) > 0 {
				t.Error(problems)
			}
		})
	}
}

// What is open on a port that closes goes on: it is told to end with the answers it gets.
func TestConnectionsOutliveTheirPort(t *testing.T) {
	l := listen(t, false, Limits{})
	extra := freePort(t)
	l.set([]uint32{uint32(extra)}, nil)
	until(t, "the port is open", func() bool { return !refused(extra) })
	conn, err := net.Dial("tcp", at(extra))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	reader := bufio.NewReader(conn)
	for range 2 {
		if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: a.com\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		response, err := http.ReadResponse(reader, nil)
		if err != nil || response.StatusCode != http.StatusOK {
			t.Fatal(response, err)
		}
		_, _ = io.Copy(io.Discard, response.Body)
		l.set(nil, nil)
		until(t, "the port is closed", func() bool { return refused(extra) })
	}
}

func TestPortsThatCannotBeOpenedAreToldAndTriedAgain(t *testing.T) {
	squatter, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer squatter.Close()
	taken := portOf(squatter.Addr())
	l := listen(t, false, Limits{})
	l.set([]uint32{uint32(taken), uint32(l.base)}, nil)
	told := map[uint32]string{}
	until(t, "both problems are told", func() bool {
		clear(told)
		for _, problem := range l.problems() {
			told[problem.GetPort()] = problem.GetReason()
		}
		return len(told) == 2
	})
	if told[uint32(taken)] != "address already in use" || !strings.Contains(told[uint32(l.base)], "usual ports") {
		t.Errorf("%v", told)
	}
	squatter.Close()
	until(t, "the port is open", func() bool { _, err := ask(clientFor(t, false), "http", taken); return err == nil })
	l.set(nil, nil)
	until(t, "no problem is left", func() bool { return len(l.problems()) == 0 })
}

// The address of TLS may be another's when the node starts; that without TLS may not.
func TestTheAddressOfTLSMayComeLater(t *testing.T) {
	squatter, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer squatter.Close()
	taken := portOf(squatter.Addr())
	l := listen(t, false, Limits{})
	if _, err := l.ports.listen(context.Background(), false, "127.0.0.1", taken, net.ListenConfig{}); err == nil {
		t.Error("an address that is taken")
	}
	ln, err := l.ports.listen(context.Background(), true, "127.0.0.1", taken, net.ListenConfig{})
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	if problems := l.problems(); len(problems) != 1 || problems[0].GetPort() != uint32(taken) {
		t.Errorf("%v", problems)
	}
	squatter.Close()
	until(t, "the address is open", func() bool { return !refused(taken) && len(l.problems()) == 0 })
}

func TestPortsOfAClusterAreChecked(t *testing.T) {
	for name, ports := range map[string]*configv1.ListenPorts{
		"80":          {HttpPorts: []uint32{80}},
		"443":         {HttpsPorts: []uint32{443}},
		"none":        {HttpPorts: []uint32{0}},
		"too large":   {HttpsPorts: []uint32{65536}},
		"one in both": {HttpPorts: []uint32{81}, HttpsPorts: []uint32{81}},
	} {
		if _, err := compileListenPorts(ports); err == nil {
			t.Error(name)
		}
	}
}

func TestTLSIsTerminatedBeforeTheServer(t *testing.T) {
	l := listen(t, true, Limits{})
	got, err := ask(clientFor(t, true), "https", l.base)
	if want := fmt.Sprintf("%d 443 HTTP/2.0", l.base); err != nil || got != want {
		t.Errorf("%q, not %q: %v", got, want, err)
	}
	one := clientFor(t, true)
	one.Transport.(*http.Transport).ForceAttemptHTTP2 = false
	if got, err := ask(one, "https", l.base); err != nil || !strings.HasSuffix(got, "HTTP/1.1") {
		t.Errorf("%q %v", got, err)
	}
	if l.registry.Counters().Handshakes != 0 {
		t.Error("a handshake is still under way")
	}
}

func TestPlainRequestsToTLSGetAPage(t *testing.T) {
	l := listen(t, true, Limits{})
	for name, sent := range map[string]string{
		"a request":             "GET / HTTP/1.1\r\nHost: a.com\r\n\r\n",
		"one with a body":       "POST / HTTP/1.1\r\nHost: a.com\r\nContent-Length: 100000\r\n\r\n" + strings.Repeat("x", 20_000),
		"the preface of HTTP/2": "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
	} {
		conn, err := net.Dial("tcp", at(l.base))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, sent); err != nil {
			t.Fatal(err)
		}
		response, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(name, err)
		}
		page, err := io.ReadAll(response.Body)
		if err != nil || response.StatusCode != http.StatusBadRequest || response.Header.Get("X-Svc-Error") != "https-required" || !response.Close ||
			len(response.Header.Get("X-Request-Id")) != 32 || !strings.Contains(string(page), response.Header.Get("X-Request-Id")) {
			t.Errorf("%s: %v %v %s", name, response, err, page)
		}
		conn.Close()
	}
	until(t, "the connections are gone", func() bool { return l.registry.Connections() == 0 })
}

// Handshakes that do not go on take no more room than they may, and those of one network less than all.
func TestHandshakesUnderWayAreBounded(t *testing.T) {
	for name, limits := range map[string]Limits{
		"handshakes":         {Handshakes: 3},
		"network-handshakes": {Handshakes: 100, HandshakesPerNetwork: 3},
	} {
		l := listen(t, true, limits)
		var begun []net.Conn
		for range 3 {
			conn, err := net.Dial("tcp", at(l.base))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			begun = append(begun, conn)
			if _, err := conn.Write([]byte{handshakeRecord}); err != nil {
				t.Fatal(err)
			}
			until(t, "the handshake has begun", func() bool { return l.registry.Counters().Handshakes == len(begun) })
		}
		if _, err := ask(clientFor(t, false), "https", l.base); err == nil {
			t.Errorf("%s: one more", name)
		}
		if now := l.registry.Counters(); now.Refused[name] != 1 || now.Handshakes != 3 {
			t.Errorf("%s: %+v", name, now)
		}
		begun[0].Close()
		until(t, "there is room", func() bool { return l.registry.Counters().Handshakes == 2 })
		if _, err := ask(clientFor(t, false), "https", l.base); err != nil {
			t.Errorf("%s: with room: %v", name, err)
		}
		// Connections that say nothing are none of them.
		for range 5 {
			silent, err := net.Dial("tcp", at(l.base))
			if err != nil {
				t.Fatal(err)
			}
			defer silent.Close()
		}
		if _, err := ask(clientFor(t, false), "https", l.base); err != nil {
			t.Errorf("%s: beside silent ones: %v", name, err)
		}
	}
}

// deafSocket sends, and hears at first only that its address is to be shown.
type deafSocket struct {
	net.PacketConn
	hears atomic.Bool
}

func (s *deafSocket) ReadFrom(p []byte) (int, net.Addr, error) {
	for {
		n, from, err := s.PacketConn.ReadFrom(p)
		// A Retry of QUIC version 1.
		if err != nil || n > 0 && p[0]&0xf0 == 0xf0 || s.hears.Load() {
			return n, from, err
		}
	}
}

// beginQUIC begins a handshake that does not go on before its client hears.
func (e *quicEdge) beginQUIC(t *testing.T) (hear func()) {
	t.Helper()
	socket, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	deaf := &deafSocket{PacketConn: socket}
	ctx, cancel := context.WithCancel(context.Background())
	transport := &quic.Transport{Conn: deaf}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if conn, err := transport.Dial(ctx, e.port.socket.LocalAddr(), &tls.Config{InsecureSkipVerify: true, ServerName: "a.com", NextProtos: []string{"h3"}}, nil); err == nil {
			_ = conn.CloseWithError(0, "")
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
		socket.Close()
		transport.Close()
	})
	return func() { deaf.hears.Store(true) }
}

// Those of QUIC are among them.
func TestHandshakesOfQUICUnderWayAreBounded(t *testing.T) {
	for name, limits := range map[string]Limits{
		"handshakes":         {Handshakes: 3},
		"network-handshakes": {Handshakes: 100, HandshakesPerNetwork: 3},
	} {
		e := serveQUIC(t, limits, func(_ http.ResponseWriter, r *http.Request) { FromContext(r.Context()) })
		var begun []func()
		for range 3 {
			begun = append(begun, e.beginQUIC(t))
			until(t, "the handshake has begun", func() bool { return e.registry.Counters().Handshakes == len(begun) })
		}
		if n := e.port.unverified.Load(); n > e.registry.limiter.unverified() {
			t.Errorf("%s: %d of clients that showed no address", name, n)
		}
		refused, _ := e.visitor(t, "a.com")
		if response, err := refused.Get(e.url()); err == nil {
			t.Errorf("%s: one more: %v", name, response)
		}
		if now := e.registry.Counters(); now.Refused[name] == 0 || now.Handshakes > 3 {
			t.Errorf("%s: %+v", name, now)
		}
		begun[0]()
		until(t, "there is room", func() bool { return e.registry.Counters().Handshakes < 3 })
		visitor, _ := e.visitor(t, "a.com")
		if _, err := visitor.Get(e.url()); err != nil {
			t.Errorf("%s: with room: %v", name, err)
		}
	}
}

// What quic-go goes on with although it had to go takes no more room than what is under way.
func TestHandshakesOfQUICThatHadToGoAreBounded(t *testing.T) {
	var l limiter
	l.set(Limits{Handshakes: 2})
	var all []*Conn
	begin := func(addr string) (gone *Conn) {
		c := &Conn{Conn: new(quicConn)}
		all = append(all, c)
		l.enter(c, netip.MustParseAddr(addr), time.Now())
		if dropped := l.shake(c); len(dropped) == 1 {
			gone = dropped[0]
		}
		// Who is refused has no handshake.
		if gone == c {
			l.shaken(c)
		}
		return gone
	}
	const crowd, other = "10.0.0.1", "10.1.0.1"
	begin(crowd)
	// Twice somebody else takes the place of the crowd's last one, which quic-go goes on with. Then nobody does any more.
	for _, makesRoom := range []bool{true, true, false} {
		begin(crowd)
		if gone := begin(other); (gone == all[len(all)-2]) != makesRoom || (gone == all[len(all)-1]) == makesRoom {
			t.Errorf("the handshake %d of %d had to go, and %d are still there", slices.Index(all, gone), len(all), l.abandoned)
		}
		l.shaken(all[len(all)-1])
	}
	if l.abandoned != 2 || l.handshakes != 2 {
		t.Errorf("%d had to go, %d are under way", l.abandoned, l.handshakes)
	}
	for _, c := range all {
		l.shaken(c)
		l.leave(c)
	}
	if l.abandoned != 0 || l.handshakes != 0 || l.open != 0 {
		t.Errorf("%d, %d and %d are left", l.abandoned, l.handshakes, l.open)
	}
}

func TestSilentHandshakesEnd(t *testing.T) {
	l := listen(t, true, Limits{HeaderTime: time.Minute})
	conn, err := net.Dial("tcp", at(l.base))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte{handshakeRecord}); err != nil {
		t.Fatal(err)
	}
	until(t, "the handshake has begun", func() bool { return l.registry.Counters().Handshakes == 1 })
	abort(l.registry.limiter.expired(time.Now().Add(time.Hour)), nil)
	if now := l.registry.Counters(); now.Handshakes != 0 || now.Evicted["header-time"] != 1 {
		t.Errorf("%+v", now)
	}
	until(t, "the connection is gone", func() bool { return l.registry.Connections() == 0 })
}

func TestWithoutCertificatesTLSIsRefused(t *testing.T) {
	here, there := net.Pipe()
	defer there.Close()
	go func() {
		_ = tls.Server(here, nobody{}.ServerConfig()).Handshake()
		here.Close()
	}()
	if err := tls.Client(there, &tls.Config{ServerName: "a.com"}).Handshake(); err == nil || !strings.Contains(err.Error(), "internal error") {
		t.Errorf("%v", err)
	}
}
