package svcorigin

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// A body of known length up to this size is read before an origin is asked, so that it can be sent again.
const maxReplay = 64 << 10

const uploadGrace = 50 * time.Millisecond

var errBodyTooLarge = errors.New("request body is too large")

// body is what a request sends to the origin.
type body struct {
	// Length, 0 for none, -1 for unknown.
	length int64
	// A small body, read already.
	small []byte
	// Any other body, sent as it comes in.
	stream io.Reader
	// Largest size of a body of unknown length, 0 for any.
	limit   int64
	trailer http.Header
	control *http.ResponseController
	// Longest pause of the client, and of the origin while it takes the body.
	pause time.Duration
	// The stream was read from, so it cannot be sent again.
	used bool
}

// prepareBody reads a small body. A failure is the client's.
func (p *Pool) prepareBody(b *body, w http.ResponseWriter, r *http.Request, limit int64) error {
	b.length = r.ContentLength
	if b.length == 0 || r.Body == nil || r.Body == http.NoBody {
		b.length = 0
		return nil
	}
	if limit > 0 && b.length > limit {
		return errBodyTooLarge
	}
	b.control, b.pause, b.limit = http.NewResponseController(w), p.send, limit
	if b.length < 0 || b.length > maxReplay || len(r.Trailer) > 0 {
		if len(r.Trailer) > 0 {
			b.length = -1
		}
		b.stream, b.trailer = r.Body, r.Trailer
		// Without this the server reads the rest of the body itself when the answer begins.
		_ = b.control.EnableFullDuplex()
		return nil
	}
	// Memory is taken as bytes come in, not as they are announced.
	b.small = make([]byte, 0, min(b.length, smallBuffer))
	for int64(len(b.small)) < b.length {
		if len(b.small) == cap(b.small) {
			b.small = slices.Grow(b.small, int(min(b.length-int64(len(b.small)), int64(len(b.small)))))
		}
		b.arm()
		n, err := r.Body.Read(b.small[len(b.small):min(int64(cap(b.small)), b.length)])
		b.small = b.small[:len(b.small)+n]
		if err != nil && int64(len(b.small)) < b.length {
			return unexpected(err)
		}
	}
	b.disarm()
	return nil
}

// arm bounds the next read from the client. A server that cannot do it has its own limits.
func (b *body) arm() time.Time {
	deadline := time.Now().Add(b.pause)
	_ = b.control.SetReadDeadline(deadline)
	return deadline
}

func (b *body) disarm() { _ = b.control.SetReadDeadline(time.Time{}) }

// upload sends a stream to an origin beside the reading of the answer.
type upload struct {
	body     *body
	done     chan struct{}
	stopping atomic.Bool

	mu sync.Mutex
	// Everything was sent, or cannot be sent any more: the origin's time to answer runs.
	sent bool
	// The body could not be read from the client, and not because the upload was stopped.
	client error
	// Why not everything was sent. Set before done is closed.
	err error
}

func startUpload(c *conn, b *body) *upload {
	u := &upload{body: b, done: make(chan struct{})}
	b.used = true
	c.upload = u
	go u.run(c)
	return u
}

func (u *upload) run(c *conn) {
	defer close(u.done)
	u.err = u.copy(c)
	u.mu.Lock()
	defer u.mu.Unlock()
	u.sent = true
	if u.client != nil {
		// Nobody waits for the answer to half a request.
		c.abort()
		return
	}
	// When the origin closed its side it may have answered before.
	_ = c.arm(time.Now().Add(c.readTimeout))
}

func (u *upload) copy(c *conn) error {
	b := u.body
	// Room for the line before a chunk and for the end after it.
	const front = 8
	first := smallBuffers.Get().(*[smallBuffer]byte)
	defer smallBuffers.Put(first)
	buffer, full := first[:], false
	total := int64(0)
	for {
		if full && len(buffer) == smallBuffer {
			large := largeBuffers.Get().(*[largeBuffer]byte)
			defer largeBuffers.Put(large)
			buffer = large[:]
		}
		data := buffer[front : len(buffer)-2]
		deadline := b.arm()
		if u.stopping.Load() {
			return errAborted
		}
		n, err := b.stream.Read(data)
		total += int64(n)
		full = n == len(data)
		if b.limit > 0 && total > b.limit {
			u.client = errBodyTooLarge
			return errBodyTooLarge
		}
		if n > 0 {
			out := data[:n]
			if b.length < 0 {
				out = frameChunk(buffer, front, n)
			}
			if werr := c.SetWriteDeadline(time.Now().Add(b.pause)); werr != nil {
				return werr
			}
			if c.aborted.Load() {
				return errAborted
			}
			if _, werr := c.Write(out); werr != nil {
				return werr
			}
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			// The server cancels the request at any failure to read, so only the clock tells a client that is
			// too slow from an upload that was stopped.
			if !isTimeout(err) || !time.Now().Before(deadline) {
				u.client = err
			}
			return err
		}
	}
	b.disarm()
	if b.length >= 0 {
		if total != b.length {
			u.client = io.ErrUnexpectedEOF
			return io.ErrUnexpectedEOF
		}
		return nil
	}
	end := append(buffer[:0], "0\r\n"...)
	for name, values := range b.trailer {
		// Programs behind an origin could take "_" and "." for "-". A header has none of these any more here.
		if edgeOwns(name) || !trailerAllowed(name) || strings.ContainsAny(name, "_.") {
			continue
		}
		for _, v := range values {
			end = appendField(end, name, v)
		}
	}
	_, err := c.Write(append(end, '\r', '\n'))
	return err
}

// frameChunk writes the size before and the line end after n bytes at front.
func frameChunk(buffer []byte, front, n int) []byte {
	var digits [8]byte
	size := strconv.AppendInt(digits[:0], int64(n), 16)
	start := front - 2 - len(size)
	copy(buffer[start:], size)
	buffer[front-2], buffer[front-1] = '\r', '\n'
	buffer[front+n], buffer[front+n+1] = '\r', '\n'
	return buffer[start : front+n+2]
}

// stop ends an upload that is still going on and waits for it: the body must not be read after the request. It returns
// the client's failure to send the body, if that was what ended it. An origin that answers at the last byte of a body
// can be faster than the upload's own end, which gets a grace for that reason; ending it by force costs the client's
// connection.
func (u *upload) stop(c *conn, grace time.Duration) error {
	if grace > 0 {
		timer := time.NewTimer(grace)
		defer timer.Stop()
		select {
		case <-u.done:
			return u.client
		case <-timer.C:
		}
	}
	u.mu.Lock()
	sent := u.sent
	u.mu.Unlock()
	if !sent {
		u.stopping.Store(true)
		c.abort()
		_ = u.body.control.SetReadDeadline(longAgo)
	}
	<-u.done
	return u.client
}
