package core

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"connectrpc.com/connect"
	"go.uber.org/zap"
)

const (
	// metricsPath answers figures in the text form of Prometheus, to whoever may use the agent's socket.
	metricsPath = "/metrics"
	// Scrapes at once over the metrics listener; others are refused.
	maxScrapes     = 4
	scrapeTimeout  = 10 * time.Second
	listenAgain    = 5 * time.Second
	scrapeMaxBytes = 8 << 10
)

// metricsWriter is a component that has figures to show.
type metricsWriter interface{ WriteMetrics(w io.Writer) }

var metricsListen = NewOption("metrics_listen", "", func(address string) error {
	if _, _, err := net.SplitHostPort(address); err != nil {
		return fmt.Errorf("is no address with a port: %q", address)
	}
	return nil
})

func init() {
	calls = append(calls, Call{metricsPath, false, func(c *Core, _ ...connect.HandlerOption) http.Handler { return metricsOf(c) }})
}

var metricsServers = NewComponent("metrics", func(c *Core) *metricsServer {
	return &metricsServer{c, make(chan struct{}, maxScrapes)}
})

func metricsOf(c *Core) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		out := bufio.NewWriter(w)
		for _, component := range Each[metricsWriter](c) {
			component.WriteMetrics(out)
		}
		_ = out.Flush()
	})
}

// metricsServer shows the figures, and nothing else of the socket, on a port, where one is wanted.
type metricsServer struct {
	core    *Core
	scrapes chan struct{}
}

// ServeHTTP answers a scrape.
func (m *metricsServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path != metricsPath:
		http.NotFound(w, r)
		return
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		http.Error(w, "use GET", http.StatusMethodNotAllowed)
		return
	}
	select {
	case m.scrapes <- struct{}{}:
		defer func() { <-m.scrapes }()
		metricsOf(m.core).ServeHTTP(w, r)
	default:
		http.Error(w, "too many scrapes at once", http.StatusServiceUnavailable)
	}
}

// Run serves until stop is closed. Without the port, which another process may have, it tries again.
func (m *metricsServer) Run(stop <-chan struct{}) {
	address := metricsListen.Of(m.core)
	if address == "" {
		return
	}
	said := false
	for {
		listener, err := net.Listen("tcp", address)
		if err == nil {
			m.core.Log().Info("serves metrics", zap.String("address", address))
			m.serve(listener, stop)
		} else if !said {
			said = true
			m.core.Log().Error("cannot serve metrics; trying again", zap.Error(err))
		}
		select {
		case <-stop:
			return
		case <-time.After(listenAgain):
		}
	}
}

func (m *metricsServer) serve(listener net.Listener, stop <-chan struct{}) {
	server := &http.Server{
		Handler: m, ReadHeaderTimeout: scrapeTimeout, ReadTimeout: scrapeTimeout, WriteTimeout: scrapeTimeout, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: scrapeMaxBytes,
	}
	ended := make(chan struct{})
	go func() {
		select {
		case <-stop:
		case <-ended:
		}
		_ = server.Close()
	}()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		m.core.Log().Error("metrics are not served any more; trying again", zap.Error(err))
	}
	close(ended)
}
