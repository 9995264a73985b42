// Package svcedge answers the requests of the edge: it decides in a fixed order what happens to a request, and passes
// what may pass to the origins of its site.
package svcedge

import (
	"net/http"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"edge.svc/caddy/svccore"
	"edge.svc/caddy/svclisten"
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

	core *svccore.Core
	log  *zap.Logger
}

// CaddyModule returns the Caddy module information.
func (Handler) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.svc_edge", New: func() caddy.Module { return new(Handler) }}
}

// Provision gets the core.
func (h *Handler) Provision(ctx caddy.Context) error {
	core, err := svccore.FromContext(ctx)
	if h.core, h.log = core, ctx.Logger(); err != nil || !h.Direct {
		return err
	}
	return h.takeFront(ctx)
}

// ServeHTTP answers the request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request, _ caddyhttp.Handler) error {
	// Caddy's own, set before any handler.
	delete(w.Header(), "Server")
	h.serve(&exchange{ResponseWriter: w, conn: svclisten.FromContext(r.Context())}, r)
	return nil
}

// ErrorHandler is the HTTP handler `svc_error` for the error routes of a server: it answers what Caddy itself refuses
// before a request reaches `svc_edge`, in the form of all other answers of the edge.
type ErrorHandler struct{}

// CaddyModule returns the Caddy module information.
func (ErrorHandler) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.svc_error", New: func() caddy.Module { return new(ErrorHandler) }}
}

var (
	_ caddy.Provisioner           = (*Handler)(nil)
	_ caddyhttp.MiddlewareHandler = (*Handler)(nil)
	_ caddyhttp.MiddlewareHandler = (*ErrorHandler)(nil)
)
