package listen

import (
	"maps"
	"sync"

	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
)

// reason says which limit a connection met.
type reason int

const (
	inAll reason = iota
	perAddress
	perNetwork
	withoutRequest
	headerTime
	inHandshake
	networkHandshakes
	strangerPeer
	proxyHeader
	reasons
)

// Names of the reasons as metrics have them.
var reasonNames = [reasons]string{
	inAll: "total", perAddress: "address", perNetwork: "network", withoutRequest: "waiting", headerTime: "header-time",
	inHandshake: "handshakes", networkHandshakes: "network-handshakes",
	strangerPeer: "peer", proxyHeader: "proxy-header",
}

// counts is of the limiter, under its lock.
type counts struct {
	accepted         uint64
	refused, evicted [reasons]uint64
}

// Counters is what happened to connections since the start of the process, and how it is now.
type Counters struct {
	Limits Limits
	// Open connections, and those of them that have not sent the head of a request yet.
	Open, Waiting int
	// Handshakes are those of TLS under way.
	Handshakes int
	// Accepted counts all that came from where connections may come from.
	Accepted uint64
	// Refused counts connections that were closed when they came, Evicted those that had been taken before; by limit.
	// Limits that nothing met are missing.
	Refused, Evicted map[string]uint64
	// HTTP2Errors counts breaches of HTTP/2 and of its limits, by net/http's names for them.
	HTTP2Errors map[string]uint64
	// HTTP3Errors counts breaches of HTTP/3 and of its limits: connections that they ended, by the names of their codes, and
	// requests that no handler has seen.
	HTTP3Errors map[string]uint64
}

// Counters returns a copy of the counters.
func (r *Registry) Counters() Counters {
	l := &r.limiter
	l.mu.Lock()
	now, open, waiting, handshakes, limits := l.counts, l.open, l.queued, l.handshakes, l.limits
	l.mu.Unlock()
	return Counters{
		Limits: limits, Open: open, Waiting: waiting, Handshakes: handshakes, Accepted: now.accepted,
		Refused: named(now.refused), Evicted: named(now.evicted), HTTP2Errors: r.http2Errors.copy(), HTTP3Errors: r.http3Errors.copy(),
	}
}

// message is what the agent gets of the counters.
func (c Counters) message() *edgev1.Connections {
	return &edgev1.Connections{
		Limit:        uint64(c.Limits.Connections),
		NetworkLimit: uint64(c.Limits.PerNetwork),
		AddressLimit: uint64(c.Limits.PerAddress),
		WaitingLimit: uint64(c.Limits.Waiting),
		Waiting:      uint64(c.Waiting),
		Accepted:     c.Accepted,
		Refused:      c.Refused,
		Evicted:      c.Evicted,
		Http2Errors:  c.HTTP2Errors,
		Http3Errors:  c.HTTP3Errors,
	}
}

func named(counts [reasons]uint64) map[string]uint64 {
	byName := map[string]uint64{}
	for why, n := range counts {
		if n > 0 {
			byName[reasonNames[why]] = n
		}
	}
	return byName
}

// refuse counts a connection that is closed for a reason that is none of the limiter's.
func (l *limiter) refuse(why reason) {
	l.mu.Lock()
	l.counts.refused[why]++
	l.mu.Unlock()
}

// Names beyond so many are counted as one: they are constants of net/http today, and nothing says that they stay that.
const maxTallied = 128

const otherName = "other"

// tally counts by name.
type tally struct {
	mu     sync.Mutex
	counts map[string]uint64
}

func (t *tally) add(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.counts == nil {
		t.counts = map[string]uint64{}
	}
	if _, known := t.counts[name]; !known && len(t.counts) >= maxTallied {
		name = otherName
	}
	t.counts[name]++
}

func (t *tally) copy() map[string]uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.counts)
}
