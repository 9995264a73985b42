// Package svclisten wraps the listeners of the edge: it knows the TCP peer and the PROXY header of each connection,
// counts connections, and closes them when their client is banned.
//
// Accepting touches nothing but the raw connection; whatever has to be read from a client is read by the goroutine of
// its connection.
package svclisten

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/gaissmai/bart"

	configv1 "edge.svc/caddy/gen/svc/config/v1"
	"edge.svc/caddy/svccore"
)

func init() { caddy.RegisterModule(Wrapper{}) }

// Wrapper is the listener wrapper `svc`. It must come before `tls`.
type Wrapper struct {
	// Networks of the proxies that send the PROXY header, as CIDRs. In proxy_protocol mode connections of others are
	// closed. Empty: every peer is believed.
	ProxyPeers []string `json:"proxy_peers,omitempty"`

	core     *svccore.Core
	registry *Registry
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
	core, err := svccore.FromContext(ctx)
	if err != nil {
		return err
	}
	server, ok := ctx.Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server)
	if !ok {
		return errors.New("the wrapper works in HTTP servers only")
	}
	w.core, w.registry = core, Process
	if w.peers == nil {
		BelieveAnyProxyPeer(core)
	}
	w.registry.watch(core)
	var once sync.Once
	server.RegisterConnContext(func(ctx context.Context, c net.Conn) context.Context {
		once.Do(func() {
			// Else net/http answers `OPTIONS *` by itself. The first connection comes before any request is read.
			if server, ok := ctx.Value(http.ServerContextKey).(*http.Server); ok {
				server.DisableGeneralOptionsHandler = true
			}
		})
		return withConn(ctx, c)
	})
	return nil
}

func (w *Wrapper) parsePeers() error {
	for _, cidr := range w.ProxyPeers {
		p, err := netip.ParsePrefix(cidr)
		if err != nil {
			return fmt.Errorf("proxy_peers: %w", err)
		}
		if w.peers == nil {
			w.peers = new(bart.Lite)
		}
		w.peers.Insert(p.Masked())
	}
	return nil
}

// WrapListener wraps a listener.
func (w *Wrapper) WrapListener(ln net.Listener) net.Listener {
	w.registry.listeners.Add(1)
	return &listener{Listener: ln, wrapper: w, port: portOf(ln.Addr())}
}

type listener struct {
	net.Listener
	wrapper *Wrapper
	port    uint16
	closed  atomic.Bool
}

func (l *listener) Accept() (net.Conn, error) {
	for {
		raw, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		var peer netip.Addr
		if tcp, ok := raw.RemoteAddr().(*net.TCPAddr); ok {
			peer = tcp.AddrPort().Addr().WithZone("").Unmap()
		}
		if !l.wrapper.admits(peer) {
			_ = raw.Close()
			continue
		}
		c := &Conn{Conn: raw, Peer: peer, port: l.port, core: l.wrapper.core}
		l.wrapper.registry.add(c)
		return c, nil
	}
}

func (w *Wrapper) admits(peer netip.Addr) bool {
	return w.peers == nil || w.peers.Lookup(peer) ||
		ClientIP.Of(w.core.Tables()).Mode != configv1.ClientIpMode_CLIENT_IP_MODE_PROXY_PROTOCOL
}

func (l *listener) Close() error {
	if l.closed.CompareAndSwap(false, true) {
		l.wrapper.registry.listeners.Add(-1)
	}
	return l.Listener.Close()
}

var (
	_ caddy.Provisioner     = (*Wrapper)(nil)
	_ caddy.ListenerWrapper = (*Wrapper)(nil)
)
