package origin

import (
	priority "container/heap"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"time"

	"edge.svc/caddy/exchange"
)

const (
	// Checks of the node, and connections to one address, in a second at most. Beyond that intervals stretch.
	checksPerSecond  = 200
	checksPerAddress = 5
	// Checks under way at a time: origins that hang do not delay those of others.
	checksAtOnce = 256
	// A mark that is not renewed ends after so many intervals, and not before the shortest time.
	markIntervals = 3
	shortestMark  = 90 * time.Second
	// An interval differs by up to this part, so that nodes do not check at the same moment.
	jitter = 0.1
	// An interval that is longer by this factor is told as stretched.
	stretchedBy = 1.5
)

// Checker checks the origins of sites that want it, at regular times, and marks in State those that fail. Its cost follows
// the number of checks: one timer waits for the next one, a goroutine lives as long as its check.
type Checker struct {
	state      *State
	transports *Transports
	tables     func() *exchange.Tables
	wake       chan struct{}
	pace       pace
	// Between two checks of the node.
	every time.Duration
	// Marks last at least so long.
	shortest time.Duration

	mu     sync.Mutex
	checks map[checkKey]*check
	// Of each site, by its number.
	sites   map[uint32][]checked
	due     dueChecks
	running int
	// When the next check may start.
	next time.Time
	// What was followed last.
	seen *exchange.Tables

	made, failed, delayed uint64
}

// check is one check, for all origins that share it. It belongs to the lock of its checker.
type check struct {
	key     checkKey
	origins map[originKey]struct{}
	verdict
	why                         reason
	lastFailure, checked, since time.Time
	// When it started last, and how long its interval was where that is more than the setting.
	started   time.Time
	stretched time.Duration

	at time.Time
	// Among those due; -1 while it is under way.
	index int
	// It waited for its turn at the address.
	reserved bool
}

func newChecker(state *State, transports *Transports, tables func() *exchange.Tables) *Checker {
	return &Checker{
		state: state, transports: transports, tables: tables, wake: make(chan struct{}, 1),
		pace:  pace{every: time.Second / checksPerAddress, next: map[netip.Addr]time.Time{}},
		every: time.Second / checksPerSecond, shortest: shortestMark,
		checks: map[checkKey]*check{}, sites: map[uint32][]checked{}, seen: exchange.NewTables(),
	}
}

// look has the checker follow the configuration soon.
func (h *Checker) look() {
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// Run makes checks until stop is closed.
func (h *Checker) Run(stop <-chan struct{}) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		h.follow()
		wait := h.dispatch(time.Now())
		timer.Reset(wait)
		select {
		case <-stop:
			return
		case <-h.wake:
		case <-timer.C:
		}
	}
}

// follow takes over which origins are to be checked.
func (h *Checker) follow() {
	tables := h.tables()
	h.mu.Lock()
	defer h.mu.Unlock()
	if tables == h.seen {
		return
	}
	for number, plan := range tables.PlansSince(h.seen) {
		var wanted []checked
		if plan != nil && !plan.Disabled && !plan.Unserved && !plan.Unguarded {
			if found := checksOf.Of(plan); found != nil {
				wanted = found.list
			}
		}
		h.replace(number, wanted)
	}
	h.seen = tables
}

// replace sets what is checked of a site. A check that stays wanted goes on with what it knows.
func (h *Checker) replace(number uint32, wanted []checked) {
	before := h.sites[number]
	if len(wanted) == 0 {
		delete(h.sites, number)
	} else {
		h.sites[number] = wanted
	}
	var added []checked
	for _, one := range wanted {
		if !slices.Contains(before, one) {
			h.add(one)
			added = append(added, one)
		}
	}
	for _, one := range before {
		if !slices.Contains(wanted, one) {
			h.remove(one)
		}
	}
	for _, one := range added {
		if c := h.checks[one.key]; c.unhealthy {
			h.state.mark(one.health, h.markEnd(c, c.checked))
		}
	}
}

func (h *Checker) add(one checked) {
	c := h.checks[one.key]
	if c == nil {
		c = &check{key: one.key, origins: map[originKey]struct{}{}}
		h.checks[one.key] = c
		c.at = time.Now().Add(time.Duration(rand.Int64N(int64(one.key.interval))))
		priority.Push(&h.due, c)
	}
	c.origins[one.health] = struct{}{}
}

func (h *Checker) remove(one checked) {
	c := h.checks[one.key]
	delete(c.origins, one.health)
	if c.unhealthy {
		h.state.mark(one.health, time.Time{})
	}
	if len(c.origins) > 0 {
		return
	}
	delete(h.checks, one.key)
	if c.index >= 0 {
		priority.Remove(&h.due, c.index)
	}
}

// dispatch starts what is due, and returns how long there is nothing more to start.
func (h *Checker) dispatch(now time.Time) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	for len(h.due) > 0 && h.running < checksAtOnce {
		if wait := max(h.due[0].at.Sub(now), h.next.Sub(now)); wait > 0 {
			return wait
		}
		c := priority.Pop(&h.due).(*check)
		c.index = -1
		h.running++
		h.next = now.Add(h.every)
		exchange.Go("checking an origin", func() { h.make(c) }, func() { h.again(c, time.Now().Add(c.key.interval)) })
	}
	// The end of a check wakes.
	return time.Hour
}

// laterError says that a check has its turn later.
type laterError struct{ at time.Time }

// Error is for nobody.
func (e laterError) Error() string { return "the address has had its share of checks" }

func (h *Checker) make(c *check) {
	started := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), c.key.timeout)
	defer cancel()
	reserved := c.reserved
	first := true
	status, err := h.transports.probe(ctx, &c.key, func(addr netip.Addr) error {
		turn := first && reserved
		now := time.Now()
		if turn {
			first = false
			return nil
		}
		// Further addresses take what later checks would have.
		if at := h.pace.take(addr, now); first && at.After(now) {
			return laterError{at}
		}
		first = false
		return nil
	})
	var later laterError
	if errors.As(err, &later) {
		h.mu.Lock()
		c.reserved = true
		h.delayed++
		h.mu.Unlock()
		h.again(c, later.at)
		return
	}
	h.take(c, started, status, err)
	interval := float64(c.key.interval) * (1 - jitter + 2*jitter*rand.Float64())
	h.again(c, started.Add(time.Duration(interval)))
}

// again ends a check that was under way, and has it due at a time.
func (h *Checker) again(c *check, at time.Time) {
	h.mu.Lock()
	h.running--
	if len(c.origins) > 0 {
		c.at = at
		priority.Push(&h.due, c)
	}
	h.mu.Unlock()
	h.look()
}

// take notes the result of a check.
func (h *Checker) take(c *check, started time.Time, status int, err error) {
	now := time.Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	c.stretched, c.reserved = 0, false
	if pause := started.Sub(c.started); !c.started.IsZero() && float64(pause) > stretchedBy*float64(c.key.interval) {
		c.stretched = pause
	}
	c.started, c.checked = started, now
	h.made++
	if err != nil {
		h.failed++
		c.lastFailure, c.why = now, reason{classOf(err), status}
	}
	changed := c.add(err == nil, c.key.thresholds)
	until := time.Time{}
	switch {
	case c.unhealthy:
		until = h.markEnd(c, now)
	case !changed:
		return
	}
	if changed {
		c.since = now
	}
	for key := range c.origins {
		h.state.mark(key, until)
	}
}

func (h *Checker) markEnd(c *check, from time.Time) time.Time {
	return from.Add(max(h.shortest, markIntervals*max(c.key.interval, c.stretched)))
}

// WriteMetrics counts checks.
func (h *Checker) WriteMetrics(w io.Writer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	stretched := 0
	for _, c := range h.checks {
		if c.stretched > 0 {
			stretched++
		}
	}
	fmt.Fprintf(w, "# HELP svc_edge_origin_checks Active checks of origins; origins that are checked alike share one.\n# TYPE svc_edge_origin_checks gauge\nsvc_edge_origin_checks %d\n", len(h.checks))
	fmt.Fprintf(w, "# HELP svc_edge_origin_checks_stretched Active checks whose interval is longer than set, because the node or an address has its share of checks.\n# TYPE svc_edge_origin_checks_stretched gauge\nsvc_edge_origin_checks_stretched %d\n", stretched)
	fmt.Fprintf(w, "# HELP svc_edge_origin_checks_total Active checks that were made.\n# TYPE svc_edge_origin_checks_total counter\nsvc_edge_origin_checks_total %d\n", h.made)
	fmt.Fprintf(w, "# HELP svc_edge_origin_checks_failed_total Active checks that failed.\n# TYPE svc_edge_origin_checks_failed_total counter\nsvc_edge_origin_checks_failed_total %d\n", h.failed)
	fmt.Fprintf(w, "# HELP svc_edge_origin_checks_delayed_total Active checks that waited for their turn at an address.\n# TYPE svc_edge_origin_checks_delayed_total counter\nsvc_edge_origin_checks_delayed_total %d\n", h.delayed)
}

// dueChecks has the check that is due first at its top.
type dueChecks []*check

// Len is for container/heap, as are the others.
func (d dueChecks) Len() int { return len(d) }

// Less compares times.
func (d dueChecks) Less(i, j int) bool { return d[i].at.Before(d[j].at) }

// Swap swaps two.
func (d dueChecks) Swap(i, j int) {
	d[i], d[j] = d[j], d[i]
	d[i].index, d[j].index = i, j
}

// Push adds one.
func (d *dueChecks) Push(x any) {
	c := x.(*check)
	c.index = len(*d)
	*d = append(*d, c)
}

// Pop takes the last.
func (d *dueChecks) Pop() any {
	last := len(*d) - 1
	c := (*d)[last]
	(*d)[last] = nil
	*d = (*d)[:last]
	return c
}
