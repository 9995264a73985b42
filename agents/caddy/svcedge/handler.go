// Package svcedge answers the requests of the edge: it decides in a fixed order what happens to a request, and passes
// what may pass to the origins of its site.
package svcedge

import (
	"net/http"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"edge.svc/caddy/svccore"
)

func init() {
	caddy.RegisterModule(Handler{})
	caddy.RegisterModule(ErrorHandler{})
}

// Handler is the HTTP handler `svc_edge`. It has no settings: everything comes from the app `svc`. It answers every
// request, so nothing may follow it in a route.
type Handler struct {
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
	h.core, h.log = core, ctx.Logger()
	return err
}

// ServeHTTP answers the request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request, _ caddyhttp.Handler) error {
	h.serve(w, r)
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
