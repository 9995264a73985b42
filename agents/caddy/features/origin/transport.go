package origin

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// Idle connections of the whole node and to one origin.
	maxIdle          = 8192
	maxIdlePerOrigin = 512
	idleShards       = 16
	sweepIdleEvery   = 5 * time.Second
	tlsSessions      = 4096
)

// Transports holds the idle connections to all origins of the node and makes new ones. Connections are shared between
// sites whose origins agree in address, port, scheme, verification and server name: a connection verified for one name
// is never used for another.
type Transports struct {
	policy   func() *AddressPolicy
	resolver *resolver
	dialer   net.Dialer
	tls      [3]*tls.Config

	capacity capacity
	retries  retries
	shards   [idleShards]idleShard
	idle     atomic.Int64
	sweeping atomic.Bool
}

// idleShard lists its connections by key, newest last, and all of them from newest to oldest.
type idleShard struct {
	mu             sync.Mutex
	byKey          map[dialKey][]*conn
	newest, oldest *conn
	count          int
}

// NewTransportSet makes an empty set. policy returns the address policy in force; it is asked for every connection,
// so a change takes effect at once.
func NewTransportSet(policy func() *AddressPolicy) *Transports {
	t := &Transports{policy: policy, resolver: newResolver()}
	t.dialer.KeepAliveConfig = net.KeepAliveConfig{Enable: true, Idle: 30 * time.Second, Interval: 10 * time.Second, Count: 6}
	for _, mode := range []tlsMode{tlsVerified, tlsUnverified} {
		t.tls[mode] = &tls.Config{
			InsecureSkipVerify: mode == tlsUnverified,
			MinVersion:         tls.VersionTLS12,
			ClientSessionCache: tls.NewLRUClientSessionCache(tlsSessions),
		}
	}
	for i := range t.shards {
		t.shards[i].byKey = map[dialKey][]*conn{}
	}
	return t
}

// TrustRoots replaces the certificate authorities of the system for verified origins. Call it before the first request.
func (t *Transports) TrustRoots(roots *x509.CertPool) { t.tls[tlsVerified].RootCAs = roots }

// freshFor is how long a connection may have been idle for a request that cannot be repeated: an origin that closes the
// connection at the same moment fails it.
const freshFor = time.Second

// take returns an idle connection to the origin that is still good, nil when there is none. once says that the request cannot
// be repeated on another one.
func (t *Transports) take(o *origin, once bool, now time.Time) *conn {
	policy := t.policy()
	s := &t.shards[o.shard]
	for {
		s.mu.Lock()
		list := s.byKey[o.dial]
		if len(list) == 0 {
			s.mu.Unlock()
			return nil
		}
		c := list[len(list)-1]
		if once && now.Sub(c.idleSince) > freshFor {
			// Those before it are idle for longer.
			s.mu.Unlock()
			return nil
		}
		list[len(list)-1] = nil
		s.byKey[o.dial] = list[:len(list)-1]
		s.unlink(c)
		s.mu.Unlock()
		t.idle.Add(-1)
		if now.After(c.idleUntil) {
			c.Close()
			continue
		}
		if c.policy != policy {
			if !policy.Allows(c.addr) {
				c.Close()
				continue
			}
			c.policy = policy
		}
		if c.usable() {
			return c
		}
		c.Close()
	}
}

// put keeps a connection for later requests, at most for the given time.
func (t *Transports) put(c *conn, o *origin, keep time.Duration, now time.Time) {
	c.releaseBuffer()
	c.leave()
	c.idleSince, c.idleUntil = now, now.Add(keep)
	c.uses++
	s := &t.shards[o.shard]
	s.mu.Lock()
	list := append(s.byKey[o.dial], c)
	s.link(c)
	var drop *conn
	switch {
	case len(list) > maxIdlePerOrigin:
		drop = list[0]
		list = append(list[:0], list[1:]...)
		s.byKey[o.dial] = list
		s.unlink(drop)
	case s.count > maxIdle/idleShards:
		s.byKey[o.dial] = list
		drop = s.oldest
		s.remove(drop)
	default:
		s.byKey[o.dial] = list
	}
	s.mu.Unlock()
	if drop != nil {
		drop.Close()
		return
	}
	t.idle.Add(1)
	if t.sweeping.CompareAndSwap(false, true) {
		time.AfterFunc(sweepIdleEvery, t.sweep)
	}
}

// sweep closes what was idle for too long and forgets origins without connections. It goes on while any is left.
func (t *Transports) sweep() {
	now := time.Now()
	keys := 0
	for i := range t.shards {
		var ended []*conn
		s := &t.shards[i]
		s.mu.Lock()
		for c := s.oldest; c != nil; {
			newer := c.newer
			if now.After(c.idleUntil) {
				s.remove(c)
				ended = append(ended, c)
			}
			c = newer
		}
		for key, list := range s.byKey {
			if len(list) == 0 {
				// Its connections were taken and closed, or are in use.
				delete(s.byKey, key)
			}
		}
		keys += len(s.byKey)
		s.mu.Unlock()
		for _, c := range ended {
			c.Close()
		}
		t.idle.Add(-int64(len(ended)))
	}
	t.sweeping.Store(false)
	if (keys > 0 || t.idle.Load() > 0) && t.sweeping.CompareAndSwap(false, true) {
		time.AfterFunc(sweepIdleEvery, t.sweep)
	}
}

// CloseIdle closes all idle connections.
func (t *Transports) CloseIdle() {
	for i := range t.shards {
		s := &t.shards[i]
		s.mu.Lock()
		for s.oldest != nil {
			c := s.oldest
			s.remove(c)
			c.Close()
			t.idle.Add(-1)
		}
		s.mu.Unlock()
	}
}

func (s *idleShard) link(c *conn) {
	c.older, c.newer = s.newest, nil
	if s.newest != nil {
		s.newest.newer = c
	} else {
		s.oldest = c
	}
	s.newest = c
	s.count++
}

func (s *idleShard) unlink(c *conn) {
	if c.newer != nil {
		c.newer.older = c.older
	} else {
		s.newest = c.older
	}
	if c.older != nil {
		c.older.newer = c.newer
	} else {
		s.oldest = c.newer
	}
	c.newer, c.older = nil, nil
	s.count--
}

// remove takes a connection out of both lists.
func (s *idleShard) remove(c *conn) {
	list := s.byKey[c.key]
	for i, other := range list {
		if other == c {
			copy(list[i:], list[i+1:])
			list[len(list)-1] = nil
			list = list[:len(list)-1]
			break
		}
	}
	if len(list) == 0 {
		delete(s.byKey, c.key)
	} else {
		s.byKey[c.key] = list
	}
	s.unlink(c)
}
