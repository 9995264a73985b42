package origin

import (
	"net/netip"
	"sync"
	"time"
)

// pace spaces connections of checks to one address out, whichever sites they are for: a thousand sites that name an address
// of a third party do not flood it.
type pace struct {
	// Between two connections to one address.
	every time.Duration

	mu   sync.Mutex
	next map[netip.Addr]time.Time
}

// Addresses that are remembered before those that are free again are dropped.
const maxPaced = 4096

// take reserves the next free time of an address.
func (p *pace) take(addr netip.Addr, now time.Time) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := p.next[addr]
	if at.Before(now) {
		at = now
	}
	if len(p.next) >= maxPaced {
		for other, free := range p.next {
			if free.Before(now) {
				delete(p.next, other)
			}
		}
	}
	p.next[addr] = at.Add(p.every)
	return at
}
