package handshake

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
	nodev1 "edge.svc/caddy/gen/svc/node/v1"
	"edge.svc/caddy/internal/edgetest"
)

// node is an edge with nothing but its handshakes: a connection says "ok" once its handshake is over.
type node struct {
	t    testing.TB
	core *core.Core
	tls  *Terminator
	addr string
	dir  string
	// The port as configuration names it.
	port uint16

	mu        sync.Mutex
	handshake *exchange.Handshake
	state     tls.ConnectionState
}

func newNode(t testing.TB, dir string, options ...func(*core.Options)) *node {
	t.Helper()
	o := core.Options{StateDir: dir}
	for _, change := range options {
		change(&o)
	}
	n := &node{t: t, core: core.New(o), dir: dir, port: core.HTTPSPort}
	n.tls = terminators.Of(n.core)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n.addr = listener.Addr().String()
	t.Cleanup(func() { _ = listener.Close() })
	go n.accept(listener)
	return n
}

func (n *node) accept(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			secure := tls.Server(&testConn{conn, n}, n.tls.ServerConfig())
			if err := secure.Handshake(); err != nil {
				n.tls.Failed(err)
				return
			}
			n.mu.Lock()
			n.state = secure.ConnectionState()
			n.mu.Unlock()
			_, _ = secure.Write([]byte("ok"))
			_ = secure.Close()
		}()
	}
}

// testConn is what a listener gives to TLS.
type testConn struct {
	net.Conn
	node *node
}

func (c *testConn) Port() uint16 { return c.node.port }

func (c *testConn) SetHandshake(h *exchange.Handshake) {
	c.node.mu.Lock()
	defer c.node.mu.Unlock()
	c.node.handshake = h
}

func (n *node) last() exchange.Handshake {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.handshake == nil {
		return exchange.Handshake{}
	}
	return *n.handshake
}

// serverState is the server's view of the connection that was made last.
func (n *node) serverState() *tls.ConnectionState {
	n.mu.Lock()
	defer n.mu.Unlock()
	state := n.state
	return &state
}

// dial shakes hands as a client and waits for the word of the server, with which tickets have come, too.
func (n *node) dial(name string, change ...func(*tls.Config)) (tls.ConnectionState, error) {
	config := &tls.Config{ServerName: name, RootCAs: roots(), NextProtos: []string{"h2", "http/1.1"}}
	for _, f := range change {
		f(config)
	}
	conn, err := net.DialTimeout("tcp", n.addr, time.Minute)
	if err != nil {
		n.t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	secure := tls.Client(conn, config)
	if err := secure.HandshakeContext(context.Background()); err != nil {
		return tls.ConnectionState{}, err
	}
	if _, err := io.ReadAll(secure); err != nil {
		return tls.ConnectionState{}, err
	}
	return secure.ConnectionState(), nil
}

func (n *node) mustDial(name string, change ...func(*tls.Config)) tls.ConnectionState {
	n.t.Helper()
	state, err := n.dial(name, change...)
	if err != nil {
		n.t.Fatalf("%s: %v", name, err)
	}
	return state
}

// wantAlert dials and expects to be refused with an alert.
func (n *node) wantAlert(name string, want tls.AlertError, change ...func(*tls.Config)) {
	n.t.Helper()
	_, err := n.dial(name, change...)
	var alert tls.AlertError
	if !errors.As(err, &alert) {
		var op *net.OpError
		if errors.As(err, &op) {
			if op.Err.Error() == want.Error() {
				return
			}
		}
		n.t.Errorf("%s: %v, not the alert %v", name, err, want)
		return
	}
	if alert != want {
		n.t.Errorf("%s: %v, not the alert %v", name, alert, want)
	}
}

const unrecognized = tls.AlertError(112)

func (n *node) refused(reason counter) uint64 { return n.tls.counters.refused[reason].Load() }

// wantRefused waits for the server to have counted: the client may know of it before.
func (n *node) wantRefused(reason counter, want uint64) {
	n.t.Helper()
	for end := time.Now().Add(time.Minute); n.refused(reason) != want; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			n.t.Fatalf("%d refused for %s, not %d", n.refused(reason), reasonNames[reason], want)
		}
	}
}

func (n *node) change(entries ...*configv1.Entry) []*nodev1.FailedEntry {
	n.t.Helper()
	return edgetest.Change(n.t, n.core, entries)
}

func (n *node) read() []*nodev1.FailedEntry {
	n.t.Helper()
	answer, err := readCertificates(context.Background(), n.core, &edgev1.ReadCertificatesRequest{})
	if err != nil {
		n.t.Fatal(err)
	}
	return answer.GetFailed()
}

func siteEntry(id string, domains ...string) *configv1.Entry {
	return edgetest.Entry("site", id, edgetest.Site(0, domains...))
}

// httpsEntry is an entry with the defaults of the specification.
func httpsEntry(id string, change func(*configv1.SiteHttps), pairs ...*pair) *configv1.Entry {
	m := &configv1.SiteHttps{
		MinimumVersion: configv1.TlsVersion_TLS_VERSION_1_2, CipherProfile: configv1.CipherProfile_CIPHER_PROFILE_MODERN, Http2: true,
	}
	for i, p := range pairs {
		m.Certificates = append(m.Certificates, p.Ref("certificate "+string(rune('a'+i))))
	}
	if change != nil {
		change(m)
	}
	return edgetest.Entry(kind, id, proto.Message(m))
}

// serve has a site with certificates.
func (n *node) serve(id string, change func(*configv1.SiteHttps), pairs []*pair, domains ...string) {
	n.t.Helper()
	appendPack(n.t, n.dir, framesOf(n.t, pairs...))
	n.read()
	if failed := n.change(siteEntry(id, domains...), httpsEntry(id, change, pairs...)); len(failed) > 0 {
		n.t.Fatal(failed)
	}
}
