package count

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"

	"edge.svc/caddy/core"
)

// maxShown is how many sites have figures of their own in the metrics: each has ten series.
const maxShown = 200

// metricsSites names the sites by their ids, separated by commas; `all` are the first ones that are asked for anything.
var metricsSites = core.NewOption("metrics_sites", "", func(list string) error {
	if n := len(strings.Split(list, ",")); n > maxShown {
		return fmt.Errorf("names %d sites; at most %d", n, maxShown)
	}
	return nil
})

const allSites = "all"

// shownSites has the figures of sites in the metrics. Requests never touch it: what is settled is added to it.
type shownSites struct {
	all    bool
	wanted map[string]bool

	mu    sync.Mutex
	sites map[string]*siteFigures
}

// siteFigures grow as long as the process lives.
type siteFigures struct {
	requests, sent, received, hits, misses uint64
	// By the first digit of the status.
	classes [6]uint64
}

func newShownSites(list string) *shownSites {
	if list == "" {
		return nil
	}
	s := &shownSites{all: list == allSites, wanted: map[string]bool{}, sites: map[string]*siteFigures{}}
	for _, id := range strings.Split(list, ",") {
		s.wanted[strings.TrimSpace(id)] = true
	}
	return s
}

// of returns the figures of a site; nil where it has none.
func (s *shownSites) of(siteID string) *siteFigures {
	if s == nil || siteID == "" || !s.all && !s.wanted[siteID] {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.sites[siteID]
	if f == nil && len(s.sites) < maxShown {
		f = &siteFigures{}
		s.sites[siteID] = f
	}
	return f
}

// add takes over a figure that is settled. A nil figure takes nothing.
func (s *shownSites) add(to *siteFigures, f field, n uint64) {
	if to == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case f == fieldRequests:
		to.requests += n
	case f == fieldSent:
		to.sent += n
	case f == fieldReceived:
		to.received += n
	case f == fieldCacheHits:
		to.hits += n
	case f == fieldCacheMisses:
		to.misses += n
	case f.isStatus():
		to.classes[min(int(f-fieldStatus)/100, len(to.classes)-1)] += n
	}
}

// WriteMetrics writes the figures of the sites that were chosen.
func (s *Stats) WriteMetrics(w io.Writer) {
	if s.shown == nil {
		return
	}
	s.shown.write(w)
}

func (s *shownSites) write(w io.Writer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ids := slices.SortedFunc(maps.Keys(s.sites), func(a, b string) int { return cmp.Compare(a, b) })
	fmt.Fprint(w, "# HELP svc_edge_site_requests_total Requests of chosen sites.\n# TYPE svc_edge_site_requests_total counter\n")
	for _, id := range ids {
		fmt.Fprintf(w, "svc_edge_site_requests_total{site=%q} %d\n", id, s.sites[id].requests)
	}
	fmt.Fprint(w, "# HELP svc_edge_site_responses_total Responses of chosen sites by the first digit of the status.\n# TYPE svc_edge_site_responses_total counter\n")
	for _, id := range ids {
		for class, n := range s.sites[id].classes[1:] {
			fmt.Fprintf(w, "svc_edge_site_responses_total{site=%q,class=\"%dxx\"} %d\n", id, class+1, n)
		}
	}
	fmt.Fprint(w, "# HELP svc_edge_site_bytes_total Bytes of chosen sites, sent to clients and received from them.\n# TYPE svc_edge_site_bytes_total counter\n")
	for _, id := range ids {
		fmt.Fprintf(w, "svc_edge_site_bytes_total{site=%q,direction=\"sent\"} %d\n", id, s.sites[id].sent)
		fmt.Fprintf(w, "svc_edge_site_bytes_total{site=%q,direction=\"received\"} %d\n", id, s.sites[id].received)
	}
	fmt.Fprint(w, "# HELP svc_edge_site_cache_total Responses of chosen sites that cache, by whether they were stored.\n# TYPE svc_edge_site_cache_total counter\n")
	for _, id := range ids {
		fmt.Fprintf(w, "svc_edge_site_cache_total{site=%q,result=\"hit\"} %d\n", id, s.sites[id].hits)
		fmt.Fprintf(w, "svc_edge_site_cache_total{site=%q,result=\"miss\"} %d\n", id, s.sites[id].misses)
	}
}
