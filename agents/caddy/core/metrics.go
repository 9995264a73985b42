package core

import (
	"bufio"
	"io"
	"net/http"

	"connectrpc.com/connect"
)

// metricsPath answers figures in the text form of Prometheus, to whoever may use the agent's socket.
const metricsPath = "/metrics"

// metricsWriter is a component that has figures to show.
type metricsWriter interface{ WriteMetrics(w io.Writer) }

func init() {
	calls = append(calls, Call{metricsPath, false, func(c *Core, _ ...connect.HandlerOption) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
			out := bufio.NewWriter(w)
			for _, component := range Each[metricsWriter](c) {
				component.WriteMetrics(out)
			}
			_ = out.Flush()
		})
	}})
}
