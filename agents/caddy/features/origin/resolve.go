package origin

import (
	"context"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"time"
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
// once.
type resolver struct {
	lookup func(ctx context.Context, host string) ([]netip.Addr, error)

	mu      sync.Mutex
	answers map[string]*answer
}

// answer is a lookup under way or done; done is closed when the other fields are set.
type answer struct {
	done    chan struct{}
	addrs   []netip.Addr
	err     error
	expires time.Time
}

func newResolver() *resolver {
	return &resolver{
		lookup: func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		},
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
		a = &answer{done: make(chan struct{})}
		s.remember(host, a)
		// The lookup outlives the request that asked first: others may wait for it.
		go s.ask(host, a)
	}
	s.mu.Unlock()
	select {
	case <-a.done:
		return a.addrs, a.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (s *resolver) ask(host string, a *answer) {
	ctx, cancel := context.WithTimeout(context.Background(), resolveLimit)
	defer cancel()
	defer close(a.done)
	addrs, err := s.lookup(ctx, host)
	if err != nil || len(addrs) == 0 {
		a.err, a.expires = fail(failDNS, err), time.Now().Add(failedFor)
		return
	}
	for _, addr := range addrs[:min(len(addrs), maxAddresses)] {
		a.addrs = append(a.addrs, addr.Unmap())
	}
	a.expires = time.Now().Add(resolvedFor)
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

// forget drops the answer for a host whose addresses do not answer.
func (s *resolver) forget(host string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a := s.answers[host]; a != nil && a.ended() && a.err == nil && time.Until(a.expires) < resolvedFor-failedFor {
		delete(s.answers, host)
	}
}

func shuffle(addrs []netip.Addr) {
	rand.Shuffle(len(addrs), func(i, j int) { addrs[i], addrs[j] = addrs[j], addrs[i] })
}
