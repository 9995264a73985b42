package listen

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/gaissmai/bart"
	"golang.org/x/net/http2"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
	"edge.svc/caddy/internal/address"
	"edge.svc/caddy/internal/inflight"
)

func init() { caddy.RegisterModule(Wrapper{}) }

// Wrapper is the listener wrapper `svc`. On the network `svc-https` it terminates TLS, so that no server needs policies.
type Wrapper struct {
	// Networks of the proxies that send the PROXY header, as CIDRs. In proxy_protocol mode connections of others are
	// closed. Empty: every peer is believed.
	ProxyPeers []string `json:"proxy_peers,omitempty"`
	// Connections open at a time in the process. Default: from the files and the memory it may use.
	MaxConnections int `json:"max_connections,omitempty"`
	// Connections of one /24 (IPv6: /48) at a time. Default: a quarter of all.
	MaxPerNetwork int `json:"max_per_network,omitempty"`
	// Connections of one address (IPv6: /64) at a time. Default: half of those of a network.
	MaxPerAddress int `json:"max_per_address,omitempty"`
	// Connections that have not sent the head of a request yet. Default: a quarter of all.
	MaxWaiting int `json:"max_waiting,omitempty"`
	// Handshakes of TLS under way at a time, and those of one /24 (IPv6: /48). Default: half of those that may wait, and half
	// of that.
	MaxHandshakes           int `json:"max_handshakes,omitempty"`
	MaxHandshakesPerNetwork int `json:"max_handshakes_per_network,omitempty"`
	// MiB of memory that requests in progress and their bodies hold, in total and for each /24 (IPv6: /48). Default: an eighth
	// of the memory, and a quarter of that, at most 24.
	MaxRequestMiB           int `json:"max_request_mib,omitempty"`
	MaxRequestMiBPerNetwork int `json:"max_request_mib_per_network,omitempty"`
	// Time for the head of the first request, TLS and PROXY header included. Default: 15s.
	HeaderTime caddy.Duration `json:"header_time,omitempty"`

	// caddy says that the server is one of Caddy's.
	caddy    bool
	core     *core.Core
	registry *Registry
	accounts exchange.Accounts
	peers    *bart.Lite
}

// CaddyModule returns the Caddy module information.
func (Wrapper) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "caddy.listeners.svc", New: func() caddy.Module { return new(Wrapper) }}
}

// Provision parses the networks and hooks the wrapper into its server.
func (w *Wrapper) Provision(ctx caddy.Context) error {
	if err := w.parsePeers(); err != nil {
		return err
	}
	c, err := core.FromContext(ctx)
	if err != nil {
		return err
	}
	server, ok := ctx.Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server)
	if !ok {
		return errors.New("the listener wrapper works only in HTTP servers")
	}
	if err := checkFrames(http2.ConfigureServer); err != nil {
		return err
	}
	limits, err := w.limits()
	if err != nil {
		return err
	}
	w.caddy = true
	w.core, w.registry, w.accounts = c, Process, core.Find[exchange.Accounts](c)
	w.registry.SetLimits(limits)
	if w.peers == nil {
		BelieveAnyProxyPeer(c)
	}
	w.registry.watch(c)
	server.RegisterConnContext(w.connContext())
	return nil
}

// New makes a wrapper for servers outside of Caddy. See Serve.
func New(c *core.Core, registry *Registry) *Wrapper {
	registry.watch(c)
	return &Wrapper{core: c, registry: registry, accounts: core.Find[exchange.Accounts](c)}
}

// limits are those of the configuration.
func (w *Wrapper) limits() (Limits, error) {
	l := Limits{
		Connections: w.MaxConnections, PerNetwork: w.MaxPerNetwork, PerAddress: w.MaxPerAddress,
		Waiting: w.MaxWaiting, HeaderTime: time.Duration(w.HeaderTime),
		Handshakes: w.MaxHandshakes, HandshakesPerNetwork: w.MaxHandshakesPerNetwork,
		Requests: inflight.Limits{Total: int64(w.MaxRequestMiB) << 20, PerNetwork: int64(w.MaxRequestMiBPerNetwork) << 20},
	}
	if min(w.MaxRequestMiB, w.MaxRequestMiBPerNetwork, l.Connections, l.PerNetwork, l.PerAddress, l.Waiting, l.Handshakes, l.HandshakesPerNetwork) < 0 || l.HeaderTime < 0 {
		return l, errors.New("the limits must be positive")
	}
	return l, nil
}

func (w *Wrapper) parsePeers() error {
	for _, cidr := range w.ProxyPeers {
		p, err := address.ParseNetwork(cidr)
		if err != nil {
			return fmt.Errorf("proxy_peers: %w", err)
		}
		if w.peers == nil {
			w.peers = new(bart.Lite)
		}
		w.peers.Insert(p)
	}
	return nil
}

// WrapListener wraps a listener.
func (w *Wrapper) WrapListener(ln net.Listener) net.Listener {
	w.registry.listeners.Add(1)
	l := &listener{Listener: ln, wrapper: w}
	if s, ok := ln.(*sockets); ok && s.tls {
		s.belongTo(w)
		return newTLSListener(l)
	}
	return l
}

type listener struct {
	net.Listener
	wrapper *Wrapper
	// Whether connections begin with a PROXY header, nil where the cluster's setting for HTTP says so.
	proxy  func(*exchange.Tables) bool
	closed atomic.Bool
}

func (l *listener) Accept() (net.Conn, error) {
	c, err := l.accept()
	if err != nil {
		return nil, err
	}
	return c, nil
}

func (l *listener) accept() (*Conn, error) {
	for {
		raw, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		var peer netip.Addr
		if tcp, ok := raw.RemoteAddr().(*net.TCPAddr); ok {
			peer = tcp.AddrPort().Addr().WithZone("").Unmap()
		}
		w := l.wrapper
		tables := w.core.Tables()
		c := &Conn{Conn: raw, Peer: peer, port: portOf(raw.LocalAddr()), core: w.core, proxy: l.proxy}
		proxied := c.expectsProxy(tables)
		if !w.admits(peer, proxied) {
			w.registry.limiter.refuse(strangerPeer)
			_ = raw.Close()
			continue
		}
		if from, ok := raw.(*socketConn); ok {
			c.Conn, c.socket, c.named = from.Conn, from.socket, from.socket.name
		}
		if w.accounts != nil {
			c.meter.Init(w.accounts.NodeAccount())
		}
		if w.registry.admit(c, w.countedFor(tables, peer, proxied)) {
			return c, nil
		}
	}
}

func (l *listener) Close() error {
	if l.closed.CompareAndSwap(false, true) {
		l.wrapper.registry.listeners.Add(-1)
	}
	return l.Listener.Close()
}

var (
	_ caddy.Provisioner      = (*Wrapper)(nil)
	_ caddy.ListenerWrapper  = (*Wrapper)(nil)
	_ exchange.HandshakeConn = (*Conn)(nil)
)
