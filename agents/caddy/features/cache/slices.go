package cache

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"edge.svc/caddy/exchange"
	"edge.svc/caddy/features/cache/freshness"
	"edge.svc/caddy/features/cache/store"
)

// A site with slices asks origins for 1 MiB at a time. The first slice is stored with the header of the whole response, under
// the key of the request; its Total is the length of the whole. The others have keys of their own, with the strong entity tag
// and the length of the whole: what is stored of another version is never found for this one. Without a strong entity tag, or
// without ranges at the origin, the whole response is stored as without slices.

const (
	sliceSize = 1 << 20
	// sliceMark ends the text of a key of a first slice.
	sliceMark = "S"
)

var (
	// errWhole says that the response cannot be stored in slices.
	errWhole = errors.New("the response does not come in slices")
	// errUnstored says that only the first slice came of a response that is not stored.
	errUnstored = errors.New("the response is not stored")
	errPart     = errors.New("a slice of the response does not come")
)

// sizeOf is the length of the whole representation.
func sizeOf(o *store.Object) int64 {
	if o.Total > 0 {
		return o.Total
	}
	return o.Length
}

// sliced is the key of the first slice.
func (k *requestKey) sliced() requestKey {
	next := *k
	next.text += sliceMark
	next.hash = store.KeyOf(next.text, "")
	return next
}

// askSlice has the origin asked for the first slice only.
func (f *fill) askSlice() {
	f.slicing = true
	f.request.In.Header["Range"] = []string{rangeOf(0, sliceSize)}
}

// askWhole has it asked for all, without a condition.
func (f *fill) askWhole() {
	f.slicing = false
	delete(f.request.In.Header, "Range")
}

func rangeOf(from, length int64) string {
	return "bytes=" + strconv.FormatInt(from, 10) + "-" + strconv.FormatInt(from+length-1, 10)
}

// contentRange reads the part that a response 206 has.
func contentRange(h http.Header) (from, last, total int64, ok bool) {
	lines := h["Content-Range"]
	if len(lines) != 1 {
		return 0, 0, 0, false
	}
	unit, rest, found := strings.Cut(strings.TrimSpace(lines[0]), " ")
	part, whole, slash := strings.Cut(rest, "/")
	first, end, dash := strings.Cut(part, "-")
	if !found || !slash || !dash || !strings.EqualFold(unit, "bytes") {
		return 0, 0, 0, false
	}
	var failed [3]error
	from, failed[0] = strconv.ParseInt(first, 10, 64)
	last, failed[1] = strconv.ParseInt(end, 10, 64)
	total, failed[2] = strconv.ParseInt(whole, 10, 64)
	return from, last, total, errors.Join(failed[:]...) == nil && from >= 0 && last >= from && total > last
}

// firstSlice makes of a response 206 the one that the whole would have. total is 0 where it is whole already.
func (f *fill) firstSlice() (total int64, ok bool) {
	r := f.response
	if r.Status == http.StatusRequestedRangeNotSatisfiable {
		return 0, false
	}
	if r.Status != http.StatusPartialContent {
		return 0, true
	}
	from, last, total, ok := contentRange(r.Header)
	if !ok || from != 0 || last+1 != min(total, sliceSize) || lengthOf(r.Header) >= 0 && lengthOf(r.Header) != last+1 {
		return 0, false
	}
	if last+1 < total && freshness.StrongTag(r.Header) == "" {
		return 0, false
	}
	r.Status = http.StatusOK
	delete(r.Header, "Content-Range")
	r.Header["Content-Length"] = []string{strconv.FormatInt(total, 10)}
	if last+1 == total {
		return 0, true
	}
	return total, true
}

// portion is a part of a body that can be read.
type portion struct {
	exchange.Source
	// It came from the origin for this request.
	fetched bool
}

// slicedBody is the body of a response in slices, or a part of it.
type slicedBody struct {
	l    *lookup
	meta *store.Meta
	part freshness.Range
	next *portion
}

// CopyTo copies one slice after another. Those that are not stored are fetched as they are reached.
func (b *slicedBody) CopyTo(sink exchange.Sink) error {
	for at, end := b.part.From, b.part.From+b.part.Length; at < end; {
		length := min(end, at-at%sliceSize+sliceSize) - at
		p := b.next
		if b.next = nil; p == nil {
			var err error
			if p, err = b.l.piece(b.meta, at, length, sink.Flush); err != nil {
				return err
			}
		}
		err := p.CopyTo(sink)
		p.Close()
		if err != nil {
			return err
		}
		at += length
	}
	return nil
}

func (b *slicedBody) Close() {
	if b.next != nil {
		b.next.Close()
	}
}

// serveSlices responds with a response of which a first slice is stored, or is being fetched: one of o and f is nil. header is
// what the client gets of its header. It returns nil where a slice does not come.
func (l *lookup) serveSlices(o *store.Object, f *fill, header http.Header, from exchange.From) (a *exchange.Answer, fetched bool) {
	var m *store.Meta
	if f != nil {
		m = f.meta
	} else {
		m = o.Meta
	}
	s := l.selectPart(http.StatusOK, header, m.Total, m.Received)
	body := &slicedBody{l: l, meta: m, part: s.part}
	if !s.none {
		length := min(s.part.Length, sliceSize-s.part.From%sliceSize)
		var err error
		switch {
		case s.part.From >= sliceSize:
			body.next, err = l.piece(m, s.part.From, length, func() error { return nil })
		case f != nil:
			if r := f.growing.read(s.part.From, length); r != nil {
				body.next = &portion{r, true}
			}
		default:
			var stored *store.Body
			if stored, err = o.Open(s.part.From); err == nil {
				body.next = &portion{&storedBody{stored, freshness.Range{From: s.part.From, Length: length}}, false}
			}
		}
		if err != nil || body.next == nil {
			return nil, false
		}
		fetched = body.next.fetched
	}
	a = l.begin(s.status, header, from)
	s.frame(a.Header, m.Total)
	if body.next != nil {
		a.Body = body
	}
	return a, fetched
}

// piece returns a part of one slice after the first, from the store or else from the origin. wait is called before it waits.
func (l *lookup) piece(m *store.Meta, from, length int64, wait func() error) (*portion, error) {
	n := from / sliceSize
	key := l.key
	key.text = l.partText(m, n)
	hash := store.KeyOf(key.text, "")
	at := freshness.Range{From: from - n*sliceSize, Length: length}
	whole := min(sliceSize, m.Total-n*sliceSize)
	for alone := false; ; alone = true {
		o := l.cache.store.Find(hash.URL, key.text, func([]string) uint64 { return hash.Variant })
		if o != nil && (o.Length != whole || l.cache.absent(o.Meta, &l.key)) {
			l.cache.store.Remove(o)
			o = nil
		}
		if o != nil {
			if body, err := o.Open(at.From); err == nil {
				return &portion{&storedBody{body, at}, false}, nil
			}
		}
		if err := wait(); err != nil {
			return nil, err
		}
		begin := func() *fill { return l.cache.beginPart(l, key, m, n, whole, !alone) }
		var f *fill
		leads := true
		if alone {
			f = begin()
		} else {
			f, leads = l.cache.fills.join(key.text, l.joinable, begin)
		}
		if leads {
			return l.leadPart(f, at)
		}
		if p := l.followPart(f, at); p != nil {
			return p, nil
		}
	}
}

// partText is the text of the key of a slice.
func (l *lookup) partText(m *store.Meta, n int64) string {
	b := appendPart([]byte(l.key.url), 's', strconv.FormatInt(n, 10))
	b = appendPart(b, 't', strconv.FormatInt(m.Total, 10))
	b = appendPart(b, 'e', freshness.StrongTag(m.Header))
	b = append(b, l.key.text[len(l.key.url):]...)
	return string(appendPart(b, 'V', m.Variant))
}

func (l *lookup) leadPart(f *fill, at freshness.Range) (*portion, error) {
	f.run(context.Background())
	*exchange.Origin.Of(l.x) = exchange.OriginOutcome{Asked: true}
	if f.response != nil {
		*exchange.Origin.Of(l.x) = f.response.Outcome
	}
	if f.err != nil {
		if f.err == errOtherVersion {
			// The next request asks for the first slice again.
			l.cache.store.RemoveURL(l.key.hash.URL)
		}
		return nil, f.err
	}
	if f.growing == nil {
		return &portion{&unstored{direct{Source: f.response.Body, f: f, x: l.x}, at}, true}, nil
	}
	defer f.growing.settle(false)
	if r := f.growing.read(at.From, at.Length); r != nil {
		return &portion{r, true}, nil
	}
	return nil, errPart
}

func (l *lookup) followPart(f *fill, at freshness.Range) *portion {
	timer := time.NewTimer(maxWait)
	defer timer.Stop()
	select {
	case <-f.known:
	case <-timer.C:
		return nil
	case <-l.x.Context().Done():
		return nil
	}
	if f.growing == nil {
		return nil
	}
	if r := f.growing.read(at.From, at.Length); r != nil {
		return &portion{r, true}
	}
	return nil
}

// unstored is a part of a slice that is not stored.
type unstored struct {
	direct direct
	part   freshness.Range
}

func (u *unstored) CopyTo(sink exchange.Sink) error {
	c := &cut{sink, u.part.From, u.part.Length}
	err := u.direct.Source.CopyTo(c)
	if c.left == 0 {
		return nil
	}
	if err == nil {
		err = errShort
	}
	return err
}

func (u *unstored) Close() { u.direct.Close() }

// slicePart is the slice that a fill asks for.
type slicePart struct {
	of     *store.Meta
	n      int64
	length int64
}

// beginPart makes a fill for one slice.
func (c *Cache) beginPart(l *lookup, key requestKey, m *store.Meta, n, length int64, shared bool) *fill {
	f := c.begin(l.x, key, l.rules, nil, shared)
	f.askWhole()
	f.part = &slicePart{m, n, length}
	f.request.In.Header["Range"] = []string{rangeOf(n*sliceSize, length)}
	f.request.In.Header["If-Range"] = []string{freshness.StrongTag(m.Header)}
	return f
}

// judgePart stores a slice of the version that it is asked for, and no other.
func (f *fill) judgePart() {
	r, p := f.response, f.part
	from, last, total, ok := contentRange(r.Header)
	switch {
	case r.Status == http.StatusPartialContent && ok && from == p.n*sliceSize && last+1 == from+p.length && total == p.of.Total &&
		freshness.StrongTag(r.Header) == freshness.StrongTag(p.of.Header):
	case freshness.IsError(r.Status):
		r.Body.Close()
		f.err = errPart
		return
	default:
		r.Body.Close()
		f.err = errOtherVersion
		return
	}
	f.rule = f.chain.decide(http.StatusOK, total)
	if f.rule == nil || f.rule.bypass {
		f.verdict.Reason = byRule
		return
	}
	if f.verdict = freshness.Judge(http.MethodGet, f.client, http.StatusOK, r.Header, &f.rule.policy, f.received); !f.verdict.Store() {
		return
	}
	f.meta = &store.Meta{
		Key: f.key.text, Site: f.site, Host: f.key.host, Path: f.key.path, Position: f.position, Status: http.StatusPartialContent,
		Header: http.Header{}, Tags: p.of.Tags, Received: f.received, Flags: p.of.Flags,
	}
	if w := f.cache.store.Create(); w != nil {
		f.growing = newGrowing(w, p.length, f.cancel)
	}
}
