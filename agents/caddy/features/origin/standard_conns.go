package origin

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"time"

	"edge.svc/caddy/exchange"
)

const (
	// Connections to one origin that are kept at most; each carries as many requests as the origin allows.
	maxShared = 64
	// What an origin may send ahead of its clients, for each request and for a connection.
	sharedStreamBytes = 256 << 10
	sharedConnBytes   = 64 << 20
	// How often requests that an origin gave back unprocessed are sent again.
	maxUnprocessed = 3
)

// sharedConn is a connection to an origin, and whom it reached.
type sharedConn struct {
	*http.ClientConn
	addr   netip.Addr
	policy *AddressPolicy
	// It takes no more requests, and ends with the last one that it carries.
	alone     bool
	uses      uint32
	idleUntil time.Time
}

// dialling is what a dial is for. It travels in the context, because net/http only hands on an address.
type dialling struct {
	origin *origin
	limit  time.Duration
	// Set by the dial.
	reached  *conn
	settings *settingsConn
	outcome  exchange.OriginOutcome
}

type diallingKey struct{}

// dialled is a dial under way that several requests wait for; done is closed once err is set.
type dialled struct {
	done    chan struct{}
	err     error
	outcome exchange.OriginOutcome
}

var errNotHTTP2 = errors.New("the origin does not speak HTTP/2")

func (s *Standard) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	to := ctx.Value(diallingKey{}).(*dialling)
	c, err := s.transports.dialFor(ctx, to.origin, to.limit, "h2", &to.outcome)
	if err != nil {
		return nil, err
	}
	if secure, ok := c.Conn.(*tls.Conn); ok && secure.ConnectionState().NegotiatedProtocol != "h2" {
		c.Close()
		return nil, fail(failTLS, errNotHTTP2)
	}
	to.reached, to.settings = c, newSettingsConn(c.Conn)
	return to.settings, nil
}

// awaitSettings waits until it is known how many requests the connection takes.
func (d *dialling) awaitSettings(ctx context.Context) error {
	timer := time.NewTimer(d.limit)
	defer timer.Stop()
	select {
	case <-d.settings.ready:
		if d.settings.err != nil {
			return fail(classOf(d.settings.err), d.settings.err)
		}
		return nil
	case <-timer.C:
		return fail(failTimeout, errNotHTTP2)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// take returns a connection with room for one more request, which is reserved. Requests that come while a connection is
// made wait for it, rather than making one each.
func (s *Standard) take(t *fetch, o *origin) (*sharedConn, error) {
	if !t.Pool.keepalive {
		return s.make(t.ctx, o, t.times.connect, t.outcome, false)
	}
	c, under := s.reuse(o, t.Pool, t.times.connect)
	if c == nil {
		if err := under.wait(t, o); err != nil {
			return nil, err
		}
		c, _ = s.reuse(o, t.Pool, 0)
	}
	if c == nil {
		return s.make(t.ctx, o, t.times.connect, t.outcome, true)
	}
	return c, nil
}

// wait waits for the end of a dial.
func (d *dialled) wait(t *fetch, o *origin) error {
	timer := time.NewTimer(2 * t.times.connect)
	defer timer.Stop()
	select {
	case <-d.done:
		t.outcome.Reused = false
		t.outcome.Connect, t.outcome.TLS = d.outcome.Connect, d.outcome.TLS
		return d.err
	case <-timer.C:
		return fail(failTimeout, context.DeadlineExceeded)
	case <-t.ctx.Done():
		return t.ctx.Err()
	}
}

// connect makes a connection for whoever waits.
func (s *Standard) connect(d *dialled, o *origin, limit, idle time.Duration) {
	c, err := s.dialOnce(context.Background(), o, limit, &d.outcome)
	s.mu.Lock()
	if d.err = err; err == nil {
		c.idleUntil = time.Now().Add(idle)
		s.open[o.dial] = append(s.open[o.dial], c)
		s.sweepLater()
	}
	s.endDial(d, o.dial)
	s.mu.Unlock()
}

// endDial lets those go on who wait for a dial, under the lock.
func (s *Standard) endDial(d *dialled, key dialKey) {
	delete(s.dials, key)
	close(d.done)
}

// make makes a connection for one request, which may be kept for others.
func (s *Standard) make(ctx context.Context, o *origin, limit time.Duration, outcome *exchange.OriginOutcome, keep bool) (*sharedConn, error) {
	c, err := s.dialOnce(ctx, o, limit, outcome)
	if err != nil {
		return nil, err
	}
	if err := c.Reserve(); err != nil {
		_ = c.Close()
		return nil, fail(failConnect, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if list := s.open[o.dial]; keep && len(list) < maxShared {
		s.open[o.dial] = append(list, c)
		s.sweepLater()
	} else {
		c.alone = true
	}
	return c, nil
}

func (s *Standard) dialOnce(ctx context.Context, o *origin, limit time.Duration, outcome *exchange.OriginOutcome) (*sharedConn, error) {
	// The request may be over before the dial is.
	copied := *o
	to := &dialling{origin: &copied, limit: limit}
	address := net.JoinHostPort(o.dial.host.Value(), fmt.Sprint(o.dial.port))
	// TLS is the dial's.
	made, err := s.client.NewClientConn(context.WithValue(ctx, diallingKey{}, to), "http", address)
	outcome.Connect, outcome.TLS = to.outcome.Connect, to.outcome.TLS
	if err == nil {
		err = to.awaitSettings(ctx)
	}
	if err != nil {
		if made != nil {
			_ = made.Close()
		}
		return nil, err
	}
	return &sharedConn{ClientConn: made, addr: to.reached.addr, policy: to.reached.policy}, nil
}

// reuse returns a connection that is open already. Where there is none it returns a dial to wait for, which it starts unless
// limit is 0.
func (s *Standard) reuse(o *origin, p *Pool, limit time.Duration) (*sharedConn, *dialled) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.find(o.dial, p.maxUses); c != nil || limit == 0 {
		return c, nil
	}
	d := s.dials[o.dial]
	if d == nil {
		d = &dialled{done: make(chan struct{})}
		s.dials[o.dial] = d
		copied := *o
		exchange.Go("connecting to an origin", func() { s.connect(d, &copied, limit, p.idle) }, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			d.err = fail(failConnect, nil)
			s.endDial(d, copied.dial)
		})
	}
	return nil, d
}

// find returns an open connection, under the lock. Those that are over are forgotten, and those to addresses that the policy
// refuses by now end with the requests they carry.
func (s *Standard) find(key dialKey, maxUses uint32) (found *sharedConn) {
	policy := s.transports.policy()
	list := s.open[key]
	kept := list[:0]
	for _, c := range list {
		if c.Err() != nil {
			continue
		}
		if c.policy != policy {
			if !policy.Allows(c.addr) {
				c.retire()
				continue
			}
			c.policy = policy
		}
		if found == nil && c.Reserve() == nil {
			found = c
			if c.uses++; c.uses >= maxUses {
				c.alone = true
				continue
			}
		}
		kept = append(kept, c)
	}
	clear(list[len(kept):])
	s.keep(key, kept)
	return found
}

// keep notes the open connections to an origin, under the lock.
func (s *Standard) keep(key dialKey, list []*sharedConn) {
	if len(list) == 0 {
		delete(s.open, key)
	} else {
		s.open[key] = list
	}
}

// retire has a connection end with its last request, under the lock.
func (c *sharedConn) retire() {
	c.alone = true
	if c.InFlight() == 0 {
		_ = c.Close()
	}
}

// done ends the use of a connection by a request.
func (s *Standard) done(c *sharedConn, idle time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.idleUntil = time.Now().Add(idle)
	if c.alone {
		c.retire()
	}
}

// sweepLater has idle connections looked at, under the lock.
func (s *Standard) sweepLater() {
	if !s.sweeping {
		s.sweeping = true
		time.AfterFunc(sweepIdleEvery, s.sweep)
	}
}

// sweep closes connections that were idle for too long, and those to addresses that the policy refuses. It goes on while
// any is left.
func (s *Standard) sweep() {
	now, policy := time.Now(), s.transports.policy()
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, list := range s.open {
		s.keep(key, slices.DeleteFunc(list, func(c *sharedConn) bool {
			switch {
			case c.Err() != nil:
				return true
			case c.policy != policy && !policy.Allows(c.addr):
				c.retire()
				return true
			case c.InFlight() == 0 && now.After(c.idleUntil):
				_ = c.Close()
				return true
			}
			return false
		}))
	}
	s.sweeping = false
	if len(s.open) > 0 {
		s.sweepLater()
	}
}

// CloseIdle closes all connections that carry no request.
func (s *Standard) CloseIdle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, list := range s.open {
		s.keep(key, slices.DeleteFunc(list, func(c *sharedConn) bool { return c.InFlight() == 0 && c.Close() == nil }))
	}
}
