package listen

import (
	"net/netip"
	"slices"
	"sync"
	"time"
)

// limiter decides which connections stay. Each step costs the same, however many there are: connections are told of
// their coming, their first request and their end, and never looked through.
type limiter struct {
	mu     sync.Mutex
	limits Limits
	// Connections in all, those of trusted proxies included, which are in neither ledger.
	open         int
	all, waiting ledger
	// Those whose handshake is under way, likewise.
	shaking    ledger
	handshakes int
	// Handshakes of QUIC that had to go and have not ended: nothing ends one from outside before its time is over.
	abandoned int
	// What clients of QUIC may send ahead by now.
	ahead uint64
	// Those without a request yet, in the order in which they came.
	oldest, newest *Conn
	queued         int
	counts         counts
}

// standing is what the limiter knows of a connection, under its lock.
type standing struct {
	counted, waiting seat
	// Neighbours among those without a request; since when it is one of them, zero when it is none.
	older, newer *Conn
	since        time.Time
	in           bool
	// Of a handshake that is under way.
	shaking                seat
	inHandshake, abandoned bool
	// What of the limiter's is for this one.
	ahead uint64
}

// set replaces the limits. What is open stays.
func (l *limiter) set(limits Limits) {
	l.mu.Lock()
	l.limits = limits
	l.mu.Unlock()
}

// enter counts a connection for an address; an invalid one is in no network. It returns the connections that have to
// go, c itself perhaps among them; the caller closes them.
func (l *limiter) enter(c *Conn, addr netip.Addr, now time.Time) []*Conn {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counts.accepted++
	l.open++
	s := &c.standing
	s.in, s.since = true, now
	if s.older = l.newest; s.older != nil {
		s.older.standing.newer = c
	} else {
		l.oldest = c
	}
	l.newest = c
	l.queued++
	if addr.IsValid() {
		l.all.add(&s.counted, c, addr)
		l.waiting.add(&s.waiting, c, addr)
	}
	return l.makeRoom(c)
}

// identify counts a connection for the address that its PROXY header names.
func (l *limiter) identify(c *Conn, addr netip.Addr) []*Conn {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := &c.standing
	if !s.in {
		return nil
	}
	l.all.remove(&s.counted)
	l.all.add(&s.counted, c, addr)
	if !s.since.IsZero() {
		l.waiting.remove(&s.waiting)
		l.waiting.add(&s.waiting, c, addr)
	}
	return l.makeRoom(c)
}

// dropFor drops a connection to make room for c, which goes itself where victim is nil.
func (l *limiter) dropFor(c, victim *Conn, why reason) *Conn {
	if victim == nil {
		victim = c
	}
	if victim == c {
		l.counts.refused[why]++
	} else {
		l.counts.evicted[why]++
	}
	l.drop(victim)
	return victim
}

// makeRoom drops what is too much with c, the newest connection.
func (l *limiter) makeRoom(c *Conn) (dropped []*Conn) {
	drop := func(victim *Conn, why reason) { dropped = append(dropped, l.dropFor(c, victim, why)) }
	s := &c.standing
	if at := s.counted.at; at != nil {
		switch {
		case over(at.place.weight(), l.limits.PerAddress):
			drop(c, perAddress)
		case over(at.network.place.weight(), l.limits.PerNetwork):
			drop(at.network.newestOfHeaviest(), perNetwork)
		}
	}
	if s.in && over(l.waiting.size, l.limits.Waiting) {
		drop(l.waiting.newestOfHeaviest(), withoutRequest)
	}
	if s.in && over(l.open, l.limits.Connections) {
		drop(l.all.newestOfHeaviest(), inAll)
	}
	return dropped
}

func over(n, limit int) bool { return limit > 0 && n > limit }

// shake counts a connection whose handshake begins. It returns the connections that have to go, c itself perhaps among
// them; the caller closes them.
func (l *limiter) shake(c *Conn) (dropped []*Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := &c.standing
	if !s.in {
		return []*Conn{c}
	}
	s.inHandshake = true
	l.handshakes++
	if at := s.counted.at; at != nil {
		l.shaking.add(&s.shaking, c, at.key)
		if network := s.shaking.at.network; over(network.place.weight(), l.limits.HandshakesPerNetwork) {
			dropped = append(dropped, l.dropFor(c, l.givesWay(c, network.newestOfHeaviest()), networkHandshakes))
		}
	}
	if s.in && over(l.handshakes, l.limits.Handshakes) {
		dropped = append(dropped, l.dropFor(c, l.givesWay(c, l.shaking.newestOfHeaviest()), inHandshake))
	}
	return dropped
}

// givesWay is which handshake goes for that of c. What is over QUIC makes no room where as many as may be under way had to go
// before and are still there.
func (l *limiter) givesWay(c, victim *Conn) *Conn {
	if c.QUIC() && over(l.abandoned+1, l.limits.Handshakes) {
		return c
	}
	return victim
}

// shaken notes the end of a handshake.
func (l *limiter) shaken(c *Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := &c.standing
	l.endHandshake(s)
	if s.abandoned {
		s.abandoned = false
		l.abandoned--
	}
}

func (l *limiter) endHandshake(s *standing) {
	if s.inHandshake {
		s.inHandshake = false
		l.handshakes--
		l.shaking.remove(&s.shaking)
	}
}

// asked notes the first request of a connection.
func (l *limiter) asked(c *Conn) {
	l.mu.Lock()
	l.unqueue(c)
	l.mu.Unlock()
}

func (l *limiter) unqueue(c *Conn) {
	s := &c.standing
	if s.since.IsZero() {
		return
	}
	s.since = time.Time{}
	l.queued--
	if s.older != nil {
		s.older.standing.newer = s.newer
	} else {
		l.oldest = s.newer
	}
	if s.newer != nil {
		s.newer.standing.older = s.older
	} else {
		l.newest = s.older
	}
	s.older, s.newer = nil, nil
	l.waiting.remove(&s.waiting)
}

// leave ends the counting of a connection.
func (l *limiter) leave(c *Conn) {
	l.mu.Lock()
	l.drop(c)
	l.mu.Unlock()
}

func (l *limiter) drop(c *Conn) {
	s := &c.standing
	if !s.in {
		return
	}
	s.in = false
	l.open--
	l.unqueue(c)
	if s.inHandshake && c.QUIC() {
		s.abandoned = true
		l.abandoned++
	}
	l.endHandshake(s)
	l.all.remove(&s.counted)
	l.ahead -= s.ahead
	s.ahead = 0
}

// widen lets the client of a connection send more bytes ahead of who reads them, and reports whether it may.
func (l *limiter) widen(c *Conn, bytes uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := &c.standing
	if !s.in || l.limits.Ahead > 0 && bytes > l.limits.Ahead-min(l.ahead, l.limits.Ahead) {
		return false
	}
	l.ahead += bytes
	s.ahead += bytes
	return true
}

// unverified is how many handshakes may be under way on a port of QUIC with clients whose address nobody has verified.
func (l *limiter) unverified() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.limits.Handshakes <= 0 {
		return maxUnverified
	}
	return int64(min(maxUnverified, max(l.limits.Handshakes/partUnverified, 1)))
}

// headerTime is how long the head of a request may take, 0 where nothing says so.
func (l *limiter) headerTime() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.limits.HeaderTime
}

// expired drops the connections whose first request has taken too long; the caller closes them.
func (l *limiter) expired(now time.Time) (dropped []*Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.limits.HeaderTime <= 0 {
		return nil
	}
	for c := l.oldest; c != nil && now.Sub(c.standing.since) > l.limits.HeaderTime; c = l.oldest {
		l.counts.evicted[headerTime]++
		l.drop(c)
		dropped = append(dropped, c)
	}
	return dropped
}

// abort closes the connections and reports whether c is one of them.
func abort(dropped []*Conn, c *Conn) bool {
	for _, d := range dropped {
		d.Abort()
	}
	return slices.Contains(dropped, c)
}
