package origin

import (
	"io"
	"net/http"
	"sync"
	"sync/atomic"

	"edge.svc/caddy/exchange"
)

// maxKeptUpload is how much of a body is kept until its origin responds, to send it again where an origin gave the request
// back unprocessed.
const maxKeptUpload = 16 << 10

// sharedBody is the body of a request in the hands of net/http, which may read it after its answer, until seal. Each attempt
// reads it by a sharedReader of its own; only the latest one gets anything.
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
	// Fields after the body, by the names that were announced.
	trailer http.Header
	// Called once everything was read.
	ended func()
	at    int64
}

// begin has a new attempt read the body from its beginning. A read of the attempt before may go on; what it brings is kept.
func (b *sharedBody) begin(trailer http.Header, ended func()) io.ReadCloser {
	r := &sharedReader{sharedBody: b, trailer: trailer, ended: ended}
	b.latest.Store(r)
	return r
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
	if b.err == io.EOF {
		for name := range r.trailer {
			r.trailer[name] = b.body.Trailer[name]
		}
	}
	r.ended()
	return 0, b.err
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

// Close is for net/http; the body is the exchange's.
func (r *sharedReader) Close() error { return nil }

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
