package listen

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
	"edge.svc/caddy/internal/edgetest"
	"edge.svc/caddy/internal/ja4"
)

// handshakes decides the handshakes of tests: anybody gets in but the clients of one name.
type handshakes struct {
	certificate tls.Certificate
	failed      atomic.Int64
	early       atomic.Bool
}

const refusedName = "refused.example.com"

var testTLS = core.NewComponent("handshakes of tests", func(*core.Core) *handshakes {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"a.com"}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		panic(err)
	}
	return &handshakes{certificate: tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}}
})

func (h *handshakes) ServerConfig() *tls.Config {
	inner := &tls.Config{NextProtos: []string{"h2", "http/1.1"}, GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		if _, known := hello.Conn.(exchange.HandshakeConn); !known {
			return nil, errors.New("nobody knows whose hello it is")
		}
		return &h.certificate, nil
	}}
	// Each handshake has a copy, which would make keys for its tickets.
	inner.SetSessionTicketKeys([][32]byte{{1}})
	return &tls.Config{GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		conn := hello.Conn.(exchange.HandshakeConn)
		if hello.ServerName == refusedName {
			return nil, errors.New("refused")
		}
		quic := hello.Conn.(interface{ QUIC() bool }).QUIC()
		conn.SetHandshake(&exchange.Handshake{ServerName: hello.ServerName, SiteID: "a", JA4: ja4.Of(hello, quic)})
		return inner, nil
	}}
}

func (h *handshakes) Failed(error) { h.failed.Add(1) }

// quicEdge serves HTTP/3 in front of a handler.
type quicEdge struct {
	port     *quicPort
	registry *Registry
	tls      *handshakes
	secret   *quicSecret
	core     *core.Core
}

func serveQUIC(t *testing.T, limits Limits, handler http.HandlerFunc) *quicEdge {
	t.Helper()
	e := &quicEdge{registry: NewRegistry(), secret: new(quicSecret), core: newCore(t, &configv1.ClientIp{})}
	e.registry.limiter.set(limits)
	e.tls = testTLS.Of(e.core)
	e.listen(t, "127.0.0.1:0", handler)
	t.Cleanup(func() { e.port.end() })
	return e
}

func (e *quicEdge) listen(t *testing.T, address string, handler http.HandlerFunc) {
	t.Helper()
	socket, err := net.ListenPacket("udp", address)
	if err != nil {
		t.Fatal(err)
	}
	if e.port, err = New(e.core, e.registry).serveQUIC(socket, 443, e.tls, e.secret, handler); err != nil {
		t.Fatal(err)
	}
}

// visitor is a client with connections of its own.
func (e *quicEdge) visitor(t *testing.T, name string) (*http.Client, *http3.Transport) {
	t.Helper()
	transport := &http3.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true, ServerName: name},
		QUICConfig:      &quic.Config{HandshakeIdleTimeout: 10 * time.Second, MaxIdleTimeout: 20 * time.Second},
	}
	t.Cleanup(func() { transport.Close() })
	return &http.Client{Transport: transport, Timeout: 20 * time.Second}, transport
}

func (e *quicEdge) url() string { return "https://" + e.port.socket.LocalAddr().String() + "/" }

func TestRequestsOverQUICKnowTheirConnection(t *testing.T) {
	seen := make(chan exchange.Inbound, 1)
	var client exchange.Stage
	e := serveQUIC(t, Limits{}, func(w http.ResponseWriter, r *http.Request) {
		x := new(exchange.Exchange)
		x.Begin(w, r)
		x.Tables = exchange.NewTables()
		Carry(x, FromContext(r.Context()), time.Minute)
		client(x)
		seen <- x.In
	})
	client = Client(e.core)
	visitor, transport := e.visitor(t, "a.com")
	response, err := visitor.Get(e.url())
	if err != nil || response.ProtoMajor != 3 {
		t.Fatal(response, err)
	}
	in := <-seen
	if in.Peer != netip.MustParseAddr("127.0.0.1") || in.Client != in.Peer || in.Port != e.port.real || in.NamedPort != 443 ||
		in.TLS == nil || in.Scheme != "https" || in.Major != 3 {
		t.Errorf("%+v", in)
	}
	if in.Handshake == nil || in.Handshake.ServerName != "a.com" || !strings.HasPrefix(in.JA4(), "q13d") || in.JA4()[8:10] != "h3" {
		t.Errorf("%+v", in.Handshake)
	}
	if c := e.registry.Counters(); c.Open != 1 || c.Waiting != 0 || c.Accepted != 1 {
		t.Errorf("%+v", c)
	}
	transport.Close()
	until(t, "nothing is open", func() bool { return e.registry.Counters().Open == 0 })
	if n := e.tls.failed.Load(); n != 0 || e.port.unverified.Load() != 0 {
		t.Errorf("%d handshakes failed, %d are under way", n, e.port.unverified.Load())
	}
}

func TestRefusedHandshakesOfQUICLeaveNothing(t *testing.T) {
	e := serveQUIC(t, Limits{}, func(http.ResponseWriter, *http.Request) {})
	visitor, _ := e.visitor(t, refusedName)
	if response, err := visitor.Get(e.url()); err == nil {
		t.Fatal(response)
	}
	until(t, "nothing is open and the failure counts", func() bool {
		return e.registry.Counters().Open == 0 && e.tls.failed.Load() == 1 && e.port.unverified.Load() == 0
	})
}

func TestQUICConnectionsCountUnderTheLimitsOfAll(t *testing.T) {
	e := serveQUIC(t, Limits{PerAddress: 2}, func(http.ResponseWriter, *http.Request) {})
	for range 2 {
		visitor, _ := e.visitor(t, "a.com")
		if _, err := visitor.Get(e.url()); err != nil {
			t.Fatal(err)
		}
	}
	visitor, _ := e.visitor(t, "a.com")
	if response, err := visitor.Get(e.url()); err == nil {
		t.Fatal(response)
	}
	if c := e.registry.Counters(); c.Open != 2 || c.Refused["address"] == 0 {
		t.Errorf("%+v", c)
	}
}

func TestQUICConnectionsWithoutARequestAreEnded(t *testing.T) {
	e := serveQUIC(t, Limits{HeaderTime: time.Nanosecond}, func(http.ResponseWriter, *http.Request) {})
	conn := dialQUIC(t, e, []string{"h3"})
	until(t, "the handshake is over", func() bool { return e.registry.Counters().Waiting == 1 })
	abort(e.registry.limiter.expired(time.Now().Add(time.Second)), nil)
	select {
	case <-conn.Context().Done():
	case <-time.After(20 * time.Second):
		t.Fatal("the connection goes on")
	}
	if c := e.registry.Counters(); c.Evicted["header-time"] != 1 || c.Open != 0 {
		t.Errorf("%+v", c)
	}
}

func dialQUIC(t *testing.T, e *quicEdge, protocols []string) *quic.Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	t.Cleanup(cancel)
	conn, err := quic.DialAddr(ctx, e.port.socket.LocalAddr().String(), &tls.Config{InsecureSkipVerify: true, ServerName: "a.com", NextProtos: protocols}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.CloseWithError(0, "") })
	return conn
}

func TestABanEndsAConnectionOfQUIC(t *testing.T) {
	begun := make(chan struct{}, 1)
	e := serveQUIC(t, Limits{}, func(w http.ResponseWriter, r *http.Request) {
		FromContext(r.Context())
		w.WriteHeader(200)
		_ = http.NewResponseController(w).Flush()
		begun <- struct{}{}
		<-r.Context().Done()
	})
	visitor, _ := e.visitor(t, "a.com")
	response, err := visitor.Get(e.url())
	if err != nil {
		t.Fatal(err)
	}
	<-begun
	for i := range e.registry.shards {
		if c := e.registry.shards[i].first; c != nil {
			c.Abort()
		}
	}
	if _, err := io.ReadAll(response.Body); err == nil {
		t.Error("the answer ended well")
	}
	until(t, "nothing is open", func() bool { return e.registry.Counters().Open == 0 })
}

// A stream that was ended stays so, whatever limit its handler asks for.
func TestAnEndedStreamTakesNoLaterLimit(t *testing.T) {
	failed := make(chan error, 1)
	e := serveQUIC(t, Limits{}, func(w http.ResponseWriter, r *http.Request) {
		c := FromContext(r.Context())
		entry := &Exchange{Writer: w}
		c.Begin(entry)
		defer c.End(entry)
		c.kill(func(string, netip.Addr, netip.Addr) bool { return true })
		control := http.NewResponseController(w)
		c.boundStream(control, entry, time.Hour)
		var err error
		// More than any window takes.
		for range 64 {
			if _, err = w.Write(make([]byte, 1<<20)); err != nil {
				break
			}
		}
		failed <- err
		panic(http.ErrAbortHandler)
	})
	visitor, _ := e.visitor(t, "a.com")
	if response, err := visitor.Get(e.url()); err == nil {
		if _, err = io.ReadAll(response.Body); err == nil {
			t.Error("the answer came whole")
		}
	}
	if err := <-failed; err == nil {
		t.Error("everything was written")
	}
}

// A client of a process that is gone learns it with its next packet, from the one that took its port.
func TestAClientOfAFormerProcessConnectsAnew(t *testing.T) {
	answer := func(w http.ResponseWriter, r *http.Request) {
		FromContext(r.Context())
		_, _ = io.WriteString(w, "ok")
	}
	e := serveQUIC(t, Limits{}, answer)
	visitor, _ := e.visitor(t, "a.com")
	if _, err := visitor.Get(e.url()); err != nil {
		t.Fatal(err)
	}
	conn := dialQUIC(t, e, []string{"h3"})
	// With an answer the handshake is confirmed, too: before it a client repeats nothing but its handshake.
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, e.url(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = new(http3.Transport).NewClientConn(conn).RoundTrip(request); err != nil {
		t.Fatal(err)
	}
	// As if the process had died: nobody says goodbye.
	address := e.port.socket.LocalAddr().String()
	dead := e.port
	_ = dead.socket.Close()
	e.listen(t, address, answer)
	if stream, err := conn.OpenStreamSync(context.Background()); err == nil {
		// Shorter packets get no answer.
		_, _ = stream.Write(make([]byte, 512))
	}
	select {
	case <-conn.Context().Done():
	case <-time.After(20 * time.Second):
		t.Fatal("the former connection was not reset")
	}
	var reset *quic.StatelessResetError
	if !errors.As(context.Cause(conn.Context()), &reset) {
		t.Errorf("ended with %v", context.Cause(conn.Context()))
	}
	until(t, "the other client has an answer", func() bool {
		_, err := visitor.Get(e.url())
		return err == nil
	})
}

func TestThePortEndsWithGoaway(t *testing.T) {
	release := make(chan struct{})
	e := serveQUIC(t, Limits{}, func(w http.ResponseWriter, r *http.Request) {
		FromContext(r.Context())
		w.WriteHeader(200)
		_ = http.NewResponseController(w).Flush()
		<-release
		_, _ = io.WriteString(w, "whole")
	})
	visitor, _ := e.visitor(t, "a.com")
	response, err := visitor.Get(e.url())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	ended := make(chan struct{})
	go func() {
		e.port.close(ctx)
		close(ended)
	}()
	// The listener refuses, and what is under way goes on.
	until(t, "new connections are refused", func() bool {
		other, transport := e.visitor(t, "a.com")
		defer transport.Close()
		_, err := other.Get(e.url())
		return err != nil
	})
	close(release)
	if body, err := io.ReadAll(response.Body); err != nil || string(body) != "whole" {
		t.Errorf("%q, %v", body, err)
	}
	<-ended
}

// Ports of UDP follow what sites want.
func TestAPortIsOpenWhileASiteWantsHTTP3(t *testing.T) {
	c := newCore(t, &configv1.ClientIp{})
	s := http3Ports.Of(c)
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	w := New(c, NewRegistry())
	w.openedTLS(tcp.Addr(), 443)
	AnswerHTTP3(c, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { FromContext(r.Context()) }))
	defer s.End()
	expect := func(open int, why string) {
		t.Helper()
		s.follow(time.Now())
		if len(s.open) != open {
			t.Fatalf("%d ports are open: %s", len(s.open), why)
		}
	}
	site := func(http3 bool) *configv1.Entry {
		return edgetest.Entry("site-https", "a", &configv1.SiteHttps{Http3: http3})
	}
	change := func(entries ...*configv1.Entry) {
		t.Helper()
		if failed := edgetest.Change(t, c, entries); len(failed) > 0 {
			t.Fatal(failed)
		}
	}
	expect(0, "no site wants one")
	change(edgetest.Entry("site", "a", edgetest.Site(0, "a.com")), edgetest.Entry("site", "b", edgetest.Site(0, "b.com")), site(false))
	expect(0, "the site does not want one")
	change(site(true))
	expect(1, "the site wants one")
	other := func(http3 bool) *configv1.Entry {
		return edgetest.Entry("site-https", "b", &configv1.SiteHttps{Http3: http3})
	}
	change(other(true), site(false))
	expect(1, "another site wants one")
	change(other(false))
	expect(0, "no site wants one any more")
	change(site(true))
	expect(1, "the site wants one again")
	change(edgetest.Entry("client-ip", "", &configv1.ClientIp{Mode: configv1.ClientIpMode_CLIENT_IP_MODE_PROXY_PROTOCOL}))
	expect(0, "datagrams have no PROXY header")
	change(edgetest.Entry("client-ip", "", &configv1.ClientIp{}))
	expect(1, "as before")

	altSvc := func(siteID, host string) []string {
		x := new(exchange.Exchange)
		x.In.HostRaw = host
		x.In.TLS, x.Plan = new(tls.ConnectionState), core.PlanOfSite(c.Tables(), siteID)
		x.In.Port = portOf(tcp.Addr())
		a := &exchange.Answer{Header: http.Header{"Alt-Svc": {`h3=":1"`}}}
		AltSvc(c)(x, a)
		return a.Header["Alt-Svc"]
	}
	for host, port := range map[string]string{
		"a.com": "443", "a.com:8443": "8443", "a.com:443": "443", "a.com:0": "443", "a.com:": "443", "a.com:99999": "443",
		"a.com:1;x": "443", "a.com:007": "7",
	} {
		if got := altSvc("a", host); len(got) != 1 || got[0] != `h3=":`+port+`"; ma=86400` {
			t.Errorf("%s: %q", host, got)
		}
	}
	if got := altSvc("b", "a.com"); got != nil {
		t.Errorf("a site without HTTP/3 says %q", got)
	}
	w.closedTLS(tcp.Addr())
	expect(0, "the port of TLS is gone")
	if got := altSvc("a", "a.com"); got != nil {
		t.Errorf("without a port the site says %q", got)
	}
}

func TestAPortThatIsTakenIsTriedAgain(t *testing.T) {
	c := newCore(t, &configv1.ClientIp{})
	s := http3Ports.Of(c)
	taken, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	New(c, NewRegistry()).openedTLS(taken.LocalAddr(), 443)
	AnswerHTTP3(c, http.NotFoundHandler())
	defer s.End()
	edgetest.Change(t, c, []*configv1.Entry{
		edgetest.Entry("site", "a", edgetest.Site(0, "a.com")), edgetest.Entry("site-https", "a", &configv1.SiteHttps{Http3: true}),
	})
	now := time.Now()
	s.follow(now)
	if len(s.open) != 0 || len(c.Report().GetWarnings()) != 1 {
		t.Fatalf("%d ports, %q", len(s.open), c.Report().GetWarnings())
	}
	taken.Close()
	s.follow(now.Add(http3Retry / 2))
	if len(s.open) != 0 {
		t.Error("it is tried at once")
	}
	s.follow(now.Add(2 * http3Retry))
	if len(s.open) != 1 || len(c.Report().GetWarnings()) != 0 {
		t.Fatalf("%d ports, %q", len(s.open), c.Report().GetWarnings())
	}
}

func TestTheSecretOfAFolderStays(t *testing.T) {
	folder := t.TempDir()
	if a, b := readQUICSecret(folder), readQUICSecret(folder); *a == *b {
		t.Error("two processes without a file have one secret")
	}
	writeSecret(t, folder)
	a, b := readQUICSecret(folder), readQUICSecret(folder)
	if *a != *b || *a.reset() != *b.reset() || [32]byte(*a.reset()) == [32]byte(*a.token()) {
		t.Error("the secret changes, or is used twice")
	}
}

// A process ends when the clients of all its ports have heard of it, those of sockets that Caddy closed before among them.
func TestTheEndWaitsForWhatIsOpen(t *testing.T) {
	c := newCore(t, &configv1.ClientIp{})
	s := http3Ports.Of(c)
	testTLS.Of(c)
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	w := New(c, NewRegistry())
	w.openedTLS(tcp.Addr(), 443)
	AnswerHTTP3(c, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		FromContext(r.Context())
		w.WriteHeader(200)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	edgetest.Change(t, c, []*configv1.Entry{
		edgetest.Entry("site", "a", edgetest.Site(0, "a.com")), edgetest.Entry("site-https", "a", &configv1.SiteHttps{Http3: true}),
	})
	s.follow(time.Now())
	port := s.open[tcp.Addr().String()]
	if port == nil {
		t.Fatal("no port is open")
	}
	visitor, _ := (&quicEdge{port: port}).visitor(t, "a.com")
	response, err := visitor.Get("https://" + port.socket.LocalAddr().String() + "/")
	if err != nil {
		t.Fatal(err)
	}
	w.closedTLS(tcp.Addr())
	s.follow(time.Now())
	s.End()
	select {
	case <-port.done:
	default:
		t.Error("the process may end while a client is told")
	}
	var closed *quic.ApplicationError
	if _, err := io.ReadAll(response.Body); !errors.As(err, &closed) || !closed.Remote {
		t.Errorf("the answer ended with %v", err)
	}
}
