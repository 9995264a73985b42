package cc

import (
	"net/netip"
	"sync"
	"time"
)

const (
	scanWindow = time.Minute
	// The owner of all entries of the table.
	scanNumber = 1
	// Where whoever connects can name any address, so many global bans a minute must do.
	maxUnsafeBans = 20
)

// scans counts requests for unknown hosts.
type scans struct {
	clients *clients

	mu     sync.Mutex
	minute int64
	bans   int
}

// Scan says when a client that asks for unknown hosts is banned.
type Scan struct {
	// Threshold is the number of requests in 60 s that is still fine.
	Threshold uint32
	Ban       time.Duration
}

// CountUnknown adds a request for an unknown host and reports whether its client was banned for it. exempt clients are
// not counted. unsafe says that clients name their address themselves: the number of bans is then limited.
func (g *Guard) CountUnknown(s *Scan, client netip.Addr, exempt, unsafe bool) bool {
	if s == nil || exempt || !countable(client) {
		return false
	}
	n := networkOf(client)
	if g.options.Bans.Banned("", client) {
		return true
	}
	now := g.clock()
	requests, over := g.scans.clients.countSince(scanNumber, n, now, scanWindow, s.Threshold)
	if !over || g.protected.Load().has(n) || unsafe && !g.scans.admit(now) {
		return false
	}
	g.options.Bans.AddOwn("", n.prefix(), s.Ban)
	g.outbox.scannerBanned(n, s.Ban, requests, s.Threshold)
	return true
}

func (s *scans) admit(now time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if minute := int64(now / time.Minute); minute != s.minute {
		s.minute, s.bans = minute, 0
	}
	s.bans++
	return s.bans <= maxUnsafeBans
}
