package listen

import (
	"math"
	"time"

	"edge.svc/caddy/internal/inflight"
	"edge.svc/caddy/internal/memory"
)

// Limits bounds what connections may take. A field that is 0 does not bound anything.
type Limits struct {
	// Connections is the number open at a time.
	Connections int
	// PerAddress and PerNetwork are of one client address (IPv6: /64) and of the /24 around it (IPv6: /48).
	PerAddress, PerNetwork int
	// Waiting is the number that have not sent the head of a request yet, and HeaderTime how long each may take for its
	// first one.
	Waiting    int
	HeaderTime time.Duration
	// Handshakes is the number of handshakes of TLS under way, HandshakesPerNetwork of one network as above.
	Handshakes, HandshakesPerNetwork int
	// Ahead is the number of bytes that clients of QUIC may send ahead of who reads them, beyond what each connection
	// begins with.
	Ahead uint64
	// Requests bounds the memory of requests in progress, in total and for each network as above.
	Requests inflight.Limits
}

const (
	// The part of memory for what clients of QUIC send ahead.
	partAhead         = 8
	defaultHeaderTime = 15 * time.Second
	// The part of memory for requests in progress, and at least so much.
	partRequests, minRequests = 8, 64 << 20
	// The most that requests of one network hold by default: 1,536 requests without bodies.
	maxPerNetwork = 24 << 20
)

// withDefaults fills in what is 0. A quarter of all connections for one network leaves room for three others that do the
// same; half of that for one address leaves its neighbours room, and is enough for an office behind it.
func (l Limits) withDefaults(files, bytes uint64) Limits {
	if l.Connections == 0 {
		l.Connections = memory.ConnectionsOf(files, bytes)
	}
	if l.PerNetwork == 0 {
		l.PerNetwork = max(l.Connections/4, 1)
	}
	if l.PerAddress == 0 {
		l.PerAddress = max(l.PerNetwork/2, 1)
	}
	if l.Waiting == 0 {
		l.Waiting = max(l.Connections/4, 1)
	}
	if l.Handshakes == 0 {
		l.Handshakes = max(l.Waiting/2, 1)
	}
	if l.HandshakesPerNetwork == 0 {
		l.HandshakesPerNetwork = max(l.Handshakes/2, 1)
	}
	if l.Ahead == 0 {
		l.Ahead = max(bytes/partAhead, 1)
	}
	if l.Requests.Total == 0 {
		l.Requests.Total = max(int64(min(bytes/partRequests, math.MaxInt64)), minRequests)
	}
	if l.Requests.PerNetwork == 0 {
		l.Requests.PerNetwork = min(l.Requests.Total/4, maxPerNetwork)
	}
	if l.HeaderTime == 0 {
		l.HeaderTime = defaultHeaderTime
	}
	return l
}
