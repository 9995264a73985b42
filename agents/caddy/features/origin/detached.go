package origin

import (
	"context"
	"net/http"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
	"edge.svc/caddy/pages"
)

// origins is what other features find to ask origins without a client.
type origins struct{ core *core.Core }

var _ = core.NewComponent("origins", func(c *core.Core) *origins { return &origins{c} })

// Fetch asks the origins of the site of a request.
func (o *origins) Fetch(ctx context.Context, r *exchange.Request) (*exchange.Response, error) {
	pool := PoolOf(r.Plan)
	if pool == nil {
		return nil, &exchange.FetchError{Status: http.StatusBadGateway, Code: pages.NoOrigin}
	}
	f := Fetcher{Transports: TransportsOf(o.core), CDNLoop: o.core.LoopID(), Pool: pool}
	if pool.http2 {
		f.Shared = sharedClients.Of(o.core)
	}
	return f.Fetch(ctx, r)
}

// Fetch returns what an origin of the pool responds, see exchange.Fetcher.
func (f Fetcher) Fetch(ctx context.Context, r *exchange.Request) (*exchange.Response, error) {
	r.In.Upgrade = false
	t := f.begin(ctx, &r.Out, &r.Overrides)
	if t == nil {
		return nil, &exchange.FetchError{Status: http.StatusBadGateway, Code: pages.NoOrigin}
	}
	response := &exchange.Response{}
	t.in, t.outcome, t.interim = &r.In, &response.Outcome, r.Interim
	t.small, t.length = r.Body, int64(len(r.Body))
	returned := false
	defer func() {
		if !returned {
			t.abandon()
		}
	}()
	h, err := t.run()
	returned = true
	if err != nil {
		failed := t.refused(err)
		t.free()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, failed
	}
	response.Status, response.Header, response.Body = h.status(), http.Header{}, h
	response.Outcome.Asked, response.Outcome.Status = true, response.Status
	h.from(&response.Outcome)
	h.take(response.Header, &response.Trailer)
	// It is there to keep a server from guessing one.
	if values := response.Header["Content-Type"]; values == nil {
		delete(response.Header, "Content-Type")
	}
	return response, nil
}

// refused is the error for a failure.
func (t *fetch) refused(err error) *exchange.FetchError {
	t.outcome.Asked = true
	failed := &exchange.FetchError{Outcome: *t.outcome, Cause: err}
	failed.Status, failed.Code = refusal(err)
	return failed
}
