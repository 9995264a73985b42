package h2

import (
	"context"
	"io"
	"slices"
	"sync"
	"time"
)

// Stream is one request and its response. One goroutine receives. Another one may send the body beside it.
type Stream struct {
	conn *Conn
	id   uint32
	// Wake who receives, and who sends.
	came, sends chan struct{}
	timer       *time.Timer
	// All below belongs to the lock of the connection.

	// Why nothing more comes, where that is no end; why nothing more may be sent.
	err, stopped error
	// The whole request was sent; the whole response has come.
	sentEnd, ended bool
	// A body of the request is sent beside the response.
	beside bool
	// The request is for headers alone.
	headOnly bool

	// What may be sent, and may come.
	send, receive int64
	// Of what came, what may come again and was not said yet; what the receiver has at the moment.
	taken int64
	lent  int

	head    Header
	hasHead bool
	// Informational responses, and those that wait; bytes of all headers.
	interim int
	pending []Header
	size    int
	// Bytes of the body that came.
	received int64
	body     []byte
	room     []byte
	trailers []Field
}

// Request is what opens a stream.
type Request struct {
	// Header block, made by AppendRequest and AppendField.
	Block []byte
	// The body, where it is known.
	Body []byte
	// The body is sent by Write and End.
	Streamed bool
	// The method is HEAD.
	HeadOnly bool
}

var streams = sync.Pool{New: func() any {
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	return &Stream{came: make(chan struct{}, 1), sends: make(chan struct{}, 1), timer: timer}
}}

// Open sends a request, for which room was reserved. It returns what could not be sent at once of its body: that is to be
// sent by Write, in another goroutine. Fails with ErrUnprocessed, or as the connection did.
func (c *Conn) Open(r Request) (s *Stream, rest []byte, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reserved--
	if c.err != nil || c.leaving {
		c.rest()
		return nil, nil, ErrUnprocessed
	}
	s = streams.Get().(*Stream)
	drain(s.came)
	drain(s.sends)
	if c.lastID == 0 {
		c.lastID = 1
	} else {
		c.lastID += 2
	}
	s.conn, s.id, s.send, s.receive = c, c.lastID, c.streamSend, streamWindow
	s.headOnly, s.beside = r.HeadOnly, r.Streamed
	c.streams[s.id] = s
	if c.lastID >= maxID {
		c.draining = true
	}
	var first []byte
	if s.id == 1 {
		first = []byte{tableOfNone}
	}
	s.sentEnd = !r.Streamed && len(r.Body) == 0
	c.out = appendBlock(c.out, s.id, first, r.Block, s.sentEnd, c.maxFrame)
	if rest = r.Body; len(rest) > 0 {
		if s.allowed(len(rest)) == len(rest) {
			s.append(rest, true)
			rest = nil
		} else {
			s.beside = true
		}
	}
	c.health.waste = 0
	c.signal()
	return s, rest, nil
}

func drain(c chan struct{}) {
	select {
	case <-c:
	default:
	}
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (s *Stream) sendable() { wake(s.sends) }

// fail ends the stream, which is no longer one of its connection, under the lock.
func (s *Stream) fail(err error) {
	if s.err == nil {
		s.err = err
	}
	s.stop(err)
	wake(s.came)
}

func (s *Stream) stop(err error) {
	if s.stopped == nil {
		s.stopped = err
	}
	s.leave()
	s.sendable()
}

// remove takes the stream off its connection, under the lock.
func (s *Stream) remove() {
	delete(s.conn.streams, s.id)
	s.leave()
	s.conn.rest()
}

// abort ends the stream for an error of the origin, or for one of the request, under the lock.
func (s *Stream) abort(err error, code uint32) {
	s.conn.reset(s.id, code)
	s.fail(err)
	s.remove()
}

// Cancel ends the stream because of an error of the request's own. The receiver gets it.
func (s *Stream) Cancel(err error) {
	c := s.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.streams[s.id] == s {
		s.abort(err, s.codeOfEnd())
	}
}

// codeOfEnd is the code with which the edge resets the stream. After the response the rest of the request is of no use, and
// nothing is wrong (RFC 9113 §8.1).
func (s *Stream) codeOfEnd() uint32 {
	if s.ended {
		return codeNo
	}
	return codeCancel
}

// Close gives up what is left of the stream. It is not to be used afterwards, and nobody may be in Write.
func (s *Stream) Close() {
	c := s.conn
	c.mu.Lock()
	if c.streams[s.id] == s {
		s.abort(errClosed, s.codeOfEnd())
	}
	c.mu.Unlock()
	s.free()
}

// free gives a stream back to the next request. One that another goroutine may still hold is garbage.
func (s *Stream) free() {
	if s.beside {
		return
	}
	fields, body, room := s.head.Fields, s.body, s.room
	clear(fields)
	if cap(body) > keptBuffer {
		body = nil
	}
	if cap(room) > keptBuffer {
		room = nil
	}
	*s = Stream{came: s.came, sends: s.sends, timer: s.timer, head: Header{Fields: fields[:0]}, body: body[:0], room: room[:0]}
	streams.Put(s)
}

// resetBy takes a reset of the origin, under the lock.
func (s *Stream) resetBy(code uint32) {
	switch {
	case s.ended:
		// It wants no more of the request.
		s.stop(ErrStopped)
	case code == codeRefused && !s.hasHead:
		s.fail(ErrUnprocessed)
	default:
		s.fail(&ResetError{code})
	}
	s.remove()
}

// headers takes a header block, under the lock.
func (s *Stream) headers(b *blockState, end bool) {
	s.size += b.size
	switch {
	case s.ended:
		s.abort(ErrMalformed, codeStreamClosed)
		return
	case b.tooLarge || s.size > maxHeader:
		s.abort(ErrTooLarge, codeCancel)
		return
	case s.hasHead:
		if !end || b.malformed || b.odd || b.status != "" {
			s.abort(ErrMalformed, codeProtocol)
			return
		}
		// Without a body to follow, nothing would send trailers on.
		if !s.headOnly {
			s.trailers = slices.Clone(b.fields)
		}
		s.end()
		return
	}
	status, ok := b.statusOf()
	length, said := lengthOf(b.fields)
	if !ok || !said || status < 200 && (end || s.interim == maxInterim) {
		s.abort(ErrMalformed, codeProtocol)
		return
	}
	if status < 200 {
		s.interim++
		// 100 (Continue) answers the edge.
		if status != 100 && len(s.pending) < maxPending {
			s.pending = append(s.pending, Header{status, slices.Clone(b.fields), -1})
		}
		wake(s.came)
		return
	}
	s.head = Header{status, append(s.head.Fields[:0], b.fields...), length}
	s.hasHead = true
	if end {
		s.end()
	}
	wake(s.came)
}

// bodiless reports whether the response has no body, whatever its length says.
func (s *Stream) bodiless() bool {
	return s.headOnly || s.head.Status == 204 || s.head.Status == 304
}

// data takes bytes of the body, under the lock. size counts the padding.
func (s *Stream) data(p []byte, size int64, end bool) {
	s.receive -= size
	s.received += int64(len(p))
	switch {
	case s.ended:
		s.abort(ErrMalformed, codeStreamClosed)
		return
	case s.receive < 0:
		s.abort(ErrMalformed, codeFlowControl)
		return
	case !s.hasHead, len(p) > 0 && (s.bodiless() || s.head.Length >= 0 && s.received > s.head.Length):
		s.abort(ErrMalformed, codeProtocol)
		return
	}
	s.body = append(s.body, p...)
	if end {
		s.end()
	} else {
		s.give(size - int64(len(p)))
	}
	wake(s.came)
}

// end takes the end of the response, under the lock.
func (s *Stream) end() {
	if !s.bodiless() && s.head.Length >= 0 && s.received != s.head.Length {
		s.abort(ErrMalformed, codeProtocol)
		return
	}
	s.ended = true
	if s.sentEnd {
		s.remove()
	}
	wake(s.came)
}

// give lets the origin send as much again as was taken, under the lock.
func (s *Stream) give(n int64) {
	if s.taken += n; s.taken < streamWindow/2 || s.ended || s.err != nil {
		return
	}
	s.conn.out = appendWindow(s.conn.out, s.id, uint32(s.taken))
	s.receive, s.taken = s.receive+s.taken, 0
	s.conn.signal()
}

// Header waits for the header of the response, and for informational ones before it. It fails with ErrSilent where the
// origin sends nothing for so long, with the cause where ctx ends, and else as the stream did.
func (s *Stream) Header(ctx context.Context, silence time.Duration) (*Header, error) {
	c := s.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		switch {
		case len(s.pending) > 0:
			h := s.pending[0]
			s.pending = s.pending[1:]
			return &h, nil
		case s.hasHead:
			return &s.head, nil
		case s.err != nil:
			return nil, s.err
		}
		if err := s.wait(ctx, silence); err != nil {
			return nil, err
		}
	}
}

// Read waits for more of the body and returns what has come; it is the caller's until the next call. last says that this is
// the end. Fails as Header does, and with io.EOF.
func (s *Stream) Read(ctx context.Context, silence time.Duration) (p []byte, last bool, err error) {
	c := s.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	s.give(int64(s.lent))
	s.lent = 0
	for len(s.body) == 0 {
		switch {
		case s.ended, s.err != nil && s.headOnly:
			// A response to HEAD is whole with its header.
			return nil, true, io.EOF
		case s.err != nil:
			return nil, false, s.err
		}
		if err := s.wait(ctx, silence); err != nil {
			return nil, false, err
		}
	}
	s.body, s.room = s.room[:0], s.body
	s.lent = len(s.room)
	return s.room, s.ended, nil
}

// Keep leaves what Read returned last to the caller for good.
func (s *Stream) Keep() { s.room = nil }

// Ended reports whether the whole response has come.
func (s *Stream) Ended() bool {
	s.conn.mu.Lock()
	defer s.conn.mu.Unlock()
	return s.ended
}

// Trailers are the fields behind the body, once Read has returned io.EOF.
func (s *Stream) Trailers() []Field { return s.trailers }

// Most responses come within this time; only then is it worth while to watch over the client as well.
const patience = 40 * time.Millisecond

// wait waits until something came, under the lock, which it gives up meanwhile. While the request is being sent, the origin
// may be silent.
func (s *Stream) wait(ctx context.Context, silence time.Duration) error {
	s.conn.mu.Unlock()
	defer s.conn.mu.Lock()
	first := min(patience, silence)
	s.timer.Reset(first)
	select {
	case <-s.came:
		s.timer.Stop()
		return nil
	case <-s.timer.C:
	}
	for left := silence - first; ; left = silence {
		if left > 0 {
			s.timer.Reset(left)
			select {
			case <-s.came:
				s.timer.Stop()
				return nil
			case <-ctx.Done():
				s.timer.Stop()
				return context.Cause(ctx)
			case <-s.timer.C:
			}
		}
		if s.sent() {
			return ErrSilent
		}
	}
}

func (s *Stream) sent() bool {
	s.conn.mu.Lock()
	defer s.conn.mu.Unlock()
	return s.sentEnd
}
