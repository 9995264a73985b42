package origin

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"time"

	"edge.svc/caddy/exchange"
)

// dial makes a new connection to the origin: it resolves the name, drops every address the policy refuses and connects
// to one of the others by number, so that a name cannot change its mind in between. limit bounds the connection and,
// once more, the TLS handshake. Errors are *originError.
// Times go into outcome.
func (t *Transports) dial(request context.Context, o *origin, limit time.Duration, outcome *exchange.OriginOutcome) (*conn, error) {
	return t.dialFor(request, o, limit, "http/1.1", outcome)
}

// dialFor is dial for another protocol over TLS.
func (t *Transports) dialFor(request context.Context, o *origin, limit time.Duration, protocol string, outcome *exchange.OriginOutcome) (*conn, error) {
	begun := time.Now()
	policy := t.policy()
	deadline := begun.Add(limit)
	ctx, cancel := context.WithDeadline(request, deadline)
	defer cancel()
	addrs, err := t.resolver.resolve(ctx, o.dial.host.Value(), policy)
	if err != nil {
		return nil, fail(classOf(err), err)
	}
	tcp, addr, err := t.connect(ctx, addrs, o.dial.port, deadline)
	connected := time.Now()
	outcome.Connect = connected.Sub(begun)
	if err != nil {
		t.resolver.forget(o.dial.host.Value())
		return nil, fail(classOf(err), err)
	}
	if o.dial.tls == plain {
		return newConn(tcp, tcp, o.dial, addr, policy), nil
	}
	secure, err := t.handshake(request, tcp, o, limit, protocol)
	outcome.TLS = time.Since(connected)
	if err != nil {
		tcp.Close()
		return nil, err
	}
	return newConn(secure, tcp, o.dial, addr, policy), nil
}

func (t *Transports) connect(ctx context.Context, addrs []netip.Addr, port uint16, deadline time.Time) (*net.TCPConn, netip.Addr, error) {
	var first error
	for i, addr := range addrs {
		// Each address gets an equal share of what is left, so that one that drops packets does not use up all.
		left := time.Until(deadline)
		if left <= 0 {
			break
		}
		share := max(left/time.Duration(len(addrs)-i), min(left, 2*time.Second))
		try, cancel := context.WithTimeout(ctx, share)
		c, err := t.dialer.DialContext(try, "tcp", netip.AddrPortFrom(addr, port).String())
		cancel()
		if err == nil {
			return c.(*net.TCPConn), addr, nil
		}
		if first == nil {
			first = err
		}
		if ctx.Err() != nil {
			break
		}
	}
	if first == nil {
		first = context.DeadlineExceeded
	}
	return nil, netip.Addr{}, first
}

func (t *Transports) handshake(ctx context.Context, tcp *net.TCPConn, o *origin, limit time.Duration, protocol string) (*tls.Conn, error) {
	config := t.tls[o.dial.tls].Clone()
	config.NextProtos = []string{protocol}
	config.ServerName = o.dial.name.Value()
	secure := tls.Client(tcp, config)
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if err := secure.HandshakeContext(ctx); err != nil {
		if isTimeout(err) || errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return nil, fail(failTimeout, err)
		}
		return nil, fail(failTLS, err)
	}
	return secure, nil
}
