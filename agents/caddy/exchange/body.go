package exchange

import (
	"errors"
	"io"
	"net/http"
	"os"
	"slices"
	"sync/atomic"
	"time"
)

// Failures of a body. Whatever else Read and Look return is the client's connection's own.
var (
	// ErrBodyTooLarge says that the body has more bytes than the site allows.
	ErrBodyTooLarge = errors.New("the request body is too large")
	// ErrBodySlow says that the client paused for too long, or sent too little over a longer time.
	ErrBodySlow = errors.New("the request body arrives too slowly")
	// ErrNoMemory says that requests in progress may hold no more memory.
	ErrNoMemory = errors.New("the requests in progress hold too much memory")
	// ErrBodyStopped says that reading was ended from here.
	ErrBodyStopped = errors.New("the edge stopped reading the request body")
)

const (
	// A body has to bring so many bytes a second on average, over so long a time of waiting for the client.
	minBodyRate = 256
	rateWindow  = 30 * time.Second
	// The same for what is left of a body while an origin waits for it.
	heldBodyRate = 16 << 10
	// Time for a client to send what nobody but the edge reads.
	restTimeout = 10 * time.Second
	// Pause of a client before its site's is known.
	defaultPause = time.Minute
)

// Times of bodies; tests shorten them.
var bodyTimes = struct{ window, rest time.Duration }{rateWindow, restTimeout}

// Body is the body of a request. It has one owner and one reader at a time: first a look at its beginning, then the
// stream. It alone knows the limits on it.
type Body struct {
	// Length is the announced length: 0 for no body, -1 for an unknown one.
	Length int64
	// Trailer has the fields behind the body that were announced and that nobody took away since. Their values come when
	// the stream is over; what comes beside them is nobody's.
	Trailer http.Header
	// Streamed says that the origin gets the body as it comes: nobody gathers or inspects it.
	Streamed bool
	// Longest is how long the client may be waited for in all; 0 for any time.
	Longest time.Duration

	exchange *Exchange
	asked    *http.Request
	account  *Account
	stream   io.Reader
	control  *http.ResponseController
	limit    int64
	pause    time.Duration
	// Beginning of the body that was read already, in memory and beyond, and how much of it the reader got.
	head []byte
	kept kept
	at   int64
	// Bytes that the budget of requests in progress counts for the body.
	reserved int64
	// What the client sent of the body.
	total int64
	// How the stream ended: io.EOF, or a failure.
	end      error
	stopping atomic.Bool
	// The stream was read beyond the head, so it cannot be read again.
	gone   bool
	duplex bool
	// Time waited for the client, and bytes that came, in the current window. noRate is for what may be silent.
	waited time.Duration
	came   int64
	rate   int64
	noRate bool
	// Time waited for the client in all.
	waitedInAll time.Duration
}

func (b *Body) begin(x *Exchange, r *http.Request) {
	if r.ContentLength == 0 || r.Body == nil || r.Body == http.NoBody {
		return
	}
	b.exchange, b.asked, b.Length, b.Trailer, b.stream, b.pause = x, r, r.ContentLength, x.In.Trailer, r.Body, defaultPause
	b.control, b.rate = http.NewResponseController(x.writer), minBodyRate
}

// Exists reports whether the request has a body.
func (b *Body) Exists() bool { return b.stream != nil }

// Bound sets the largest size in bytes, 0 for any, and the longest pause of the client. It fails with ErrBodyTooLarge
// where the announced length is larger.
func (b *Body) Bound(limit int64, pause time.Duration) error {
	b.limit = limit
	if pause > 0 {
		b.pause = pause
	}
	if limit > 0 && (b.Length > limit || b.total > limit) {
		return ErrBodyTooLarge
	}
	return nil
}

// Converse makes the body a stream of any length that goes on as it comes, whose client may be silent for so long.
func (b *Body) Converse(pause time.Duration) {
	b.limit, b.pause, b.Longest = 0, pause, 0
	b.Streamed, b.noRate = true, true
}

// Look returns the first n bytes of the body, fewer where it has no more: whole is true then. Whoever reads the body
// afterwards gets them all the same. Memory is taken as bytes come in, not as they are announced.
func (b *Body) Look(n int) (head []byte, whole bool, err error) {
	if b.InspectedLength() > int64(len(b.head)) && n > len(b.head) {
		if int64(n) < b.InspectedLength() {
			head = make([]byte, n)
			_, err = keptReader{b}.ReadAt(head, 0)
			return head, false, err
		}
		if err = b.unspool(); err != nil {
			return nil, false, err
		}
	}
	for b.stream != nil && len(b.head) < n && b.end == nil {
		if len(b.head) == cap(b.head) {
			// Each step leaves a piece to the collector, so there are few.
			more := min(n-len(b.head), max(3*len(b.head), firstLook))
			if len(b.head) > 0 && !b.Reserve(more+b.serverBytes()) {
				b.end = ErrNoMemory
				break
			}
			b.head = slices.Grow(b.head, more)
		}
		room := b.head[len(b.head):min(cap(b.head), n)]
		got := b.receive(room)
		b.head = b.head[:len(b.head)+got]
	}
	if b.stream == nil {
		return nil, true, nil
	}
	whole = b.end == io.EOF || b.Length > 0 && int64(len(b.head)) == b.Length
	if !whole && b.end != nil {
		return b.head, false, b.end
	}
	if whole {
		b.end = io.EOF
		b.disarm()
	}
	return b.head[:min(n, len(b.head))], whole && len(b.head) <= n, nil
}

// serverBytes is what the server holds of a body beside what was read: HTTP/2 keeps a piece until all of it came.
func (b *Body) serverBytes() int {
	if b.reserved > 0 || b.exchange.In.Major != 2 {
		return 0
	}
	return serverPiece
}

const serverPiece = 16 << 10

// firstLook is the room that a look at a body starts with. It is part of what every request may take.
const firstLook = 4 << 10

// Reserve counts memory for the body until it is forgotten, and reports whether there is any.
func (b *Body) Reserve(bytes int) bool {
	memory := b.exchange.Memory
	if memory == nil {
		return true
	}
	if !memory.Take(int64(bytes)) {
		return false
	}
	b.reserved += int64(bytes)
	return true
}

// release ends the counting of memory.
func (b *Body) release(bytes int64) {
	if b.reserved > 0 {
		b.exchange.Memory.Give(bytes)
		b.reserved -= bytes
	}
}

// Failed reports whether reading from the client ended in any other way than with the body.
func (b *Body) Failed() bool { return b.end != nil && b.end != io.EOF }

// Rewind makes the next Read begin with the first byte again. It reports false when bytes are gone, or reading was ended.
func (b *Body) Rewind() bool {
	if b.gone || b.stopping.Load() {
		return false
	}
	b.at = 0
	return true
}

// Stream makes ready for reading beside an answer, in another goroutine, once: what a look kept is given back as soon as it
// was read. Without it the server reads the rest of the body itself when an answer begins.
func (b *Body) Stream() {
	if !b.duplex {
		b.duplex = true
		_ = b.control.EnableFullDuplex()
	}
	// With the first read the server may tell the client to go on, long after the request began.
	b.exchange.boundWrites()
}

// Read reads the body from its beginning, as long as nothing was read beyond what was looked at. It fails with
// ErrBodyTooLarge, ErrBodySlow, ErrBodyStopped, or as the connection does.
func (b *Body) Read(p []byte) (int, error) {
	if b.at < b.InspectedLength() {
		n, err := keptReader{b}.ReadAt(p, b.at)
		b.at += int64(n)
		if b.duplex && b.at == b.InspectedLength() {
			// Nobody asks for a stream again.
			b.gone = true
			b.forget()
			b.head, b.at = nil, 0
		}
		if n > 0 {
			return n, nil
		}
		return 0, err
	}
	if b.end != nil {
		return 0, b.end
	}
	if b.stream == nil {
		return 0, io.EOF
	}
	b.gone = true
	n := b.receive(p)
	if n > 0 && b.end == io.EOF {
		return n, io.EOF
	}
	if n > 0 && b.end != ErrBodyTooLarge {
		return n, nil
	}
	return n, b.end
}

// receive reads from the client once and sets end when the stream is over.
func (b *Body) receive(p []byte) int {
	start := time.Now()
	pause, enough := b.pause, b.rate*int64(bodyTimes.window)/int64(time.Second)
	if !b.noRate && b.came < enough {
		pause = min(pause, bodyTimes.window-b.waited)
	}
	if b.Longest > 0 {
		pause = min(pause, b.Longest-b.waitedInAll)
	}
	deadline := start.Add(pause)
	_ = b.control.SetReadDeadline(deadline)
	// Whoever stops the body sets the flag first and the deadline second, so one of the two is seen.
	if b.stopping.Load() {
		b.end = ErrBodyStopped
		return 0
	}
	n, err := b.stream.Read(p)
	b.total += int64(n)
	if b.account != nil {
		b.account.receive(uint64(n))
	}
	if b.limit > 0 && b.total > b.limit {
		b.end = ErrBodyTooLarge
		return n
	}
	now := time.Now()
	b.waited += now.Sub(start)
	b.waitedInAll += now.Sub(start)
	b.came += int64(n)
	slow := b.Longest > 0 && b.waitedInAll >= b.Longest
	if b.waited >= bodyTimes.window && !b.noRate {
		slow = slow || b.came < enough
		b.waited, b.came = 0, 0
	}
	switch {
	case err == io.EOF:
		b.end = io.EOF
		if b.Length > 0 && b.total != b.Length {
			b.end = io.ErrUnexpectedEOF
		}
		for name := range b.Trailer {
			b.Trailer[name] = b.asked.Trailer[name]
		}
		b.disarm()
	case err == nil:
		if slow {
			b.end = ErrBodySlow
		}
	case isTimeout(err) && !now.Before(deadline):
		// The server cancels the request at any failure to read, which may stop the body at the same moment: only the
		// clock tells a client that is too slow.
		b.end = ErrBodySlow
	case b.stopping.Load():
		b.end = ErrBodyStopped
	default:
		b.end = err
	}
	return n
}

func isTimeout(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.Is(err, os.ErrDeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout()
}

// disarm takes the limit on reads off: the next request of the connection gets its own.
func (b *Body) disarm() { _ = b.control.SetReadDeadline(time.Time{}) }

var longAgo = time.Unix(1, 0)

// Stop ends a Read that is under way in another goroutine, and all later ones. It costs the client's connection.
func (b *Body) Stop() {
	b.stopping.Store(true)
	if b.control != nil {
		_ = b.control.SetReadDeadline(longAgo)
	}
}

// boundRest bounds the time that the rest of the body may take: whatever the edge answers by itself, the server still
// reads what nobody read.
func (b *Body) boundRest() {
	if b.stream != nil && b.end == nil {
		// Recorders have no deadlines; every connection has.
		_ = b.control.SetReadDeadline(time.Now().Add(bodyTimes.rest))
	}
}
