package count

import (
	"fmt"
	"strings"
	"testing"

	"edge.svc/caddy/core"
)

func metricsText(s *Stats) string {
	var out strings.Builder
	s.WriteMetrics(&out)
	return out.String()
}

func TestOnlyChosenSitesHaveMetrics(t *testing.T) {
	for list, want := range map[string][2]bool{"": {}, "a": {true, false}, "a, b": {true, true}, "all": {true, true}} {
		clock := &fakeClock{start}
		stats := Of(core.New(core.Options{StateDir: t.TempDir(), Now: clock.now, Values: map[string]any{"metrics_sites": list}}))
		a, b := stats.counter("a"), stats.counter("b")
		for range 2 {
			a.request(30, 5)
			a.add(statusField(404))
			b.request(1, 1)
			stats.node.request(1, 1)
			stats.Settle()
		}
		// What is drained stays in the metrics.
		stats.Drain(0)
		text := metricsText(stats)
		for i, id := range []string{"a", "b"} {
			if strings.Contains(text, fmt.Sprintf("svc_edge_site_requests_total{site=%q} 2\n", id)) != want[i] {
				t.Errorf("%q: site %s in\n%s", list, id, text)
			}
		}
		for _, line := range []string{
			`svc_edge_site_responses_total{site="a",class="2xx"} 2`, `svc_edge_site_responses_total{site="a",class="4xx"} 2`,
			`svc_edge_site_bytes_total{site="a",direction="sent"} 60`, `svc_edge_site_bytes_total{site="a",direction="received"} 10`,
		} {
			if want[0] && !strings.Contains(text, line+"\n") {
				t.Errorf("%q: no %s in\n%s", list, line, text)
			}
		}
		if strings.Contains(text, `site=""`) {
			t.Errorf("%q: the node is no site", list)
		}
	}
}

func TestMetricsOfSitesAreBounded(t *testing.T) {
	clock := &fakeClock{start}
	stats := Of(core.New(core.Options{StateDir: t.TempDir(), Now: clock.now, Values: map[string]any{"metrics_sites": "all"}}))
	for site := range maxShown + 50 {
		stats.counter(fmt.Sprintf("s%d", site)).request(1, 1)
	}
	stats.Settle()
	if n := strings.Count(metricsText(stats), "svc_edge_site_requests_total{"); n != maxShown {
		t.Errorf("%d sites", n)
	}
}
