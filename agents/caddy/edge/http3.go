package edge

import (
	"net/http"
	"time"

	"edge.svc/caddy/core"
	"edge.svc/caddy/listen"
)

// takeHTTP3 answers requests over HTTP/3. They take neither Caddy's server nor its chain.
func (h *Handler) takeHTTP3(c *core.Core, writeIdle time.Duration) {
	listen.AnswerHTTP3(c, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.serve(w, r, listen.FromRequest(r), writeIdle)
	}))
}
