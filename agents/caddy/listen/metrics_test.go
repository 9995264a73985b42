package listen

import (
	"strings"
	"testing"

	"edge.svc/caddy/core"
)

// Every limit has a counter in the metrics.
func TestLimitsAreCountedInTheMetrics(t *testing.T) {
	Process.limiter.refuse(proxyHeader)
	Process.http2Errors.add("test: kind")
	Process.http3Errors.add("test: kind")
	var text strings.Builder
	states.Of(core.New(core.Options{StateDir: t.TempDir()})).WriteMetrics(&text)
	for _, want := range []string{
		"svc_edge_connections ", "svc_edge_connections_waiting ", "svc_edge_connections_accepted_total ",
		`svc_edge_connections_refused_total{limit="proxy-header"} `, `svc_edge_http2_errors_total{kind="test: kind"} 1`,
		`svc_edge_http3_errors_total{kind="test: kind"} 1`,
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %s in\n%s", want, text.String())
		}
	}
}
