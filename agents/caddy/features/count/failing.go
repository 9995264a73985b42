package count

import (
	"cmp"
	"slices"
	"sync/atomic"
	"time"

	"edge.svc/caddy/exchange"
	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
	nodev1 "edge.svc/caddy/gen/svc/node/v1"
	"edge.svc/caddy/pages"
)

const (
	// A site fails when so many requests of the last minute did, and at least this share of all.
	failingFrom  = 3
	failingShare = 10
	// The minute is counted in parts.
	failingPart  = 10 * time.Second
	failingParts = 6
	// maxFailing is how many failing sites are told.
	maxFailing = 20
)

// cause says why a request failed, as FailingSite.cause does.
type cause uint32

const (
	causeNone cause = iota
	causeUnreachable
	causeTimeout
	causeDNS
	causeTLS
	causeForbidden
	causeBusy
	causeStatus
	causeEdge
)

var causeNames = [...]string{
	causeNone: "edge", causeUnreachable: "origin-unreachable", causeTimeout: "origin-timeout", causeDNS: "origin-dns",
	causeTLS: "origin-tls", causeForbidden: "origin-forbidden", causeBusy: "origin-busy", causeStatus: "origin-status",
	causeEdge: "edge",
}

// causes are those of the classes of OriginOutcome.Error.
var causes = map[string]cause{
	"connect_failed": causeUnreachable, "timeout": causeTimeout, "dns_failed": causeDNS, "tls_failed": causeTLS,
	"address_forbidden": causeForbidden, "connections_in_use": causeBusy, "upstream_status": causeStatus,
}

// ofOrigins are the pages that respond for an origin.
var ofOrigins = []string{
	pages.NoOrigin, pages.OriginBusy, pages.OriginTimeout, pages.OriginUnreachable,
}

// causeOf says why an answer 5xx was given; causeNone where somebody wanted it.
func causeOf(x *exchange.Exchange, from exchange.From, code string) cause {
	switch {
	case from != exchange.FromEdge:
		return causeStatus
	case slices.Contains(deliberate, code):
		return causeNone
	case slices.Contains(ofOrigins, code):
		if found, ok := causes[exchange.Origin.Of(x).Error]; ok {
			return found
		}
		return causeUnreachable
	}
	return causeEdge
}

// lately is how a site fared in the last minute: from its first failure on, until nothing of the minute is left. It belongs
// to the one who flushes.
type lately struct {
	parts [failingParts]struct{ requests, failed uint64 }
	// The number of the newest part, and when something failed last.
	part       int64
	lastFailed time.Time
	// Requests since then.
	without uint64
	since   time.Time
}

// add counts what the last second brought.
func (l *lately) add(now time.Time, requests, failed uint64) {
	number := now.UnixNano() / int64(failingPart)
	if gap := number - l.part; gap != 0 {
		for i := range min(max(gap, 1), failingParts) {
			l.parts[(number-i)%failingParts] = struct{ requests, failed uint64 }{}
		}
		l.part = number
	}
	at := &l.parts[number%failingParts]
	at.requests += requests
	at.failed += failed
	if failed > 0 {
		l.lastFailed, l.without = now, 0
	} else {
		l.without += requests
	}
}

// sums are requests and failures of the last minute.
func (l *lately) sums() (requests, failed uint64) {
	for _, part := range l.parts {
		requests, failed = requests+part.requests, failed+part.failed
	}
	return max(requests, failed), failed
}

// fails says whether many requests fail, and that has not ended.
func (l *lately) fails(now time.Time) bool {
	requests, failed := l.sums()
	works := l.without >= failingFrom && now.Sub(l.lastFailed) > failingPart
	return failed >= failingFrom && failed*100 >= requests*failingShare && !works
}

// failing has the sites of which requests failed in the last minute.
type failing struct {
	sites map[*counter]*lately
	// What is told.
	told atomic.Pointer[[]*nodev1.FailingSite]
}

// note takes over how a site fared since the last flush.
func (f *failing) note(c *counter, now time.Time, requests, failed uint64) {
	l := f.sites[c]
	if l == nil {
		if failed == 0 || c.siteID == "" {
			return
		}
		if f.sites == nil {
			f.sites = map[*counter]*lately{}
		}
		l = &lately{}
		f.sites[c] = l
	}
	l.add(now, requests, failed)
}

// tell says which sites fail now.
func (f *failing) tell(now time.Time) {
	if len(f.sites) == 0 {
		f.told.Store(nil)
		return
	}
	list := make([]*nodev1.FailingSite, 0, min(len(f.sites), maxFailing))
	for c, l := range f.sites {
		l.add(now, 0, 0)
		requests, failed := l.sums()
		if failed == 0 {
			delete(f.sites, c)
			continue
		}
		if !l.fails(now) {
			l.since = time.Time{}
			continue
		}
		if l.since.IsZero() {
			l.since = now
		}
		list = append(list, &nodev1.FailingSite{
			SiteId: c.siteID, Requests: requests, Failed: failed, SinceMs: l.since.UnixMilli(),
			Cause: causeNames[c.cause.Load()],
		})
	}
	slices.SortFunc(list, func(a, b *nodev1.FailingSite) int {
		return cmp.Or(cmp.Compare(b.Failed, a.Failed), cmp.Compare(a.SiteId, b.SiteId))
	})
	list = list[:min(len(list), maxFailing)]
	f.told.Store(&list)
}

func (f *failing) fill(status *edgev1.GetStatusResponse) {
	if list := f.told.Load(); list != nil {
		status.FailingSites = *list
	}
}
