package svcedge

import (
	"net/http"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"edge.svc/caddy/svcerrors"
)

// ServeHTTP answers the error in the context of the request.
func (ErrorHandler) ServeHTTP(w http.ResponseWriter, r *http.Request, _ caddyhttp.Handler) error {
	delete(w.Header(), "Server")
	assignRequestID(w.Header(), r.Header)
	status := http.StatusInternalServerError
	if failure, ok := r.Context().Value(caddyhttp.ErrorCtxKey).(caddyhttp.HandlerError); ok && failure.StatusCode >= 400 {
		status = failure.StatusCode
	}
	code := svcerrors.InternalError
	switch {
	case status == http.StatusMethodNotAllowed:
		code = svcerrors.MethodNotAllowed
	case status < 500:
		code = svcerrors.BadRequest
	}
	svcerrors.Write(w, r, status, code)
	return nil
}
