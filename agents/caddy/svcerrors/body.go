package svcerrors

import (
	"net/http"
	"time"
)

// bodyTimeout bounds the time a client takes to send what nobody but the edge reads: at most a few hundred bytes of use.
// Tests shorten it.
var bodyTimeout = 10 * time.Second

// BoundBody bounds the time that the rest of a request may take. Whatever the edge answers by itself calls it first:
// what nobody reads is still read by the server, before it sends the answer. The next request of the connection gets its
// own time, and a request that goes to an origin the times of its site.
func BoundBody(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength != 0 {
		// Recorders have no deadlines; every connection has.
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTimeout))
	}
}
