package cache

import (
	"errors"
	"maps"
	"net/http"
	"strconv"
	"time"

	"edge.svc/caddy/exchange"
	"edge.svc/caddy/features/cache/freshness"
	"edge.svc/caddy/features/cache/store"
)

// begin begins a response with a copy of a header.
func (l *lookup) begin(status int, header http.Header, from exchange.From) *exchange.Answer {
	a := l.x.RespondFrom(from, status)
	maps.Copy(a.Header, header)
	return a
}

// selected is what a client gets of a complete representation.
type selected struct {
	status int
	part   freshness.Range
	none   bool
}

// selectPart evaluates conditions and ranges (RFC 9110 section 13.2.2). length is -1 for unknown.
func (l *lookup) selectPart(status int, header http.Header, length int64, received time.Time) selected {
	in := &l.x.In
	whole := selected{status, freshness.Range{From: 0, Length: length}, in.Method == http.MethodHead}
	if status != http.StatusOK {
		return whole
	}
	if freshness.NotModified(in.Header, header, received) {
		return selected{status: http.StatusNotModified, none: true}
	}
	if length < 0 || whole.none {
		return whole
	}
	part, result := freshness.RangeOf(in.Header, header, length, received)
	switch result {
	case freshness.Partial:
		return selected{http.StatusPartialContent, part, false}
	case freshness.Unsatisfiable:
		return selected{status: http.StatusRequestedRangeNotSatisfiable, none: true}
	}
	return whole
}

// frame sets the fields that depend on the part. length is that of the whole representation, -1 for unknown.
func (s *selected) frame(h http.Header, length int64) {
	switch s.status {
	case http.StatusNotModified:
		// RFC 9110 section 15.4.5.
		for _, name := range [...]string{"Content-Type", "Content-Length", "Content-Encoding", "Content-Language", "Content-Range", "Last-Modified"} {
			if name != "Last-Modified" || len(h["Etag"]) > 0 {
				delete(h, name)
			}
		}
	case http.StatusPartialContent:
		h["Content-Range"] = []string{string(s.part.AppendContentRange(nil, length))}
		h["Content-Length"] = []string{strconv.FormatInt(s.part.Length, 10)}
	case http.StatusRequestedRangeNotSatisfiable:
		h["Content-Range"] = []string{"bytes */" + strconv.FormatInt(length, 10)}
		h["Content-Length"] = []string{"0"}
		delete(h, "Content-Type")
	default:
		if length >= 0 && s.status != http.StatusNoContent {
			h["Content-Length"] = []string{strconv.FormatInt(length, 10)}
		}
	}
}

// serve responds with a stored response. done is false where its file turns out not to be there.
func (l *lookup) serve(o *store.Object, word Word) (a *exchange.Answer, done bool) {
	if o.Total > 0 {
		return l.serveFirst(o, word)
	}
	s := l.selectPart(o.Status, o.Header, o.Length, o.Received)
	var body *store.Body
	if !s.none && s.part.Length > 0 {
		var err error
		if body, err = o.Open(s.part.From); err != nil {
			return nil, false
		}
	}
	a = l.begin(s.status, o.Header, exchange.FromCache)
	s.frame(a.Header, o.Length)
	if body != nil {
		a.Body = &storedBody{body, s.part}
	}
	l.describe(a, o, word)
	return a, true
}

// serveFirst responds with a response in slices whose first one is stored.
func (l *lookup) serveFirst(o *store.Object, word Word) (a *exchange.Answer, done bool) {
	a, fetched := l.serveSlices(o, nil, o.Header, exchange.FromCache)
	if a == nil {
		return nil, false
	}
	if fetched && word == Hit {
		word, l.stored = Miss, true
	}
	l.describe(a, o, word)
	return a, true
}

// describe says what is stored, and what that was good for.
func (l *lookup) describe(a *exchange.Answer, o *store.Object, word Word) {
	held := heldOf(o.Meta)
	_, age := held.Use(l.cache.now())
	// Cookies are for the one whose request brought them.
	delete(a.Header, "Set-Cookie")
	a.Header["Age"] = []string{strconv.FormatInt(int64(age/time.Second), 10)}
	l.word, l.ttl, l.rule, l.decided = word, held.Lifetime-age.Truncate(time.Second), l.rules.decide(o.Status, sizeOf(o)), o.Flags&flagNoCache == 0
}

// stream responds with a response while it is stored. header is the origin's for the leader, and what is stored of it for
// others. It returns nil where the body cannot be read from its beginning any more.
func (l *lookup) stream(f *fill, header http.Header, leads bool) *exchange.Answer {
	from := exchange.FromCache
	if leads {
		from = exchange.FromOrigin
	}
	if f.meta.Total > 0 {
		a, _ := l.serveSlices(nil, f, header, from)
		if a != nil {
			l.streamed(a, f, leads)
		}
		return a
	}
	length := f.growing.expected
	s := l.selectPart(f.response.Status, header, length, f.received)
	var body *reader
	if !s.none {
		// Nothing to read is a body as well: the client waits for its end.
		if body = f.growing.read(s.part.From, s.part.Length); body == nil {
			return nil
		}
	}
	a := l.begin(s.status, header, from)
	s.frame(a.Header, length)
	if body != nil {
		a.Body = body
	}
	l.streamed(a, f, leads)
	return a
}

// streamed describes a response that is stored as it comes.
func (l *lookup) streamed(a *exchange.Answer, f *fill, leads bool) {
	for _, name := range [...]string{"Connection", "Keep-Alive", "Transfer-Encoding", "Trailer"} {
		delete(a.Header, name)
	}
	if !leads {
		delete(a.Header, "Set-Cookie")
		age := freshness.Age(f.meta.InitialAge, f.received, l.cache.now())
		a.Header["Age"] = []string{strconv.FormatInt(int64(age/time.Second), 10)}
	}
	l.ttl = f.meta.Lifetime - freshness.Age(f.meta.InitialAge, f.received, l.cache.now()).Truncate(time.Second)
}

// pass responds to the client that a fill was begun for with a response that is not stored. The origin was asked for the
// whole of it, whatever the client wants.
func (l *lookup) pass(f *fill) *exchange.Answer {
	header := f.response.Header
	length := lengthOf(header)
	s := l.selectPart(f.response.Status, header, length, f.received)
	a := l.begin(s.status, header, exchange.FromOrigin)
	*exchange.Origin.Of(l.x) = f.response.Outcome
	d := &direct{Source: f.response.Body, f: f, x: l.x, a: a}
	switch {
	case s.none:
		d.Close()
		s.frame(a.Header, length)
	case s.status == http.StatusPartialContent && f.response.Status == http.StatusOK:
		s.frame(a.Header, length)
		a.Body = &partly{d, s.part}
	default:
		a.Body = d
	}
	return a
}

// partly is a part of a body that is not stored.
type partly struct {
	direct *direct
	part   freshness.Range
}

func (p *partly) CopyTo(sink exchange.Sink) error {
	c := &cut{sink, p.part.From, p.part.Length}
	err := p.direct.Source.CopyTo(c)
	if c.left == 0 {
		return nil
	}
	return err
}

func (p *partly) Close() { p.direct.Close() }

var errEnough = errors.New("the client has its part")

// cut passes on a part of what is written.
type cut struct {
	exchange.Sink
	skip, left int64
}

func (c *cut) Write(p []byte) error {
	skipped := min(c.skip, int64(len(p)))
	c.skip -= skipped
	p = p[skipped:]
	p = p[:min(c.left, int64(len(p)))]
	if len(p) > 0 {
		if err := c.Sink.Write(p); err != nil {
			return err
		}
	}
	if c.left -= int64(len(p)); c.left == 0 {
		return errEnough
	}
	return nil
}

// storedBody is the body of a stored response, or a part of it.
type storedBody struct {
	body *store.Body
	part freshness.Range
}

func (b *storedBody) CopyTo(sink exchange.Sink) error {
	return b.body.CopyTo(sink, b.part.From, b.part.Length)
}

func (b *storedBody) Close() { b.body.Close() }

// direct is the body of a response that is not stored.
type direct struct {
	exchange.Source
	f *fill
	x *exchange.Exchange
	a *exchange.Answer
}

// CopyTo sends the body, and then the trailers that came behind it.
func (d *direct) CopyTo(sink exchange.Sink) error {
	err := d.Source.CopyTo(sink)
	if err == nil {
		d.a.Trailer = d.f.response.Trailer
	}
	return err
}

// MayMove, Resume and Interrupt let a slow client free the origin, as without a cache.
func (d *direct) MayMove() bool {
	source, ok := d.Source.(exchange.MovableSource)
	return ok && source.MayMove()
}

// Resume copies the rest while CopyTo waits for the client.
func (d *direct) Resume(sink exchange.Sink) error {
	return d.Source.(exchange.MovableSource).Resume(sink)
}

// Interrupt makes Resume fail soon.
func (d *direct) Interrupt() { d.Source.(exchange.MovableSource).Interrupt() }

// Close ends the fetch.
func (d *direct) Close() {
	d.Source.Close()
	*exchange.Origin.Of(d.x) = d.f.response.Outcome
	d.f.cancel()
}
