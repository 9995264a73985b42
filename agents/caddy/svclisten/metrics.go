package svclisten

import (
	"fmt"
	"io"
	"maps"
	"slices"
)

// WriteMetrics writes how many connections there are and what their limits did.
func (s *state) WriteMetrics(w io.Writer) {
	c := Process.Counters()
	fmt.Fprintf(w, "# HELP svc_edge_connections Open client connections.\n# TYPE svc_edge_connections gauge\nsvc_edge_connections %d\n", Process.Connections())
	fmt.Fprintf(w, "# HELP svc_edge_connections_waiting Connections without the head of a request so far.\n# TYPE svc_edge_connections_waiting gauge\nsvc_edge_connections_waiting %d\n", c.Waiting)
	fmt.Fprintf(w, "# HELP svc_edge_handshakes_in_progress Handshakes of TLS under way.\n# TYPE svc_edge_handshakes_in_progress gauge\nsvc_edge_handshakes_in_progress %d\n", c.Handshakes)
	fmt.Fprintf(w, "# HELP svc_edge_connections_accepted_total Connections that came.\n# TYPE svc_edge_connections_accepted_total counter\nsvc_edge_connections_accepted_total %d\n", c.Accepted)
	for _, family := range []struct {
		name, help, label string
		counts            map[string]uint64
	}{
		{"svc_edge_connections_refused_total", "Connections closed when they came, by limit.", "limit", c.Refused},
		{"svc_edge_connections_evicted_total", "Connections closed to make room or because they took too long, by limit.", "limit", c.Evicted},
		{"svc_edge_http2_errors_total", "Breaches of HTTP/2 and its limits, by kind.", "kind", c.HTTP2Errors},
		{"svc_edge_http3_errors_total", "Breaches of HTTP/3 and its limits, by kind.", "kind", c.HTTP3Errors},
	} {
		fmt.Fprintf(w, "# HELP %s %s\n# TYPE %s counter\n", family.name, family.help, family.name)
		for _, key := range slices.Sorted(maps.Keys(family.counts)) {
			fmt.Fprintf(w, "%s{%s=%q} %d\n", family.name, family.label, key, family.counts[key])
		}
	}
}
