package prefetch

import (
	"context"
	"errors"
	"time"

	"connectrpc.com/connect"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
	"edge.svc/caddy/gen/svc/edge/v1/edgev1connect"
	nodev1 "edge.svc/caddy/gen/svc/node/v1"
)

const (
	atOnce    = 4
	perSecond = 50
	urlTime   = time.Minute
	// Between two reports.
	reportTime = time.Second
	maxURLs    = 500
	maxBudget  = time.Hour
)

// Fetcher fetches for a core.
type Fetcher struct {
	core *core.Core
	// One token for each request that may run.
	slots chan struct{}
	pace  *time.Ticker
}

var component = core.NewComponent("prefetch", func(c *core.Core) *Fetcher {
	return &Fetcher{core: c, slots: make(chan struct{}, atOnce), pace: time.NewTicker(time.Second / perSecond)}
})

func init() {
	core.RegisterCapability("prefetch-v2")
	core.RegisterStream(edgev1connect.EdgeServicePrefetchProcedure, prefetch)
}

var errPrefetch = errors.New("a prefetch has 1 to 500 URLs, a sitemap one, a variant and a budget")

func prefetch(ctx context.Context, c *core.Core, r *edgev1.PrefetchRequest, send func(*nodev1.PrefetchState) error) error {
	p, budget := r.GetPrefetch(), time.Duration(r.GetBudgetMs())*time.Millisecond
	if n := len(p.GetUrls()); n == 0 || n > maxURLs || p.GetSitemap() && n != 1 || !p.GetDesktop() && !p.GetMobile() || budget <= 0 || budget > maxBudget {
		return connect.NewError(connect.CodeInvalidArgument, errPrefetch)
	}
	f := component.Of(c)
	ctx, cancel := context.WithTimeout(ctx, budget)
	defer cancel()
	run := &run{fetcher: f, what: p}
	over := make(chan struct{})
	go func() {
		defer close(over)
		run.do(ctx)
	}()
	ticker := time.NewTicker(reportTime)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			if err := send(run.state("")); err != nil {
				cancel()
				<-over
				return err
			}
		case <-over:
			return send(run.result(ctx))
		}
	}
}

// asks serves requests, nil where nobody does.
func (f *Fetcher) asks() exchange.Local { return core.Find[exchange.Local](f.core) }

func (f *Fetcher) covers(p *exchange.Plan, host string) bool {
	certificates := core.Find[exchange.Certificates](f.core)
	return certificates != nil && certificates.Covers(p, host)
}
