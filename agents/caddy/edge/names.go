package edge

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
)

const (
	// Names of fields that are remembered and logged within a day, of all sites; more of them only count.
	maxNames     = 1000
	maxNameBytes = 64
	// Names of one request that are looked at; the others only count.
	maxNoted = 16
)

// droppedNames are the fields of a request that origins do not get because of their names.
type droppedNames struct {
	names []string
	total int
}

var droppedOf = exchange.NewFact[droppedNames]()

func dropped(x *exchange.Exchange, name string) {
	at := droppedOf.Of(x)
	if at.total++; at.total <= maxNoted {
		// A part of something large is not kept for it.
		at.names = append(at.names, strings.Clone(name[:min(len(name), maxNameBytes)]))
	}
}

// nameLog counts fields that were dropped for their names and logs the first of each name for a site and day.
type nameLog struct {
	core  *core.Core
	total atomic.Uint64

	mu   sync.Mutex
	day  int64
	seen map[[2]string]bool
}

var names = core.NewComponent("dropped names", func(c *core.Core) *nameLog { return &nameLog{core: c, seen: map[[2]string]bool{}} })

// noteNames is the stage that tells which fields were dropped, now that the site is known.
func noteNames(c *core.Core) exchange.Stage {
	log := names.Of(c)
	return func(x *exchange.Exchange) *exchange.Answer {
		if at, ok := droppedOf.Known(x); ok {
			log.note(x.Plan.SiteID, at.names, at.total)
		}
		return nil
	}
}

func (l *nameLog) note(siteID string, names []string, total int) {
	l.total.Add(uint64(total))
	day := l.core.Now().Unix() / int64((24 * time.Hour).Seconds())
	l.mu.Lock()
	defer l.mu.Unlock()
	if day != l.day {
		l.day, l.seen = day, map[[2]string]bool{}
	}
	for _, name := range names {
		key := [2]string{siteID, name}
		if l.seen[key] || len(l.seen) >= maxNames {
			continue
		}
		l.seen[key] = true
		l.core.Log().Warn("origins do not get a request header, because its name could be mistaken for another",
			zap.String("site", siteID), zap.String("field", name))
	}
}

// WriteMetrics writes how many there were.
func (l *nameLog) WriteMetrics(w io.Writer) {
	fmt.Fprintf(w, "# HELP svc_edge_dropped_fields_total Request headers that were not passed to origins because of their names.\n"+
		"# TYPE svc_edge_dropped_fields_total counter\nsvc_edge_dropped_fields_total %d\n", l.total.Load())
}
