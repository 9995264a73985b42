package origin

import (
	"errors"
	"io"
	"strconv"
	"sync"
	"time"

	"edge.svc/caddy/exchange"
)

const uploadGrace = 50 * time.Millisecond

// upload sends a stream to an origin beside the reading of the answer.
type upload struct {
	body *exchange.Body
	// Length of the body, -1 for one that is chunked.
	length int64
	// Longest pause of the origin while it takes the body.
	pause time.Duration
	done  chan struct{}

	mu sync.Mutex
	// Everything was sent, or cannot be sent any more: the origin's time to answer runs.
	sent bool
	// The body could not be read from the client, and not because the upload was stopped.
	client error
	// Why not everything was sent. Set before done is closed.
	err error
}

func (t *fetch) startUpload(c *conn) *upload {
	t.body.Stream()
	u := &upload{body: t.body, length: t.length, pause: t.times.send, done: make(chan struct{})}
	c.upload, t.uploaded = u, true
	exchange.Go("uploading a request body", func() { u.run(c) }, func() { u.failed(c) })
	return u
}

func (u *upload) run(c *conn) {
	err := u.copy(c)
	u.end(c, err)
}

// failed ends an upload in which something panicked.
func (u *upload) failed(c *conn) {
	u.client = errUploadPanicked
	u.end(c, errUploadPanicked)
}

func (u *upload) end(c *conn, err error) {
	defer close(u.done)
	u.err = err
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

var errUploadPanicked = errors.New("a fault in svc-caddy stopped the upload (a panic; the log has its stack)")

func (u *upload) copy(c *conn) error {
	b := u.body
	// Room for the line before a chunk and for the end after it.
	const front = 8
	first := smallBuffers.Get().(*[smallBuffer]byte)
	defer smallBuffers.Put(first)
	// The large buffer counts; without memory for it the small one does.
	buffer, full, asked := first[:], false, false
	total := int64(0)
	for {
		if full && !asked {
			asked = true
			if !b.Reserve(largeBuffer) {
				continue
			}
			large := largeBuffers.Get().(*[largeBuffer]byte)
			defer largeBuffers.Put(large)
			buffer = large[:]
		}
		data := buffer[front : len(buffer)-2]
		n, err := b.Read(data)
		total += int64(n)
		full = n == len(data)
		if err == exchange.ErrBodyTooLarge {
			u.client = err
			return err
		}
		if n > 0 {
			out := data[:n]
			if u.length < 0 {
				out = frameChunk(buffer, front, n)
			}
			if werr := c.SetWriteDeadline(time.Now().Add(u.pause)); werr != nil {
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
			// What was stopped from here is not the client's failure.
			if err != exchange.ErrBodyStopped {
				u.client = err
			}
			return err
		}
	}
	if u.length >= 0 {
		return nil
	}
	end := append(buffer[:0], "0\r\n"...)
	for name, values := range b.Trailer {
		if !trailerPasses(name) {
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
		c.abort()
		u.body.Stop()
	}
	<-u.done
	return u.client
}
