package origin

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/net/http2"

	"edge.svc/caddy/exchange"
)

// Standard is net/http's client behind the same Fetcher, for origins that are spoken to over HTTP/2. A connection carries
// many requests. It is dialled under the own client's address policy and shared by equal dial keys, as its are.
type Standard struct {
	transports *Transports
	client     *http.Transport

	mu       sync.Mutex
	open     map[dialKey][]*sharedConn
	dials    map[dialKey]*dialled
	sweeping bool
}

// NewStandard makes a client without connections.
func NewStandard(transports *Transports) *Standard {
	s := &Standard{transports: transports, open: map[dialKey][]*sharedConn{}, dials: map[dialKey]*dialled{}}
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	s.client = &http.Transport{
		Protocols: protocols, DisableCompression: true, DialContext: s.dial, MaxResponseHeaderBytes: maxHeader,
		HTTP2: &http.HTTP2Config{
			// A peer that is gone without a word is found out before its requests time out.
			SendPingTimeout: 15 * time.Second, PingTimeout: 15 * time.Second,
			MaxReceiveBufferPerStream: sharedStreamBytes, MaxReceiveBufferPerConnection: sharedConnBytes,
		},
	}
	return s
}

// standardHead is an answer that came over net/http's client.
type standardHead struct {
	fetch    *fetch
	origin   string
	port     uint16
	conn     *sharedConn
	places   *places
	trailers *http.Header
	response *http.Response
	cancel   context.CancelCauseFunc
	// Ends the exchange when the origin is silent for too long.
	silence *time.Timer
}

var errSilence = fail(failTimeout, errors.New("the origin sent nothing for too long"))

// ask sends the request to an origin. Errors are those of attempt. A request that the origin gave back unprocessed goes out
// again on another connection, and so does one whose connection turns out to be closed, if it may.
func (s *Standard) ask(t *fetch, o *origin) (head, error) {
	for unprocessed := 0; ; {
		places, err := s.transports.capacity.enter(t.ctx, o, t.patience)
		if err != nil {
			return nil, err
		}
		t.entered = places
		t.tried(o, false)
		t.outcome.Reused = true
		c, err := s.take(t, o)
		if err != nil {
			t.outcome.Reused = false
			t.leave()
			return nil, err
		}
		t.outcome.Address = netip.AddrPortFrom(c.addr, o.dial.port)
		h, err := s.roundTrip(t, o, c)
		if err == nil {
			h.places, t.entered = places, nil
			return h, nil
		}
		t.leave()
		var sent *sentError
		switch {
		case !errors.As(err, &sent):
			if unprocessed++; unprocessed > maxUnprocessed {
				return nil, err
			}
		case sent.gone || sent.client != nil || !t.outcome.Reused || isTimeout(err) || ofStream(err):
			return nil, err
		case !t.repeatable():
			sent.closing = true
			return nil, err
		}
	}
}

// roundTrip sends the request over a connection. Errors are *sentError where the origin may have seen the request.
func (s *Standard) roundTrip(t *fetch, o *origin, c *sharedConn) (*standardHead, error) {
	begun := time.Now()
	ctx, cancel := context.WithCancelCause(t.ctx)
	silence := time.AfterFunc(t.times.read, func() {
		// While a request body is under way the origin may stay silent.
		if t.shared == nil || t.shared.over() {
			cancel(errSilence)
		}
	})
	request := t.standardRequest(ctx, o, func() { silence.Reset(t.times.read) })
	response, err := c.RoundTrip(request)
	if err == nil {
		if t.shared != nil {
			t.shared.settle()
			t.uploaded = true
		}
		t.outcome.FirstByte = time.Since(begun)
		return &standardHead{fetch: t, origin: o.health.origin, port: o.dial.port, conn: c, response: response, cancel: cancel, silence: silence}, nil
	}
	silence.Stop()
	gone, silent := t.ctx.Err() != nil, context.Cause(ctx) == errSilence
	cancel(nil)
	s.done(c, t.Pool.idle)
	if !gone && isUnprocessed(err) && (t.shared == nil || !t.shared.settled.Load()) {
		return nil, err
	}
	sent := &sentError{cause: err, gone: gone}
	if silent {
		sent.cause = errSilence
	}
	if t.shared != nil {
		t.uploaded = true
		sent.client = t.shared.seal()
		t.closeAfter()
	}
	return nil, sent
}

// isUnprocessed reports whether an origin did not process a request, and never will (RFC 9113 §8.7).
func isUnprocessed(err error) bool {
	var stream http2.StreamError
	if errors.As(err, &stream) {
		return stream.Code == http2.ErrCodeRefusedStream
	}
	// net/http has no types for them. They say that GOAWAY left the request out, and that it did not leave.
	text := err.Error()
	return text == "http2: Transport received Server's graceful shutdown GOAWAY" || text == "http2: client conn not usable"
}

// ofStream reports whether the failure is one of the request, not of its connection.
func ofStream(err error) bool {
	var stream http2.StreamError
	return errors.As(err, &stream)
}

func (h *standardHead) status() int { return h.response.StatusCode }

func (h *standardHead) discard() { h.end() }

func (h *standardHead) from(outcome *exchange.OriginOutcome) {
	outcome.Origin, outcome.Address = h.origin, netip.AddrPortFrom(h.conn.addr, h.port)
}

func (h *standardHead) take(header http.Header, trailer *http.Header) {
	h.trailers = trailer
	a := responses.Get().(*response)
	defer a.release()
	a.chunked = len(h.response.Trailer) > 0
	for name, values := range h.response.Header {
		if a.chunked && name == "Content-Length" {
			// Over HTTP/1 there is nothing after a body of known length.
			continue
		}
		for _, value := range values {
			a.fields = append(a.fields, field{name, value})
		}
	}
	for name := range h.response.Trailer {
		a.trailer = append(a.trailer, name)
	}
	h.fetch.clientHeader(a, header)
}

// CopyTo sends the body on as it comes.
func (h *standardHead) CopyTo(sink exchange.Sink) error {
	err := h.copy(sink)
	h.fetch.cutShort(err)
	return err
}

// copy sends the body on. What net/http holds cannot be seen, so every piece but the last is sent at once; where the length
// is unknown, so is the header.
func (h *standardHead) copy(sink exchange.Sink) error {
	buffer := largeBuffers.Get().(*[largeBuffer]byte)
	defer func() {
		// An HTTP/2 server may still be writing what a failed write was given.
		if buffer != nil {
			largeBuffers.Put(buffer)
		}
	}()
	left := h.response.ContentLength
	if left < 0 && h.response.Body != http.NoBody {
		if err := sink.Flush(); err != nil {
			return clientError{err}
		}
	}
	for {
		h.silence.Reset(h.fetch.times.read)
		n, err := h.response.Body.Read(buffer[:])
		h.fetch.outcome.Bytes += int64(n)
		if n > 0 {
			if err := sink.Write(buffer[:n]); err != nil {
				buffer = nil
				return clientError{err}
			}
			left -= int64(n)
		}
		if err == io.EOF {
			h.trailer()
			return nil
		}
		if err != nil {
			return err
		}
		if left != 0 {
			if err := sink.Flush(); err != nil {
				return clientError{err}
			}
		}
	}
}

func (h *standardHead) trailer() {
	for name, values := range h.response.Trailer {
		if trailerAllowed(name) && len(values) > 0 {
			if *h.trailers == nil {
				*h.trailers = http.Header{}
			}
			(*h.trailers)[name] = values
		}
	}
}

// Close gives up what is left of the answer. Nothing may go on after the request.
func (h *standardHead) Close() {
	h.fetch.outcome.Total = time.Since(h.fetch.begun)
	h.end()
	h.fetch.free()
}

func (h *standardHead) end() {
	h.silence.Stop()
	if h.fetch.shared != nil {
		_ = h.fetch.shared.seal()
	}
	_ = h.response.Body.Close()
	h.cancel(nil)
	s := h.fetch.Standard
	s.done(h.conn, h.fetch.Pool.idle)
	s.transports.capacity.leave(h.places)
}
