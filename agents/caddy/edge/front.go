package edge

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"edge.svc/caddy/features/origin"
	"edge.svc/caddy/listen"
)

// front takes requests to the handler without the chain of Caddy's server. The chain copies each request for a log that
// nobody keeps and prepares placeholders that nobody reads, which is a quarter of what a challenge page costs. What the
// chain refuses or does for other kinds of connections stays with it.
type front struct {
	handler *Handler
	// The limit on writes in which nothing goes on, which is the chain's where a request takes it.
	writeIdle time.Duration
	chain     http.Handler
}

// takeFront puts a front before the chain of the server that is being provisioned.
func (h *Handler) takeFront(ctx caddy.Context) error {
	server, ok := ctx.Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server)
	if !ok {
		return errors.New("direct works only in routes of HTTP servers")
	}
	var once sync.Once
	server.RegisterConnContext(func(ctx context.Context, _ net.Conn) context.Context {
		once.Do(func() {
			// The first connection comes before any request is read.
			if s, ok := ctx.Value(http.ServerContextKey).(*http.Server); ok {
				s.Handler = &front{h, time.Duration(server.WriteIdleTimeout), s.Handler}
			}
		})
		return ctx
	})
	return nil
}

// maxMethodBytes is the longest method that Caddy takes.
const maxMethodBytes = 32

// ServeHTTP answers the request.
func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	conn := listen.FromRequest(r)
	now := time.Now()
	if conn != nil && r.ProtoMajor == 1 && f.writeIdle > 0 {
		// Also for what the server writes on its own behalf while the request is answered.
		conn.BoundWritesAt(now, f.writeIdle)
	}
	if conn != nil && conn.BeginsHTTP2(r) && origin.ServesGRPC(f.handler.pipeline.core) && conn.ServeHTTP2(w, r) {
		return
	}
	if conn == nil || len(r.Method) > maxMethodBytes || r.URL.Host != "" || r.Host == "" || r.Host[0] == '.' {
		f.chain.ServeHTTP(w, r)
		return
	}
	f.handler.serveAt(w, r, conn, f.writeIdle, now)
}
