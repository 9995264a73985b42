package svcorigin

import (
	"errors"
	"net/http"
	"time"
)

// sentError is a failure after at least a part of the request may have reached the origin.
type sentError struct {
	cause error
	// Set when the body could not be read from the client.
	client error
	// The client was gone before the failure.
	gone bool
}

// Error is for logs.
func (e *sentError) Error() string { return e.cause.Error() }

// Unwrap gives the cause.
func (e *sentError) Unwrap() error { return e.cause }

// repeatable says whether the request may be sent once more after an origin may have seen it.
func (x *exchange) repeatable() bool {
	switch x.r.Method {
	case http.MethodPost, http.MethodPatch, "LOCK":
		return false
	}
	return !x.body.used
}

// attempt sends the request to one origin and reads the header of the answer. An idle connection that turns out to be
// closed is not the origin's failure: the request goes out again on a new one, if it may.
func (x *exchange) attempt(o *origin) (*conn, *response, error) {
	for {
		c := x.in.Transports.take(o)
		reused := c != nil
		if !reused {
			var err error
			if c, err = x.in.Transports.dial(x.ctx, o, x.pool.connect); err != nil {
				return nil, nil, err
			}
		}
		a, err := x.exchangeOn(c, o)
		if err == nil {
			return c, a, nil
		}
		received := c.received
		c.Close()
		if !reused || received > 0 || isTimeout(err) || x.ctx.Err() != nil {
			return nil, nil, err
		}
		var sent *sentError
		if errors.As(err, &sent) && !x.repeatable() {
			return nil, nil, err
		}
	}
}

// exchangeOn writes the request and reads the header of the answer. After an error no upload is running and the
// connection is only fit to be closed.
func (x *exchange) exchangeOn(c *conn, o *origin) (*response, error) {
	b := &x.body
	c.readTimeout, c.received = x.pool.read, 0
	x.head = x.in.head(x.head[:0], x.r, x.pool, o, b.length, x.ws)
	x.head = append(x.head, b.small...)
	c.ctx = x.ctx
	if x.slowWrite() {
		c.watch()
		_ = c.SetWriteDeadline(time.Now().Add(x.pool.send))
	}
	n, err := c.Write(x.head)
	if err != nil && (n == 0 || isTimeout(err)) {
		gone := !c.unwatch()
		if n == 0 {
			return nil, err
		}
		return nil, &sentError{cause: err, gone: gone}
	}
	// An origin that stopped reading may have answered before.
	broken := err != nil
	var u *upload
	if b.stream != nil && !broken {
		// With the first read the server may tell the client to go on, long after the request began.
		if w, ok := x.w.(interface{ BoundWrites() }); ok {
			w.BoundWrites()
		}
		u = startUpload(c, b)
	}
	a, err := c.readResponse(x.r.Method, x.ws)
	if err != nil {
		// Stopping the upload may look to the server like the client's end, so this is asked before.
		sent := &sentError{cause: err, gone: !c.unwatch()}
		if u != nil {
			sent.client = u.stop(c, 0)
			c.upload = nil
			x.lastAnswer()
		}
		return nil, sent
	}
	a.close = a.close || broken
	return a, nil
}

// slowWrite says whether writing the request may have to wait; a short one always finds room in the socket's buffer.
func (x *exchange) slowWrite() bool { return len(x.head) > smallBuffer || x.body.stream != nil || x.ws }
