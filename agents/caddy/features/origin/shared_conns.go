package origin

import (
	"context"
	"crypto/tls"
	"net/netip"
	"slices"
	"time"

	"edge.svc/caddy/exchange"
	"edge.svc/caddy/features/origin/h2"
)

const (
	// Connections to one origin that are kept at most; each carries as many requests as the origin allows.
	maxShared = 64
	// How often a request is sent again that the origin gave back unprocessed, or whose connection turned out to be closed.
	maxAgain = 3
)

// sharedConn is a connection to an origin, and whom it reached.
type sharedConn struct {
	*h2.Conn
	addr      netip.Addr
	policy    *AddressPolicy
	uses      uint32
	idleUntil time.Time
}

// dialled is a dial under way that several requests wait for; done is closed once err is set.
type dialled struct {
	done    chan struct{}
	err     error
	outcome exchange.OriginOutcome
}

// take returns a connection with room for one more request, which is reserved. Requests that come while a connection is
// made wait for it, rather than making one each.
func (s *Shared) take(t *fetch, o *origin) (*sharedConn, error) {
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
func (s *Shared) connect(d *dialled, o *origin, limit, idle time.Duration) {
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
func (s *Shared) endDial(d *dialled, key dialKey) {
	delete(s.dials, key)
	close(d.done)
}

// make makes a connection for one request, which may be kept for others.
func (s *Shared) make(ctx context.Context, o *origin, limit time.Duration, outcome *exchange.OriginOutcome, keep bool) (*sharedConn, error) {
	c, err := s.dialOnce(ctx, o, limit, outcome)
	if err != nil {
		return nil, err
	}
	if !c.Reserve() {
		c.Close()
		return nil, fail(failConnect, h2.ErrUnprocessed)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if list := s.open[o.dial]; keep && len(list) < maxShared {
		s.open[o.dial] = append(list, c)
		s.sweepLater()
	} else {
		c.Drain()
	}
	return c, nil
}

// dialOnce makes a connection, and waits until it is known how many requests it takes. Until then nobody knows whether the
// origin speaks HTTP/2 at all.
func (s *Shared) dialOnce(ctx context.Context, o *origin, limit time.Duration, outcome *exchange.OriginOutcome) (*sharedConn, error) {
	reached, err := s.transports.dialFor(ctx, o, limit, "h2", outcome)
	if err != nil {
		return nil, err
	}
	if secure, ok := reached.Conn.(*tls.Conn); ok && secure.ConnectionState().NegotiatedProtocol != "h2" {
		reached.Close()
		return nil, fail(failTLS, h2.ErrNotHTTP2)
	}
	made := h2.New(reached.Conn)
	if err := awaitSettings(ctx, made, limit); err != nil {
		made.Close()
		return nil, err
	}
	return &sharedConn{Conn: made, addr: reached.addr, policy: reached.policy}, nil
}

func awaitSettings(ctx context.Context, c *h2.Conn, limit time.Duration) error {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-c.Ready():
		if err := c.Err(); err != nil {
			return fail(classOf(err), err)
		}
		return nil
	case <-timer.C:
		return fail(failTimeout, h2.ErrNotHTTP2)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// reuse returns a connection that is open already. Where there is none it returns a dial to wait for, which it starts unless
// limit is 0.
func (s *Shared) reuse(o *origin, p *Pool, limit time.Duration) (*sharedConn, *dialled) {
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
func (s *Shared) find(key dialKey, maxUses uint32) (found *sharedConn) {
	policy := s.transports.policy()
	list := s.open[key]
	kept := list[:0]
	for _, c := range list {
		if c.Err() != nil {
			continue
		}
		if c.policy != policy {
			if !policy.Allows(c.addr) {
				c.Drain()
				continue
			}
			c.policy = policy
		}
		if found == nil && c.Reserve() {
			found = c
			if c.uses++; c.uses >= maxUses {
				c.Drain()
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
func (s *Shared) keep(key dialKey, list []*sharedConn) {
	if len(list) == 0 {
		delete(s.open, key)
	} else {
		s.open[key] = list
	}
}

// done ends the use of a connection by a request.
func (s *Shared) done(c *sharedConn, idle time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.idleUntil = time.Now().Add(idle)
}

// sweepLater has idle connections looked at, under the lock.
func (s *Shared) sweepLater() {
	if !s.sweeping {
		s.sweeping = true
		time.AfterFunc(sweepIdleEvery, s.sweep)
	}
}

// sweep closes connections that were idle for too long, and those to addresses that the policy refuses. It goes on while
// any is left.
func (s *Shared) sweep() {
	now, policy := time.Now(), s.transports.policy()
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, list := range s.open {
		s.keep(key, slices.DeleteFunc(list, func(c *sharedConn) bool {
			switch {
			case c.Err() != nil:
				return true
			case c.policy != policy && !policy.Allows(c.addr):
				c.Drain()
				return true
			case c.InFlight() == 0 && now.After(c.idleUntil):
				c.Close()
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

// CloseIdle closes all connections that carry no request, and has the others end with their last one.
func (s *Shared) CloseIdle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, list := range s.open {
		for _, c := range list {
			c.Drain()
		}
	}
	clear(s.open)
}
