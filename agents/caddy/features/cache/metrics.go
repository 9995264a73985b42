package cache

import (
	"fmt"
	"io"
)

// WriteMetrics writes what became of requests, and the figures of the store.
func (c *Cache) WriteMetrics(w io.Writer) {
	fmt.Fprint(w, "# HELP svc_edge_cache_answers_total Responses of sites that cache, by the value of X-Cache.\n# TYPE svc_edge_cache_answers_total counter\n")
	for word := range words {
		fmt.Fprintf(w, "svc_edge_cache_answers_total{status=%q} %d\n", word, c.counts.words[word].Load())
	}
	used, most, objects := c.store.Usage()
	fmt.Fprintf(w, "# HELP svc_edge_cache_bytes Size of stored responses.\n# TYPE svc_edge_cache_bytes gauge\nsvc_edge_cache_bytes %d\n", used)
	fmt.Fprintf(w, "# HELP svc_edge_cache_bytes_max Largest size of stored responses.\n# TYPE svc_edge_cache_bytes_max gauge\nsvc_edge_cache_bytes_max %d\n", most)
	fmt.Fprintf(w, "# HELP svc_edge_cache_fills Requests to origins whose response other requests may share.\n# TYPE svc_edge_cache_fills gauge\nsvc_edge_cache_fills %d\n", c.fills.count())
	fmt.Fprintf(w, "# HELP svc_edge_cache_objects Stored responses.\n# TYPE svc_edge_cache_objects gauge\nsvc_edge_cache_objects %d\n", objects)
	fmt.Fprint(w, "# HELP svc_edge_cache_store_total What happened to stored responses and their files.\n# TYPE svc_edge_cache_store_total counter\n")
	counts := c.store.Counters()
	for _, each := range []struct {
		event string
		count uint64
	}{
		{"stored", counts.Stored.Load()}, {"evicted", counts.Evicted.Load()}, {"inactive", counts.Inactive.Load()},
		{"checked", counts.Checked.Load()}, {"damaged", counts.Damaged.Load()}, {"found", counts.Adopted.Load()}, {"deleted", counts.Orphans.Load()},
		{"failed", counts.WriteErrors.Load()}, {"unreadable", counts.ReadErrors.Load()}, {"refused", counts.Refused.Load()},
	} {
		fmt.Fprintf(w, "svc_edge_cache_store_total{event=%q} %d\n", each.event, each.count)
	}
}
