package origin

import (
	"context"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"time"

	"edge.svc/caddy/exchange"
)

const (
	// The resolver does not tell the lifetime of an answer.
	resolvedFor  = 30 * time.Second
	failedFor    = 5 * time.Second
	maxResolved  = 4096
	maxAddresses = 64
	resolveLimit = 10 * time.Second
)

// resolver turns host names into addresses and remembers answers for a short time. Several requests for one name ask
// once. While DNS fails, the last good addresses of a name serve, see outage.go.
type resolver struct {
	lookup func(ctx context.Context, host string) ([]netip.Addr, error)
	outage outage

	mu      sync.Mutex
	answers map[string]*answer
}

// answer is a lookup under way or done; done is closed when what it found is set.
type answer struct {
	done    chan struct{}
	addrs   []netip.Addr
	err     error
	expires time.Time
	// When the addresses were good last.
	good time.Time
	// Addresses that serve until the time where the lookup gets no answer.
	last      []netip.Addr
	lastUntil time.Time
	// The lookup before got no answer, so that nobody waits for this one.
	failing bool
}

func newResolver() *resolver {
	return &resolver{
		lookup: func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		},
		outage:  outage{keep: defaultKeep, again: failedFor},
		answers: map[string]*answer{},
	}
}

// resolve returns the addresses of host that the policy allows, IPv4 first, each family in random order. It fails
// with a *originError of class failDNS or failForbidden, or with the error of ctx.
func (s *resolver) resolve(ctx context.Context, host string, policy *AddressPolicy) ([]netip.Addr, error) {
	addrs, err := s.all(ctx, host)
	if err != nil {
		return nil, err
	}
	allowed := make([]netip.Addr, 0, len(addrs))
	four := 0
	for _, a := range addrs {
		if !policy.Allows(a) {
			continue
		}
		allowed = append(allowed, a)
		if a.Is4() {
			allowed[four], allowed[len(allowed)-1] = a, allowed[four]
			four++
		}
	}
	if len(allowed) == 0 {
		return nil, fail(failForbidden, nil)
	}
	shuffle(allowed[:four])
	shuffle(allowed[four:])
	return allowed, nil
}

func (s *resolver) all(ctx context.Context, host string) ([]netip.Addr, error) {
	if addr, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{addr.Unmap()}, nil
	}
	if isLocalhost(host) {
		return []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}, nil
	}
	if isNumeric(host) {
		return nil, fail(failDNS, nil)
	}
	s.mu.Lock()
	a := s.answers[host]
	if a == nil || a.ended() && time.Now().After(a.expires) {
		a = s.begin(host, a)
	}
	s.mu.Unlock()
	if !a.ended() && a.kept() {
		return s.orLast(ctx, a)
	}
	select {
	case <-a.done:
		return a.orLast()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// begin starts a lookup in the place of what is known of a name. The lookup outlives the request that asked first: others
// may wait for it.
func (s *resolver) begin(host string, former *answer) *answer {
	a := &answer{done: make(chan struct{})}
	if former != nil {
		s.outage.inherit(a, former)
	}
	s.remember(host, a)
	exchange.Go("resolving the name of an origin", func() { s.ask(host, a) }, func() {
		a.err, a.expires = fail(failDNS, nil), time.Now().Add(failedFor)
		close(a.done)
	})
	return a
}

func (s *resolver) ask(host string, a *answer) {
	ctx, cancel := context.WithTimeout(context.Background(), resolveLimit)
	defer cancel()
	addrs, err := s.lookup(ctx, host)
	if err == nil && len(addrs) > 0 {
		for _, addr := range addrs[:min(len(addrs), maxAddresses)] {
			a.addrs = append(a.addrs, addr.Unmap())
		}
		a.good = time.Now()
		a.expires = a.good.Add(resolvedFor)
	} else {
		a.err, a.expires = fail(failDNS, err), time.Now().Add(failedFor)
	}
	down := unanswered(a.err)
	stale := down && a.kept()
	close(a.done)
	if down {
		s.outage.failures.Add(1)
	}
	if stale {
		s.refresh()
	}
}

func (a *answer) ended() bool {
	select {
	case <-a.done:
		return true
	default:
		return false
	}
}

// remember makes room by forgetting any answer that is not awaited.
func (s *resolver) remember(host string, a *answer) {
	if len(s.answers) >= maxResolved {
		for name, other := range s.answers {
			if other.ended() {
				delete(s.answers, name)
				break
			}
		}
	}
	s.answers[host] = a
}

// forget has the name of a host looked up again whose addresses do not answer.
func (s *resolver) forget(host string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a := s.answers[host]; a != nil && a.ended() && a.err == nil && time.Until(a.expires) < resolvedFor-failedFor {
		a.expires = time.Time{}
	}
}

func shuffle(addrs []netip.Addr) {
	rand.Shuffle(len(addrs), func(i, j int) { addrs[i], addrs[j] = addrs[j], addrs[i] })
}
