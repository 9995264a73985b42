// Package svcorigin carries requests to the origins of a site and answers back.
//
// It has its own HTTP/1.1 client on pooled connections. The goroutine of the request writes the request and reads the
// answer itself, which saves the two switches of goroutines per request of net/http's client, and headers are parsed
// straight into the client's answer. What is shared between requests is process-global: idle connections (Transports)
// and passive health (State); a site costs no more than its compiled Pool.
package svcorigin

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Codes that Request.Fail is called with.
const (
	codeNoOrigin    = "no-origin"
	codeUnreachable = "origin-unreachable"
	codeTimeout     = "origin-timeout"
	codeTooLarge    = "body-too-large"
	codeBadRequest  = "bad-request"
	codeWebSocket   = "websocket-disabled"
)

// exchange is one request on its way. It is pooled: an exchange of a finished request is another request's.
type exchange struct {
	pool *Pool
	in   Request
	w    http.ResponseWriter
	r    *http.Request
	ctx  context.Context
	body body
	head []byte
	list []int32
	ws   bool
}

var exchanges = sync.Pool{New: func() any { return &exchange{head: make([]byte, 0, 2<<10)} }}

// ServeHTTP answers r with what an origin of the pool answers. The origin gets the target of r.RequestURI, not of r.URL,
// so that nothing is lost in decoding. When no origin can answer, in.Fail answers. An answer that breaks
// off in its middle, and a client that is gone, end in panic(http.ErrAbortHandler), so that the client never takes a
// part for the whole; the caller must let it pass.
func (p *Pool) ServeHTTP(w http.ResponseWriter, r *http.Request, in Request) {
	if len(p.origins) == 0 {
		in.Fail(w, r, http.StatusBadGateway, codeNoOrigin)
		return
	}
	ws := wantsWebSocket(r)
	if ws && !p.websocket {
		in.Fail(w, r, http.StatusForbidden, codeWebSocket)
		return
	}
	dropNamed(r.Header)
	x := exchanges.Get().(*exchange)
	x.pool, x.in, x.w, x.r, x.ctx, x.ws = p, in, w, r, r.Context(), ws
	x.serve()
	// Not deferred: after a panic the exchange is garbage.
	head, list := x.head, x.list
	if cap(head) > largeBuffer {
		head = nil
	}
	*x = exchange{head: head[:0], list: list[:0]}
	exchanges.Put(x)
}

func (x *exchange) serve() {
	p := x.pool
	if err := p.prepareBody(&x.body, x.w, x.r, x.in.BodyLimit); err != nil {
		x.failBody(err)
		return
	}
	key := ""
	if len(p.origins) > 1 {
		key = rawTarget(x.r)
	}
	x.list = p.candidates(slices.Grow(x.list, len(p.origins)), key)
	tries := 0
	var last error
	for i, index := range x.list {
		o := &p.origins[index]
		c, a, err := x.attempt(o)
		if err == nil {
			bad := a.status == http.StatusBadGateway || a.status == http.StatusServiceUnavailable || a.status == http.StatusGatewayTimeout
			if bad {
				p.failed(o, failStatus)
			} else {
				p.state.succeed(o.health)
			}
			if tries++; bad && p.status && tries < p.tries && i+1 < len(x.list) && x.repeatable() {
				last = fail(failStatus, nil)
				x.discard(o, c, a)
				continue
			}
			x.outcome(a.status)
			x.finish(o, c, a)
			return
		}
		var sent *sentError
		wasSent := errors.As(err, &sent)
		if wasSent && sent.client != nil {
			x.failBody(sent.client)
			return
		}
		if wasSent && sent.gone || !wasSent && x.ctx.Err() != nil {
			panic(http.ErrAbortHandler)
		}
		class := classOf(err)
		p.failed(o, class)
		if class == failDNS || class == failForbidden {
			// What cannot even be tried does not use up a try.
			if last == nil {
				last = err
			}
			continue
		}
		last = err
		if tries++; tries >= p.tries {
			break
		}
		if wasSent && !x.repeatable() {
			break
		}
	}
	x.failOrigin(last)
}

// discard gives up an answer in favour of another try.
func (x *exchange) discard(o *origin, c *conn, a *response) {
	whole := !a.chunked && a.length >= 0 && a.length <= int64(c.w-c.r)
	if whole {
		c.r += int(a.length)
	}
	x.release(c, a, o, whole)
	a.release()
}

// finish sends an answer to the client.
func (x *exchange) finish(o *origin, c *conn, a *response) {
	if x.ws && a.status == http.StatusSwitchingProtocols {
		x.tunnel(c, a)
		return
	}
	over := false
	defer func() {
		if !over {
			// The writer panicked. Nothing may go on after the request.
			x.release(c, a, o, false)
		}
	}()
	h := x.w.Header()
	a.copyHeader(h)
	if x.in.Response != nil {
		x.in.Response(a.status, h)
	}
	x.w.WriteHeader(a.status)
	flush := flusher{w: x.w}
	err := c.deliver(x.w, a, &flush)
	if err == nil && c.upload != nil {
		select {
		case <-c.upload.done:
		default:
			// The client must see the answer although it is still sending.
			flush.now()
		}
	}
	over = true
	x.release(c, a, o, err == nil)
	a.release()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
}

// release ends the use of a connection; it is kept for others when everything on it is over.
func (x *exchange) release(c *conn, a *response, o *origin, complete bool) {
	if u := c.upload; u != nil {
		_ = u.stop(c, uploadGrace)
		complete = complete && u.err == nil
		c.upload = nil
	}
	alive := c.unwatch()
	p := x.pool
	if alive && complete && !a.close && !x.ws && p.keepalive && c.r == c.w && c.uses+1 < p.maxUses {
		if x.slowWrite() {
			// The next request may not set one.
			_ = c.SetWriteDeadline(time.Time{})
		}
		x.in.Transports.put(c, o, p.idle)
		return
	}
	c.Close()
}

func (p *Pool) failed(o *origin, class failure) {
	p.state.fail(o.health, class, p.maxFails, p.recovery)
}

func (x *exchange) outcome(status int) {
	if x.in.Outcome != nil {
		x.in.Outcome.OriginAnswered(status)
	}
}

func (x *exchange) failOrigin(err error) {
	x.outcome(0)
	switch classOf(err) {
	case failDNS, failForbidden:
		x.in.Fail(x.w, x.r, http.StatusBadGateway, codeNoOrigin)
	case failTimeout:
		x.in.Fail(x.w, x.r, http.StatusGatewayTimeout, codeTimeout)
	default:
		x.in.Fail(x.w, x.r, http.StatusBadGateway, codeUnreachable)
	}
}

// lastAnswer makes the client's connection end after the answer, because a part of the request's body is left on it.
func (x *exchange) lastAnswer() {
	if x.r.ProtoMajor == 1 {
		x.w.Header().Set("Connection", "close")
	}
}

// failBody answers for a body that is too large or broke off.
func (x *exchange) failBody(err error) {
	var tooLarge *http.MaxBytesError
	switch {
	case errors.Is(err, errBodyTooLarge) || errors.As(err, &tooLarge):
		x.lastAnswer()
		x.in.Fail(x.w, x.r, http.StatusRequestEntityTooLarge, codeTooLarge)
	case isTimeout(err):
		x.lastAnswer()
		x.in.Fail(x.w, x.r, http.StatusRequestTimeout, codeBadRequest)
	case errors.Is(err, io.ErrUnexpectedEOF) || x.ctx.Err() != nil:
		panic(http.ErrAbortHandler)
	default:
		x.lastAnswer()
		x.in.Fail(x.w, x.r, http.StatusBadRequest, codeBadRequest)
	}
}
