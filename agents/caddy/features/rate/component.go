package rate

import (
	"fmt"
	"io"
	"time"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
)

// Limiter counts for a core.
type Limiter struct {
	table *table
	now   func() time.Time
	start time.Time
}

var (
	maxMiB    = core.NewOption("rate_limit_mib", 64, positive)
	component = core.NewComponent("rate limits", func(c *core.Core) *Limiter {
		return newLimiter(maxMiB.Of(c)<<20, c.Clock())
	})
)

// most is what the option may say, in MiB.
const most = 4096

func positive(mib int) error {
	if mib < 1 || mib > most {
		return fmt.Errorf("is %d and must be from 1 to %d", mib, most)
	}
	return nil
}

// Of returns the limiter of a core.
func Of(c *core.Core) *Limiter { return component.Of(c) }

// newLimiter makes a limiter of at most so many bytes, beside what those without a place take: 1 MiB. now is nil for the
// real clock.
func newLimiter(bytes int, now func() time.Time) *Limiter {
	if now == nil {
		now = time.Now
	}
	return &Limiter{newTable(bytes), now, now()}
}

// maxDue is how many limits a request can fall under: those of all rules of the platform and of a site.
const maxDue = 96

// Admit is described by exchange.RateLimits.
func (l *Limiter) Admit(p *exchange.Plan, due []exchange.RateDue) int {
	site, now := exchange.SiteKey(p), max(l.now().Sub(l.start), 0)
	var counted [maxDue]uint32
	due = due[:min(len(due), maxDue)]
	for i := range due {
		part, within := l.table.count(l.table.counter(site, due[i].Rule.Counter), due[i], now)
		if within {
			counted[i] = part
			continue
		}
		for j := range i {
			l.table.uncount(l.table.counter(site, due[j].Rule.Counter), due[j], counted[j])
		}
		return i
	}
	return -1
}

// WriteMetrics shows how full the table is and what became of requests.
func (l *Limiter) WriteMetrics(w io.Writer) {
	f := l.table.figures()
	for _, m := range []struct {
		name, kind, help string
		value            uint64
	}{
		{"svc_edge_rate_limit_places", "gauge", "Rate limit counters that fit into the table.", f.places},
		{"svc_edge_rate_limit_refused_total", "counter", "Requests refused because of a rate limit.", f.refused},
		{"svc_edge_rate_limit_evicted_total", "counter", "Rate limit counters dropped for others.", f.evicted},
		{"svc_edge_rate_limit_crowded_total", "counter", "Requests that shared a counter because the table is full.", f.crowded},
	} {
		fmt.Fprintf(w, "# HELP %s %s\n# TYPE %s %s\n%s %d\n", m.name, m.help, m.name, m.kind, m.name, m.value)
	}
}

var _ exchange.RateLimits = (*Limiter)(nil)
