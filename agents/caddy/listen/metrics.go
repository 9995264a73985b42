package listen

import (
	"fmt"
	"io"
	"maps"
	"slices"

	"edge.svc/caddy/internal/inflight"
)

// WriteMetrics writes how many connections there are and what their limits did.
func (s *state) WriteMetrics(w io.Writer) {
	c := Process.Counters()
	fmt.Fprintf(w, "# HELP svc_edge_connections Open client connections.\n# TYPE svc_edge_connections gauge\nsvc_edge_connections %d\n", Process.Connections())
	fmt.Fprintf(w, "# HELP svc_edge_connections_waiting Connections whose first request headers are not complete.\n# TYPE svc_edge_connections_waiting gauge\nsvc_edge_connections_waiting %d\n", c.Waiting)
	fmt.Fprintf(w, "# HELP svc_edge_handshakes_in_progress TLS handshakes in progress.\n# TYPE svc_edge_handshakes_in_progress gauge\nsvc_edge_handshakes_in_progress %d\n", c.Handshakes)
	fmt.Fprintf(w, "# HELP svc_edge_connections_accepted_total Client connections accepted.\n# TYPE svc_edge_connections_accepted_total counter\nsvc_edge_connections_accepted_total %d\n", c.Accepted)
	for _, family := range []struct {
		name, help, label string
		counts            map[string]uint64
	}{
		{"svc_edge_connections_refused_total", "Client connections closed at once, by limit.", "limit", c.Refused},
		{"svc_edge_connections_evicted_total", "Client connections closed to make room or after a timeout, by limit.", "limit", c.Evicted},
		{"svc_edge_http2_errors_total", "Violations of HTTP/2 or its limits, by kind.", "kind", c.HTTP2Errors},
		{"svc_edge_http3_errors_total", "Violations of HTTP/3 or its limits, by kind.", "kind", c.HTTP3Errors},
	} {
		fmt.Fprintf(w, "# HELP %s %s\n# TYPE %s counter\n", family.name, family.help, family.name)
		for _, key := range slices.Sorted(maps.Keys(family.counts)) {
			fmt.Fprintf(w, "%s{%s=%q} %d\n", family.name, family.label, key, family.counts[key])
		}
	}
	writeRequests(w, Process.inflight.Counters())
}

// writeRequests writes what requests in progress hold, and what their limits did.
func writeRequests(w io.Writer, c inflight.Counters) {
	fmt.Fprintf(w, "# HELP svc_edge_requests_in_progress Requests in progress.\n# TYPE svc_edge_requests_in_progress gauge\nsvc_edge_requests_in_progress %d\n", c.Requests)
	fmt.Fprintf(w, "# HELP svc_edge_request_memory_bytes Memory that requests in progress count, by what they hold and by the limit.\n# TYPE svc_edge_request_memory_bytes gauge\nsvc_edge_request_memory_bytes{of=\"held\"} %d\nsvc_edge_request_memory_bytes{of=\"limit\"} %d\n", c.Bytes, c.Limits.Total)
	fmt.Fprintf(w, "# HELP svc_edge_requests_refused_total Requests refused for the memory of requests in progress, by limit.\n# TYPE svc_edge_requests_refused_total counter\nsvc_edge_requests_refused_total{limit=\"total\"} %d\nsvc_edge_requests_refused_total{limit=\"network\"} %d\n", c.RefusedTotal, c.RefusedNetwork)
	fmt.Fprintf(w, "# HELP svc_edge_requests_evicted_total Requests ended to make room for those of other networks.\n# TYPE svc_edge_requests_evicted_total counter\nsvc_edge_requests_evicted_total %d\n", c.Evicted)
	fmt.Fprintf(w, "# HELP svc_edge_requests_unanswered_total Refused requests ended without a response, because too many responses to refused ones were unread.\n# TYPE svc_edge_requests_unanswered_total counter\nsvc_edge_requests_unanswered_total %d\n", c.Unanswered)
}
