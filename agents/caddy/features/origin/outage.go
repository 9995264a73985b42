package origin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"edge.svc/caddy/exchange"
	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
)

const (
	// How long the last good addresses of a name serve by default.
	defaultKeep = time.Hour
	// Time for a lookup before addresses that are known serve in its place (RFC 8767 §5).
	patientFor = 1800 * time.Millisecond
	// Names that are looked up at a time while DNS fails.
	refreshedAtOnce = 8
)

// outage is what serves while DNS gives no answer. Names that do not exist are an answer: their addresses serve no longer.
type outage struct {
	// How long last good addresses serve, and the pause before failing names are looked up again.
	keep, again time.Duration
	refreshing  atomic.Bool
	failures    atomic.Uint64
	// told hears when last good addresses begin to serve, and when they serve no longer; nil where nobody listens.
	told func(failing bool)
}

// unanswered reports whether a lookup failed without any answer about the name.
func unanswered(err error) bool {
	var own *originError
	if !errors.As(err, &own) || own.cause == nil {
		return false
	}
	var told *net.DNSError
	return !errors.As(own.cause, &told) || !told.IsNotFound
}

// inherit hands the last good addresses of a lookup that is over on to the next one.
func (o *outage) inherit(next, former *answer) {
	switch {
	case former.err == nil:
		next.last, next.lastUntil = former.addrs, former.good.Add(resolvedFor+o.keep)
	case unanswered(former.err):
		next.last, next.lastUntil, next.failing = former.last, former.lastUntil, true
	}
}

// kept reports whether last good addresses may serve.
func (a *answer) kept() bool { return time.Now().Before(a.lastUntil) }

// orLast is what a lookup found that is over, or the last good addresses where it got no answer.
func (a *answer) orLast() ([]netip.Addr, error) {
	if unanswered(a.err) && a.kept() {
		return a.last, nil
	}
	return a.addrs, a.err
}

// orLast waits for a lookup for a moment, or not at all where the one before got no answer; then the last good addresses
// serve.
func (s *resolver) orLast(ctx context.Context, a *answer) ([]netip.Addr, error) {
	patience := time.Duration(patientFor)
	if end, bounded := ctx.Deadline(); bounded {
		patience = min(patience, time.Until(end)/2)
	}
	if a.failing {
		patience = 0
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-a.done:
		return a.orLast()
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-timer.C:
		return a.last, nil
	}
}

// refresh looks failing names up in the background until none is left, or none has addresses that serve.
func (s *resolver) refresh() {
	o := &s.outage
	if !o.refreshing.CompareAndSwap(false, true) {
		return
	}
	if o.told != nil {
		o.told(true)
	}
	exchange.Go("looking failing names up again", func() {
		for {
			time.Sleep(o.again)
			names := s.failing()
			if len(names) == 0 {
				break
			}
			for at := range slices.Chunk(names, refreshedAtOnce) {
				s.again(at)
			}
		}
		o.refreshing.Store(false)
		if o.told != nil {
			o.told(false)
		}
	}, func() { o.refreshing.Store(false) })
}

// again looks names up and waits for the answers.
func (s *resolver) again(names []string) {
	asked := make([]*answer, 0, len(names))
	s.mu.Lock()
	for _, name := range names {
		a := s.answers[name]
		if a != nil && a.ended() {
			a = s.begin(name, a)
		}
		if a != nil {
			asked = append(asked, a)
		}
	}
	s.mu.Unlock()
	for _, a := range asked {
		<-a.done
	}
}

// failing lists the names whose last good addresses serve because DNS gives no answer, in their order.
func (s *resolver) failing() []string {
	var names []string
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, a := range s.answers {
		if !a.kept() {
			continue
		}
		if a.ended() && unanswered(a.err) || !a.ended() && a.failing {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// FillStatus warns of names that serve from their last good addresses.
func (t *Transports) FillStatus(status *edgev1.GetStatusResponse) {
	names := t.resolver.failing()
	if len(names) == 0 {
		return
	}
	const shown = 3
	list := strings.Join(names[:min(shown, len(names))], ", ")
	if more := len(names) - shown; more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	status.Warnings = append(status.Warnings, "DNS does not respond for host names of origins, so their last addresses serve: "+list)
}

// WriteMetrics writes how DNS fares, how many connections are in use, and how often requests went on.
func (t *Transports) WriteMetrics(w io.Writer) {
	t.capacity.writeMetrics(w)
	t.retries.writeMetrics(w)
	fmt.Fprintf(w, "# HELP svc_edge_origin_lookups_failed_total Lookups of host names of origins without an answer of DNS.\n"+
		"# TYPE svc_edge_origin_lookups_failed_total counter\nsvc_edge_origin_lookups_failed_total %d\n", t.resolver.outage.failures.Load())
	fmt.Fprintf(w, "# HELP svc_edge_origin_names_stale Host names of origins whose last addresses serve because DNS does not respond.\n"+
		"# TYPE svc_edge_origin_names_stale gauge\nsvc_edge_origin_names_stale %d\n", len(t.resolver.failing()))
}
