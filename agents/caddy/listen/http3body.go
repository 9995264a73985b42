package listen

import (
	"bytes"
	"io"
	"net/http"
	"time"
)

// bodyTime is how long the end of a request's stream, or the beginning of its body, may take to follow its head.
const bodyTime = 10 * time.Second

// settled has a handler answer requests of which it is known whether they have a body.
func settled(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !settleBody(w, r) {
			panic(http.ErrAbortHandler)
		}
		next.ServeHTTP(w, r)
	})
}

// settleBody finds out whether a request without a length has a body. HTTP/3 tells it with the end of the stream, which
// comes after the head, mostly in the same packet; without this every GET would go to its origin as one with a body. Methods
// that usually have one keep it: those who stream or tunnel may wait for the answer first. It reports false where neither comes.
func settleBody(w http.ResponseWriter, r *http.Request) bool {
	if r.ContentLength >= 0 || r.Body == nil {
		return true
	}
	switch r.Method {
	case http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodConnect:
		return true
	}
	control := http.NewResponseController(w)
	// A stream that is gone says so with the read.
	_ = control.SetReadDeadline(time.Now().Add(bodyTime))
	first := make([]byte, 1)
	n, err := io.ReadFull(r.Body, first)
	_ = control.SetReadDeadline(time.Time{})
	switch {
	case n == 1:
		r.Body = &begunBody{io.MultiReader(bytes.NewReader(first), r.Body), r.Body}
	case err == io.EOF:
		r.Body, r.ContentLength = http.NoBody, 0
	default:
		return false
	}
	return true
}

// begunBody is a body whose first byte was read already.
type begunBody struct {
	io.Reader
	io.Closer
}
