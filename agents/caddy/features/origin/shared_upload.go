package origin

import (
	"io"
	"sync"
	"sync/atomic"
	"time"

	"edge.svc/caddy/exchange"
	"edge.svc/caddy/features/origin/h2"
)

const (
	// maxKeptUpload is how much of a body is kept until its origin responds, to send it again where an origin gave the
	// request back unprocessed.
	maxKeptUpload = 16 << 10
	// A frame of a body.
	uploadFrame = 16 << 10
)

var uploadFrames = sync.Pool{New: func() any { return new([uploadFrame]byte) }}

// sharedBody is the body of a request that goes out beside the response, until seal. Each attempt reads it by a sharedReader
// of its own; only the latest one gets anything.
type sharedBody struct {
	body   *exchange.Body
	latest atomic.Pointer[sharedReader]
	// No more of the body is kept: it was too much, or an origin has responded.
	settled atomic.Bool

	mu     sync.Mutex
	sealed bool
	kept   []byte
	read   int64
	err    error
}

// sharedReader is what one attempt reads of the body.
type sharedReader struct {
	*sharedBody
	at int64
}

// sendBeside sends the body of a request while its response comes: a stream, or what did not go out at once.
func (t *fetch) sendBeside(s *h2.Stream, rest []byte) {
	pause := t.times.send
	if t.x != nil && exchange.IsGRPC(t.x) {
		pause = conversationIdle
	}
	if !t.stream {
		exchange.Go("uploading a request body", func() {
			if err := s.Write(rest, true, pause); err == h2.ErrSilent {
				s.Cancel(errSilence)
			}
		}, func() { s.Cancel(errUploadPanicked) })
		return
	}
	if t.shared == nil {
		t.body.Stream()
		t.shared = &sharedBody{body: t.body}
	}
	r := &sharedReader{sharedBody: t.shared}
	t.shared.latest.Store(r)
	exchange.Go("uploading a request body", func() {
		switch err := r.sendTo(s, pause); err {
		case nil, h2.ErrStopped:
		case h2.ErrSilent:
			s.Cancel(errSilence)
		default:
			s.Cancel(err)
		}
	}, func() { s.Cancel(errUploadPanicked) })
}

// sendTo sends the body, and the fields after it.
func (r *sharedReader) sendTo(s *h2.Stream, pause time.Duration) error {
	buffer := uploadFrames.Get().(*[uploadFrame]byte)
	defer uploadFrames.Put(buffer)
	for {
		n, err := r.Read(buffer[:])
		if n > 0 {
			if err := s.Write(buffer[:n], false, pause); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return s.End(r.trailer())
		}
		if err != nil {
			return err
		}
	}
}

// Read reads from the client, after what an attempt before has read.
func (r *sharedReader) Read(p []byte) (int, error) {
	b := r.sharedBody
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.sealed, b.latest.Load() != r:
		return 0, exchange.ErrBodyStopped
	case r.at < int64(len(b.kept)):
		n := copy(p, b.kept[r.at:])
		r.at += int64(n)
		return n, nil
	case r.at < b.read:
		return 0, exchange.ErrBodyStopped
	case b.err == nil:
		n := b.receive(p)
		if r.at += int64(n); n > 0 {
			return n, nil
		}
	}
	return 0, b.err
}

// trailer is the header block of the fields after the body, by the names that were announced.
func (r *sharedReader) trailer() (block []byte) {
	b := r.sharedBody
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.sealed {
		return nil
	}
	for name, values := range b.body.Trailer {
		if !trailerPasses(name) {
			continue
		}
		for _, value := range values {
			block = h2.AppendField(block, []byte(name), appendValue(nil, value))
		}
	}
	return block
}

func (b *sharedBody) receive(p []byte) (n int) {
	n, b.err = b.body.Read(p)
	b.read += int64(n)
	if b.settled.Load() {
		return n
	}
	if len(b.kept)+n > maxKeptUpload || !b.body.Reserve(n) {
		b.settle()
		b.kept = nil
		return n
	}
	b.kept = append(b.kept, p[:n]...)
	return n
}

// settle ends keeping the body for another attempt.
func (b *sharedBody) settle() { b.settled.Store(true) }

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
