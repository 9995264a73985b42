package origin

import (
	"errors"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"edge.svc/caddy/exchange"
	"edge.svc/caddy/features/origin/h2"
)

// Shared is a client of HTTP/2 behind the same Fetcher. A connection carries many requests. It is dialled under the own
// client's address policy and shared by equal dial keys, as its are.
type Shared struct {
	transports *Transports

	mu       sync.Mutex
	open     map[dialKey][]*sharedConn
	dials    map[dialKey]*dialled
	sweeping bool
}

// NewShared makes a client without connections.
func NewShared(transports *Transports) *Shared {
	return &Shared{transports: transports, open: map[dialKey][]*sharedConn{}, dials: map[dialKey]*dialled{}}
}

// sharedHead is an answer that came over HTTP/2.
type sharedHead struct {
	fetch    *fetch
	origin   string
	port     uint16
	conn     *sharedConn
	places   *places
	trailers *http.Header
	header   *h2.Header
	stream   *h2.Stream
	// The place was given back: nothing is left to come.
	released bool
}

var errSilence = fail(failTimeout, h2.ErrSilent)

// ask sends the request to an origin. Errors are those of attempt. A request that the origin gave back unprocessed goes out
// again on another connection, and so does one whose connection turns out to be closed, if it may.
func (s *Shared) ask(t *fetch, o *origin) (head, error) {
	for again := 0; ; again++ {
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
		case again == maxAgain:
			return nil, err
		case !errors.As(err, &sent):
		case sent.gone || sent.client != nil || !t.outcome.Reused || classOf(err) == failTimeout || h2.OfStream(err):
			return nil, err
		case !t.repeatable():
			sent.closing = true
			return nil, err
		}
	}
}

// roundTrip sends the request over a connection. Errors are *sentError where the origin may have seen the request.
func (s *Shared) roundTrip(t *fetch, o *origin, c *sharedConn) (*sharedHead, error) {
	begun := time.Now()
	stream, rest, err := c.Open(t.sharedRequest(o))
	if err != nil {
		s.done(c, t.Pool.idle)
		return nil, err
	}
	if t.stream || len(rest) > 0 {
		t.sendBeside(stream, rest)
	}
	header, err := t.sharedHeader(stream)
	if err == nil {
		if t.shared != nil {
			t.shared.settle()
			t.uploaded = true
		}
		t.outcome.FirstByte = time.Since(begun)
		return &sharedHead{fetch: t, origin: o.health.origin, port: o.dial.port, conn: c, header: header, stream: stream}, nil
	}
	gone := t.ctx.Err() != nil
	stream.Close()
	s.done(c, t.Pool.idle)
	if !gone && errors.Is(err, h2.ErrUnprocessed) && (t.shared == nil || !t.shared.settled.Load()) {
		return nil, err
	}
	sent := &sentError{cause: err, gone: gone}
	if t.shared != nil {
		t.uploaded = true
		sent.client = t.shared.seal()
		t.closeAfter()
	}
	return nil, sent
}

// sharedHeader waits for the header of the response, and passes informational ones on.
func (t *fetch) sharedHeader(stream *h2.Stream) (*h2.Header, error) {
	for {
		header, err := stream.Header(t.ctx, t.times.read)
		switch {
		case err == h2.ErrSilent:
			return nil, errSilence
		case err != nil || header.Status >= 200:
			return header, err
		}
		a := responses.Get().(*response)
		a.status = header.Status
		a.takeFields(header)
		t.takeInterim(a)
		a.release()
	}
}

// takeFields takes the fields of a response over HTTP/2.
func (a *response) takeFields(header *h2.Header) {
	length := ""
	for _, f := range header.Fields {
		switch f.Name {
		case "content-length":
			length = f.Value
		case "trailer":
			a.trailer = append(a.trailer, f.Value)
		default:
			a.fields = append(a.fields, field{canonicalName(f.Name), f.Value})
		}
	}
	// Over HTTP/1 there is nothing after a body of known length.
	a.chunked = len(a.trailer) > 0
	if length != "" && !a.chunked && header.Status >= 200 && header.Status != http.StatusNoContent {
		a.fields = append(a.fields, field{"Content-Length", length})
	}
}

func (h *sharedHead) status() int { return h.header.Status }

func (h *sharedHead) discard() { h.end() }

func (h *sharedHead) from(outcome *exchange.OriginOutcome) {
	outcome.Origin, outcome.Address = h.origin, netip.AddrPortFrom(h.conn.addr, h.port)
}

func (h *sharedHead) take(header http.Header, trailer *http.Header) {
	h.trailers = trailer
	a := responses.Get().(*response)
	defer a.release()
	a.takeFields(h.header)
	h.fetch.clientHeader(a, header)
	if h.stream.Ended() && h.fetch.shared == nil {
		// A slow client holds no place at the origin.
		h.release()
	}
}

// CopyTo sends the body on as it comes.
func (h *sharedHead) CopyTo(sink exchange.Sink) error {
	err := h.copy(sink)
	h.fetch.cutShort(err)
	return err
}

// copy sends the body on. Every piece but the last is sent at once, and the header where the length is unknown.
func (h *sharedHead) copy(sink exchange.Sink) error {
	if h.header.Length < 0 && (!h.stream.Ended() || len(h.stream.Trailers()) > 0) {
		if err := sink.Flush(); err != nil {
			return clientError{err}
		}
	}
	for left := h.header.Length; ; {
		p, last, err := h.stream.Read(h.fetch.ctx, h.fetch.times.read)
		h.fetch.outcome.Bytes += int64(len(p))
		switch {
		case len(p) > 0:
			if err := sink.Write(p); err != nil {
				// An HTTP/2 server may still be writing what a failed write was given.
				h.stream.Keep()
				return clientError{err}
			}
			if left -= int64(len(p)); last || left == 0 {
				continue
			}
			if err := sink.Flush(); err != nil {
				h.stream.Keep()
				return clientError{err}
			}
		case last:
			h.trailer()
			return nil
		case err == h2.ErrSilent:
			return errSilence
		default:
			return err
		}
	}
}

func (h *sharedHead) trailer() {
	for _, f := range h.stream.Trailers() {
		name := canonicalName(f.Name)
		if !trailerAllowed(name) {
			continue
		}
		if *h.trailers == nil {
			*h.trailers = http.Header{}
		}
		(*h.trailers)[name] = append((*h.trailers)[name], f.Value)
	}
}

// Close gives up what is left of the answer. Nothing may go on after the request.
func (h *sharedHead) Close() {
	h.fetch.outcome.Total = time.Since(h.fetch.begun)
	h.end()
	h.fetch.free()
}

func (h *sharedHead) end() {
	if h.fetch.shared != nil {
		_ = h.fetch.shared.seal()
	}
	h.stream.Close()
	h.release()
}

// release ends the use of the connection.
func (h *sharedHead) release() {
	if h.released {
		return
	}
	h.released = true
	s := h.fetch.Shared
	s.done(h.conn, h.fetch.Pool.idle)
	s.transports.capacity.leave(h.places)
}
