package edge

import (
	"net/http"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
	"edge.svc/caddy/listen"
)

func init() {
	caddy.RegisterModule(Handler{})
	caddy.RegisterModule(ErrorHandler{})
}

// Handler is the HTTP handler `svc_edge`. Everything about sites comes from the app `svc`. It answers every request, so
// nothing may follow it in a route.
type Handler struct {
	// Direct lets plain HTTP/1 requests skip the chain of the server, with all of its routes.
	Direct bool `json:"direct,omitempty"`
	// Local is for a listener over which the node itself asks: nothing that concerns visitors applies.
	Local bool `json:"local,omitempty"`

	pipeline *pipeline
}

// CaddyModule returns the Caddy module information.
func (Handler) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.svc_edge", New: func() caddy.Module { return new(Handler) }}
}

// Provision makes the order ready.
func (h *Handler) Provision(ctx caddy.Context) error {
	c, err := core.FromContext(ctx)
	if err != nil {
		return err
	}
	log := ctx.Logger()
	exchange.OnPanic(func(doing string, p any, stack []byte) {
		log.Error("a panic was contained", zap.String("doing", doing), zap.Any("panic", p), zap.ByteString("stack", stack))
	})
	h.pipeline = newPipeline(c, log, h.Local)
	server, ok := ctx.Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server)
	if ok && !h.Local {
		h.takeHTTP3(c, time.Duration(server.WriteIdleTimeout))
	}
	if !h.Direct {
		return nil
	}
	return h.takeFront(ctx)
}

// ServeHTTP answers the request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request, _ caddyhttp.Handler) error {
	h.serve(w, r, listen.FromRequest(r), 0)
	return nil
}

// serve answers a request of a connection, nil where it is not known.
func (h *Handler) serve(w http.ResponseWriter, r *http.Request, conn *listen.Conn, writeIdle time.Duration) {
	h.serveAt(w, r, conn, writeIdle, time.Now())
}

// serveAt is serve for who has read the clock.
func (h *Handler) serveAt(w http.ResponseWriter, r *http.Request, conn *listen.Conn, writeIdle time.Duration, now time.Time) {
	x := h.pipeline.begin(w, r, now)
	listen.Carry(x, conn, writeIdle)
	if !h.pipeline.serve(x) {
		panic(http.ErrAbortHandler)
	}
}

var (
	_ caddy.Provisioner           = (*Handler)(nil)
	_ caddyhttp.MiddlewareHandler = (*Handler)(nil)
	_ caddyhttp.MiddlewareHandler = (*ErrorHandler)(nil)
)
