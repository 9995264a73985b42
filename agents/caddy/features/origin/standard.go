package origin

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"edge.svc/caddy/exchange"
)

// Standard is net/http's client behind the same Fetcher, for origins that are spoken to over HTTP/2. A connection carries
// many requests. It is dialled under the own client's address policy and shared by equal dial keys, as its are.
type Standard struct {
	transports *Transports
	client     *http.Transport

	mu   sync.Mutex
	open map[dialKey][]*sharedConn
}

// sharedConn is a connection to an origin, and whom it reached.
type sharedConn struct {
	*http.ClientConn
	addr   netip.Addr
	policy *AddressPolicy
	// One too many to be kept: it ends with its request.
	alone bool
}

// Connections to one origin at most; each carries as many requests as the origin allows.
const maxShared = 64

// NewStandard makes a client without connections.
func NewStandard(transports *Transports) *Standard {
	s := &Standard{transports: transports, open: map[dialKey][]*sharedConn{}}
	protocols := new(http.Protocols)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	s.client = &http.Transport{
		Protocols: protocols, DisableCompression: true, DialContext: s.dial, DialTLSContext: s.dial,
		// A peer that is gone without a word is found out before its requests time out.
		HTTP2: &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 15 * time.Second},
	}
	return s
}

// CloseIdle closes all connections that carry no request.
func (s *Standard) CloseIdle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, list := range s.open {
		s.open[key] = slices.DeleteFunc(list, func(c *sharedConn) bool { return c.InFlight() == 0 && c.Close() == nil })
		if len(s.open[key]) == 0 {
			delete(s.open, key)
		}
	}
}

// dialling is what a dial is for. It travels in the context, because net/http only hands on an address.
type dialling struct {
	origin *origin
	limit  time.Duration
	// Set by the dial.
	reached *conn
	outcome exchange.OriginOutcome
}

type diallingKey struct{}

func (s *Standard) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	to := ctx.Value(diallingKey{}).(*dialling)
	c, err := s.transports.dialFor(ctx, to.origin, to.limit, "h2", &to.outcome)
	if err != nil {
		return nil, err
	}
	if secure, ok := c.Conn.(*tls.Conn); ok && secure.ConnectionState().NegotiatedProtocol != "h2" {
		c.Close()
		return nil, fail(failTLS, errors.New("the origin does not speak HTTP/2"))
	}
	to.reached = c
	return c.Conn, nil
}

// take returns a connection with room for one more request, which is reserved.
func (s *Standard) take(ctx context.Context, o *origin, limit time.Duration, outcome *exchange.OriginOutcome) (*sharedConn, error) {
	if c := s.reuse(o); c != nil {
		outcome.Reused = true
		return c, nil
	}
	scheme := "http"
	if o.dial.tls != plain {
		scheme = "https"
	}
	address := net.JoinHostPort(o.dial.host.Value(), fmt.Sprint(o.dial.port))
	// The request may be over before the dial is.
	dialled := *o
	to := &dialling{origin: &dialled, limit: limit}
	made, err := s.client.NewClientConn(context.WithValue(ctx, diallingKey{}, to), scheme, address)
	if err == nil {
		err = made.Reserve()
	}
	if err != nil {
		return nil, err
	}
	c := &sharedConn{ClientConn: made, addr: to.reached.addr, policy: to.reached.policy}
	outcome.Connect, outcome.TLS = to.outcome.Connect, to.outcome.TLS
	s.mu.Lock()
	defer s.mu.Unlock()
	if list := s.open[o.dial]; len(list) < maxShared {
		s.open[o.dial] = append(list, c)
	} else {
		c.alone = true
	}
	return c, nil
}

// reuse returns a connection that is open already, nil when there is none. Those that are over are forgotten, and those to
// addresses that the policy refuses by now end with the requests they carry.
func (s *Standard) reuse(o *origin) *sharedConn {
	policy := s.transports.policy()
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := s.open[o.dial][:0]
	var found *sharedConn
	for _, c := range s.open[o.dial] {
		if c.policy != policy && !policy.Allows(c.addr) {
			c.alone = true
			if c.InFlight() == 0 {
				_ = c.Close()
			}
			continue
		}
		c.policy = policy
		if c.Err() != nil {
			continue
		}
		kept = append(kept, c)
		if found == nil && c.Reserve() == nil {
			found = c
		}
	}
	clear(s.open[o.dial][len(kept):])
	if len(kept) == 0 {
		delete(s.open, o.dial)
	} else {
		s.open[o.dial] = kept
	}
	return found
}

// done ends a connection that is not kept, with its last request.
func (s *Standard) done(c *sharedConn) {
	s.mu.Lock()
	ends := c.alone && c.InFlight() == 0
	s.mu.Unlock()
	if ends {
		_ = c.Close()
	}
}

// standardHead is an answer that came over net/http's client.
type standardHead struct {
	fetch    *fetch
	origin   string
	port     uint16
	conn     *sharedConn
	trailers *http.Header
	response *http.Response
	upload   *sharedBody
	cancel   context.CancelCauseFunc
	// Ends the exchange when the origin is silent for too long.
	silence *time.Timer
}

var errSilence = fail(failTimeout, errors.New("the origin sent nothing for too long"))

// ask sends the request to an origin. Errors are those of attempt.
func (s *Standard) ask(t *fetch, o *origin) (head, error) {
	t.tried(o, false)
	c, err := s.take(t.ctx, o, t.times.connect, t.outcome)
	if err != nil {
		return nil, err
	}
	begun := time.Now()
	t.outcome.Address = netip.AddrPortFrom(c.addr, o.dial.port)
	ctx, cancel := context.WithCancelCause(t.ctx)
	request, upload, err := t.standardRequest(ctx, o)
	if err != nil {
		c.Release()
		cancel(nil)
		s.done(c)
		return nil, err
	}
	silence := time.AfterFunc(t.times.read, func() {
		// While a request body is under way the origin may stay silent.
		if upload == nil || upload.over() {
			cancel(errSilence)
		}
	})
	if upload != nil {
		upload.ended = func() { silence.Reset(t.times.read) }
	}
	if upload != nil {
		t.uploaded, t.shared = true, upload
	}
	response, err := c.RoundTrip(request)
	if err != nil {
		silence.Stop()
		sent := &sentError{cause: err, gone: t.ctx.Err() != nil}
		if cause := context.Cause(ctx); cause == errSilence {
			sent.cause = errSilence
		}
		if upload != nil {
			sent.client = upload.seal()
			t.closeAfter()
		}
		cancel(nil)
		s.done(c)
		return nil, sent
	}
	t.outcome.FirstByte = time.Since(begun)
	return &standardHead{fetch: t, origin: o.health.origin, port: o.dial.port, conn: c, response: response, upload: upload, cancel: cancel, silence: silence}, nil
}

// standardRequest is the request as the own client would send it, for net/http.
func (t *fetch) standardRequest(ctx context.Context, o *origin) (*http.Request, *sharedBody, error) {
	t.head = t.appendHead(t.head[:0], o)
	request, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(t.head)))
	if err != nil {
		return nil, nil, fail(failConnect, err)
	}
	request = request.WithContext(ctx)
	request.RequestURI, request.URL.Scheme, request.URL.Host = "", "http", request.Host
	if o.dial.tls != plain {
		request.URL.Scheme = "https"
	}
	if raw, _, _ := strings.Cut(t.out.TargetOf(t.in).Raw, "?"); !strings.HasPrefix(raw, "//") {
		// As it was asked, in whatever spelling.
		request.URL.Opaque = string(appendTarget(nil, raw))
	}
	for _, ofHop := range []string{"Connection", "Content-Length"} {
		delete(request.Header, ofHop)
	}
	request.Body, request.ContentLength, request.TransferEncoding = nil, t.length, nil
	switch {
	case t.stream:
		t.body.Stream()
		upload := &sharedBody{body: t.body, trailer: http.Header{}}
		for name := range t.in.Trailer {
			if trailerPasses(name) {
				upload.trailer[name] = nil
			}
		}
		request.Body, request.Trailer = upload, upload.trailer
		return request, upload, nil
	case len(t.small) > 0:
		request.Body = io.NopCloser(bytes.NewReader(t.small))
	}
	return request, nil, nil
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

// CopyTo sends the body on as it comes. What net/http holds cannot be seen, so every piece but the last is sent at once.
func (h *standardHead) CopyTo(sink exchange.Sink) error {
	buffer := largeBuffers.Get().(*[largeBuffer]byte)
	defer func() {
		// An HTTP/2 server may still be writing what a failed write was given.
		if buffer != nil {
			largeBuffers.Put(buffer)
		}
	}()
	left := h.response.ContentLength
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
	if h.upload != nil {
		_ = h.upload.seal()
	}
	_ = h.response.Body.Close()
	h.cancel(nil)
	h.fetch.Standard.done(h.conn)
}

// sharedBody is the body of a request in the hands of net/http, which may read it after its answer, until seal.
type sharedBody struct {
	body *exchange.Body
	// Fields after the body, by the names that were announced.
	trailer http.Header
	// Called once everything was read.
	ended func()

	mu     sync.Mutex
	sealed bool
	err    error
}

// Read reads from the client.
func (b *sharedBody) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.sealed {
		return 0, exchange.ErrBodyStopped
	}
	if b.err != nil {
		return 0, b.err
	}
	n, err := b.body.Read(p)
	if err == io.EOF {
		for name := range b.trailer {
			b.trailer[name] = b.body.Trailer[name]
		}
	}
	if b.err = err; err != nil && b.ended != nil {
		b.ended()
	}
	return n, err
}

// Close is for net/http; the body is the exchange's.
func (b *sharedBody) Close() error { return nil }

func (b *sharedBody) over() bool {
	if !b.mu.TryLock() {
		// Somebody reads.
		return false
	}
	defer b.mu.Unlock()
	return b.err != nil || b.sealed
}

// seal ends reading for good and returns the client's failure to send the body, if there was one.
func (b *sharedBody) seal() error {
	if !b.over() {
		b.body.Stop()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sealed = true
	if b.err == io.EOF || b.err == exchange.ErrBodyStopped {
		return nil
	}
	return b.err
}
