package origin

import (
	"errors"
	"net/http"
	"net/netip"
	"time"
)

// sentError is a failure after at least a part of the request may have reached the origin.
type sentError struct {
	cause error
	// Set when the body could not be read from the client.
	client error
	// The client was gone before the failure.
	gone bool
	// The origin closed a kept connection without a response, as it may at any time: nothing is wrong with it.
	closing bool
}

// Error is for logs.
func (e *sentError) Error() string { return e.cause.Error() }

// Unwrap gives the cause.
func (e *sentError) Unwrap() error { return e.cause }

// once says that an origin may see the request at most once.
func (t *fetch) once() bool {
	switch t.out.MethodOf(t.in) {
	case http.MethodPost, http.MethodPatch, "LOCK":
		return true
	}
	return t.stream
}

// repeatable says whether the request may be sent once more after an origin may have seen it.
func (t *fetch) repeatable() bool {
	switch t.out.MethodOf(t.in) {
	case http.MethodPost, http.MethodPatch, "LOCK":
		return false
	}
	return !t.uploaded && (t.body == nil || t.body.Rewind())
}

// attempt sends the request to one origin and reads the header of the answer. An idle connection that turns out to be
// closed is not the origin's failure: the request goes out again on a new one, if it may.
func (t *fetch) attempt(o *origin, now time.Time) (*conn, *response, error) {
	for again := t.patience > 0; ; again = true {
		places, err := t.Transports.capacity.enter(t.ctx, o, t.patience)
		if err != nil {
			return nil, nil, err
		}
		t.entered = places
		if again {
			now = time.Now()
		}
		c := t.Transports.take(o, t.once(), now)
		reused := c != nil
		t.tried(o, reused)
		if !reused {
			if c, err = t.Transports.dial(t.ctx, o, t.times.connect, t.outcome); err != nil {
				t.leave()
				return nil, nil, err
			}
			now = time.Now()
		}
		c.capacity, c.places, t.entered = &t.Transports.capacity, places, nil
		t.outcome.Address = netip.AddrPortFrom(c.addr, o.dial.port)
		t.asking = c
		a, err := t.exchangeOn(c, o, now)
		if err == nil {
			return c, a, nil
		}
		t.asking = nil
		received := c.received
		t.outcome.Bytes = received
		c.Close()
		if !reused || received > 0 || isTimeout(err) || t.ctx.Err() != nil {
			return nil, nil, err
		}
		var sent *sentError
		if errors.As(err, &sent) && !t.repeatable() {
			sent.closing = sent.client == nil
			return nil, nil, err
		}
	}
}

// tried notes that an origin is asked.
func (t *fetch) tried(o *origin, reused bool) {
	at := t.outcome
	at.Attempts++
	at.Origin, at.Reused = o.health.origin, reused
	at.Address, at.Connect, at.TLS, at.FirstByte, at.Bytes = netip.AddrPort{}, 0, 0, 0, 0
}

// exchangeOn writes the request and reads the header of the answer. After an error no upload is running and the
// connection is only fit to be closed.
func (t *fetch) exchangeOn(c *conn, o *origin, now time.Time) (*response, error) {
	c.readTimeout, c.received = t.times.read, 0
	t.head = t.appendHead(t.head[:0], o)
	t.head = append(t.head, t.small...)
	c.ctx = t.ctx
	if t.slowWrite() {
		c.watch()
		_ = c.SetWriteDeadline(now.Add(t.times.send))
	} else {
		c.asked = now
	}
	var n int
	var err error
	if c.stop == nil && c.takesTurns() {
		n, err = c.takeTurn(t.head, now)
	} else {
		n, err = c.Write(t.head)
	}
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
	if t.stream && !broken {
		u = t.startUpload(c)
	}
	a, err := c.readResponse(t.out.MethodOf(t.in), t.in.Upgrade, t)
	if err != nil {
		// Stopping the upload may look to the server like the client's end, so this is asked before.
		sent := &sentError{cause: err, gone: !c.unwatch()}
		if u != nil {
			sent.client = u.stop(c, 0)
			c.upload = nil
			t.closeAfter()
		}
		return nil, sent
	}
	t.answered = time.Now()
	t.outcome.FirstByte = t.answered.Sub(now)
	a.close = a.close || broken
	return a, nil
}

// slowWrite says whether writing the request may have to wait; a short one always finds room in the socket's buffer.
func (t *fetch) slowWrite() bool { return len(t.head) > smallBuffer || t.stream || t.in.Upgrade }
