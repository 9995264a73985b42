package edge

import (
	"net/http"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"edge.svc/caddy/exchange"
	"edge.svc/caddy/listen"
	"edge.svc/caddy/pages"
)

// ErrorHandler is the HTTP handler `svc_error` for the error routes of a server: it answers what Caddy itself refuses
// before a request reaches `svc_edge`, in the form of all other answers of the edge.
type ErrorHandler struct{}

// CaddyModule returns the Caddy module information.
func (ErrorHandler) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.svc_error", New: func() caddy.Module { return new(ErrorHandler) }}
}

// ServeHTTP answers the error in the context of the request.
func (ErrorHandler) ServeHTTP(w http.ResponseWriter, r *http.Request, _ caddyhttp.Handler) error {
	status := http.StatusInternalServerError
	if failure, ok := r.Context().Value(caddyhttp.ErrorCtxKey).(caddyhttp.HandlerError); ok && failure.StatusCode >= 400 {
		status = failure.StatusCode
	}
	code := pages.InternalError
	switch {
	case status == http.StatusMethodNotAllowed:
		code = pages.MethodNotAllowed
	case status < 500:
		code = pages.BadRequest
	}
	// The head of its request was whole.
	conn := listen.FromRequest(r)
	x := exchanges.Get().(*exchange.Exchange)
	x.Begin(w, r)
	endAfter(x, r)
	listen.Carry(x, conn, 0)
	if x.Meter != nil {
		x.Meter.Refuse(status)
	}
	assignRequestID(&x.In)
	a := pages.Respond(x, status, code)
	addEdgeHeaders(x, a)
	whole := x.Send(a)
	x.Reset()
	exchanges.Put(x)
	if !whole {
		panic(http.ErrAbortHandler)
	}
	return nil
}
