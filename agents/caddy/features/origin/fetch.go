package origin

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"

	"edge.svc/caddy/exchange"
)

// Fetcher gets answers from the origins of a pool. It is made anew for a request, or kept; it holds nothing of one.
type Fetcher struct {
	// Transports makes the connections; it is the same for all sites of the node.
	Transports *Transports
	// CDNLoop is this node's own id, appended to the CDN-Loop header.
	CDNLoop string
	Pool    *Pool
	// affinity keeps visitors on one origin; nil for a fetch of nobody's.
	affinity *affinity
	// Shared speaks to the origins instead of the own client, over HTTP/2; nil for HTTP/1.1.
	Shared *Shared
}

// head is the header of an origin's response that nobody has yet. Its body can be copied once.
type head interface {
	exchange.Source
	status() int
	// discard gives the response up in favour of another try.
	discard()
	// take writes what clients may see of the header into h. Trailers come to trailer while the body copies itself.
	take(h http.Header, trailer *http.Header)
	// from tells the origin that responded.
	from(*exchange.OriginOutcome)
}

// fetch is one request on its way, and then the body of its response. It is pooled: the fetch of a finished request is
// another request's.
type fetch struct {
	Fetcher
	// What is asked, and what the origin gets in its place: of an exchange, or of nobody's.
	in        *exchange.Inbound
	out       *exchange.Outbound
	overrides *exchange.Overrides
	// The request's body that comes from a client; nil where there is no client.
	body *exchange.Body
	// Whose request it is; nil for nobody's.
	x *exchange.Exchange
	// Hears of informational responses to nobody's request.
	interim func(status int, header http.Header)
	ctx     context.Context
	outcome *exchange.OriginOutcome
	begun   time.Time
	// When the header of the response was whole.
	answered time.Time
	group    *group
	// Of the origin that is asked, and then of the one that responds; nil where it has none.
	figures *figures
	times   times
	// The origin that the visitor is kept on, -1 for none.
	pinned int32
	// What rules have dialled in place of an origin.
	instead instead
	derived origin
	// Length of the request's body, 0 for none, -1 for unknown.
	length int64
	// A small body, read already; any other is streamed.
	small  []byte
	stream bool
	head   []byte
	list   []int32
	// How long it waits where too many connections to an origin are in use, and what it has of them without a connection.
	patience time.Duration
	entered  *places
	// An upload has begun: an origin may have a part of the body, which cannot be sent again.
	uploaded bool
	// The response has an owner who ends the fetch.
	kept bool
	// Where the request is going on at the moment: a connection of the own client, or an upload in the hands of the other.
	asking *conn
	shared *sharedBody
	moving moving
	// A response of an origin that is worse than another's, and better than an error of the edge.
	held heldAnswer
	// Of the own client's response, once there is one. A body that came whole with its header has let the connection go.
	trailer  *http.Header
	origin   *origin
	conn     *conn
	response *response
	whole    wholeBody
	complete bool
}

var fetches = sync.Pool{New: func() any { return &fetch{head: make([]byte, 0, 2<<10)} }}

// A body up to this size is read before an origin is asked, so that it can be sent again.
const maxReplay = 64 << 10

// begin starts a fetch, nil where the group has no origin.
func (f Fetcher) begin(ctx context.Context, out *exchange.Outbound, overrides *exchange.Overrides) *fetch {
	group := f.Pool.groupNamed(out.Group)
	if group == nil || len(group.origins) == 0 {
		return nil
	}
	t := fetches.Get().(*fetch)
	t.Fetcher, t.ctx, t.group, t.out, t.overrides = f, ctx, group, out, overrides
	t.begun, t.times, t.pinned = time.Now(), f.Pool.times.with(overrides), -1
	return t
}

// closeAfter ends the client's connection after the response: a part of the request's body may be left on it.
func (t *fetch) closeAfter() {
	if t.x != nil {
		t.x.CloseAfter()
	}
}

// abandon ends what a panic left going on: nothing may read the body of an exchange that is over. The fetch is garbage.
func (t *fetch) abandon() {
	t.leave()
	if c := t.held.conn; c != nil {
		c.unwatch()
		_ = c.Conn.Close()
		c.leave()
	}
	if h, ok := t.held.head.(*sharedHead); ok {
		h.end()
	}
	if t.shared != nil {
		_ = t.shared.seal()
	}
	if c := t.asking; c != nil {
		if c.upload != nil {
			_ = c.upload.stop(c, 0)
		}
		c.unwatch()
		// Its buffer may be another's by now.
		_ = c.Conn.Close()
		c.leave()
	}
}

// leave gives back a place for which there is no connection.
func (t *fetch) leave() {
	t.Transports.capacity.leave(t.entered)
	t.entered = nil
}

// free gives the fetch back.
func (t *fetch) free() {
	head, list := t.head, t.list
	if cap(head) > largeBuffer {
		head = nil
	}
	*t = fetch{head: head[:0], list: list[:0]}
	fetches.Put(t)
}

// bodyError is a failure to read the request's body from the client.
type bodyError struct{ error }

// Unwrap gives the cause.
func (e bodyError) Unwrap() error { return e.error }

// errGone says that nobody waits for the response any more.
var errGone = errors.New("nobody waits for the response")

// run returns the response of an origin. It fails with bodyError or errGone, or with what failed at the last origin.
func (t *fetch) run() (head, error) {
	p := t.Pool
	if err := t.prepareBody(); err != nil {
		return nil, bodyError{err}
	}
	asked := t.begun
	if t.length != 0 {
		asked = time.Now()
	}
	if err := t.instead.read(t.out); err != nil {
		return nil, fail(failDNS, err)
	}
	key := ""
	if len(t.group.origins) > 1 {
		key = t.out.TargetOf(t.in).Raw
	}
	t.list = t.group.candidates(slices.Grow(t.list, len(t.group.origins)), key, &t.instead, t.pinned)
	defer t.dropHeld()
	if p.budget != nil {
		p.budget.ask(secondOf(t.begun))
	}
	tries := 0
	var last error
	for i := 0; t.candidate(i, key); i++ {
		o := t.dialled(&t.group.origins[t.list[i]])
		t.figures = t.group.figuresOf(t.list[i], o)
		if i > 0 {
			asked = time.Now()
		}
		answer, err := t.ask(o, asked)
		if err == errFull && !t.candidate(i+1, key) {
			// No other origin has room, so that this one is worth a wait.
			t.patience = t.times.connect
			answer, err = t.ask(o, asked)
		}
		if err == nil {
			t.figures.respond(t.outcome.FirstByte, answer.status())
			bad := failedStatus(answer.status())
			if bad {
				t.failed(o, reason{failStatus, answer.status()})
			} else {
				p.state.succeed(o.health)
			}
			if tries++; bad && p.status && tries < p.tries && t.repeatable() && t.mayGoOn(i, key) {
				last = fail(failStatus, nil)
				t.hold(answer)
				continue
			}
			return answer, nil
		}
		var sent *sentError
		wasSent := errors.As(err, &sent)
		if wasSent && sent.client != nil {
			return nil, bodyError{sent.client}
		}
		if wasSent && sent.gone || !wasSent && t.ctx.Err() != nil {
			return nil, errGone
		}
		class := classOf(err)
		t.outcome.Error = string(class)
		t.figures.fail(class)
		if class == failFull {
			// A full origin is no failed one, and does not use up a try.
			last = moreTelling(last, err)
			continue
		}
		if !wasSent || !sent.closing {
			t.failed(o, reason{class: class})
		}
		if class == failDNS || class == failForbidden {
			// What cannot even be tried does not use up a try.
			last = moreTelling(last, err)
			continue
		}
		last = moreTelling(last, err)
		if tries++; tries >= p.tries {
			break
		}
		if wasSent && !t.repeatable() || !t.mayGoOn(i, key) {
			break
		}
	}
	if answer := t.takeHeld(); answer != nil {
		return answer, nil
	}
	return nil, last
}

// failedStatus reports whether a status says that the origin cannot serve.
func failedStatus(status int) bool {
	return status == http.StatusBadGateway || status == http.StatusServiceUnavailable || status == http.StatusGatewayTimeout
}

// candidate reports whether there is an origin for a further try. After the last primary come the backups that are up.
func (t *fetch) candidate(i int, key string) bool {
	if i == len(t.list) {
		t.list = t.group.withBackups(t.list, key, &t.instead)
	}
	return i < len(t.list)
}

// prepareBody reads a small body. A failure is the client's.
func (t *fetch) prepareBody() error {
	b := t.body
	if b == nil || !b.Exists() {
		return nil
	}
	// Said before, but where a fetch has a pool of its own.
	if err := t.Pool.bound(t.x); err != nil {
		return err
	}
	if t.length = b.Length; b.Whole() {
		t.length = b.InspectedLength()
	}
	if len(b.Trailer) > 0 {
		t.length = -1
	}
	if b.Streamed || t.length < 0 || t.length > maxReplay {
		t.stream = true
		b.Stream()
		return nil
	}
	var err error
	t.small, _, err = b.Look(int(t.length))
	return err
}

// ask sends the request to one origin and reads the header of its answer. now is the time: reading the clock costs as much
// as a stage does.
func (t *fetch) ask(o *origin, now time.Time) (head, error) {
	if t.Shared != nil && !t.in.Upgrade {
		return t.Shared.ask(t, o)
	}
	c, a, err := t.attempt(o, now)
	if err != nil {
		return nil, err
	}
	t.origin, t.conn, t.response = o, c, a
	return t, nil
}

func (t *fetch) status() int { return t.response.status }

func (t *fetch) discard() {
	c, a := t.conn, t.response
	whole := !a.chunked && a.length >= 0 && a.length <= int64(c.w-c.r)
	if whole {
		c.r += int(a.length)
	}
	t.drop(whole)
}

// drop ends the use of the connection, and of the answer on it.
func (t *fetch) drop(complete bool) {
	t.dropAt(complete, time.Now())
}

func (t *fetch) dropAt(complete bool, now time.Time) {
	if t.asking == t.conn {
		t.asking = nil
	}
	t.release(t.conn, t.response, t.origin, complete, now)
	t.response.release()
	t.origin, t.conn, t.response = nil, nil, nil
}

func (t *fetch) take(h http.Header, trailer *http.Header) {
	t.clientHeader(t.response, h)
	t.trailer = trailer
	t.keepWhole()
}

func (t *fetch) from(outcome *exchange.OriginOutcome) {
	outcome.Origin, outcome.Address = t.origin.health.origin, netip.AddrPortFrom(t.conn.addr, t.origin.dial.port)
}

// CopyTo sends the body of the answer on as it comes.
func (t *fetch) CopyTo(sink exchange.Sink) error {
	if t.conn == nil {
		return t.copyWhole(sink)
	}
	c := t.conn
	err := c.deliver(sink, t.response, t.trailer)
	if errors.Is(err, exchange.ErrMoved) {
		return err
	}
	left := t.cutShort(err)
	if left && (t.x == nil || t.in.Major != 1) {
		// An HTTP/2 server may still be writing what a failed write was given.
		c.buf, c.r, c.w = nil, 0, 0
	}
	if err == nil && c.upload != nil {
		select {
		case <-c.upload.done:
		default:
			// The client must see the answer although it is still sending.
			err = sink.Flush()
		}
	}
	t.complete = err == nil
	return err
}

// MayMove reports whether the body of the answer, and nothing else, is on its way: an upload hangs on the goroutine of its
// request, and a body that is there already holds nothing of the origin.
func (t *fetch) MayMove() bool { return t.conn != nil && t.conn.upload == nil }

// Resume copies the rest of the body while CopyTo waits for the client, and ends the use of the connection.
func (t *fetch) Resume(sink exchange.Sink) error {
	c := t.conn
	if !t.moving.begin(c) {
		return errAborted
	}
	err := c.deliverRest(sink, t.response, t.trailer)
	t.cutShort(err)
	t.end(t.moving.end() && err == nil)
	return err
}

// cutShort notes why a body ended early, and reports whether that is because of the client.
func (t *fetch) cutShort(err error) (left bool) {
	var gone clientError
	left = errors.As(err, &gone)
	switch {
	case left || err != nil && t.ctx.Err() != nil:
		t.outcome.Error = errorAborted
	case err != nil:
		class := classOf(err)
		t.outcome.Error = string(class)
		t.figures.breakOff(class)
	}
	return left
}

// end notes what the fetch took, and ends the use of the connection.
func (t *fetch) end(complete bool) {
	t.endAt(complete, time.Now())
}

func (t *fetch) endAt(complete bool, now time.Time) {
	t.outcome.Bytes, t.outcome.Total = t.conn.received, now.Sub(t.begun)
	t.dropAt(complete, now)
}

// Interrupt ends the waiting for the origin.
func (t *fetch) Interrupt() { t.moving.interrupt() }

// Close ends the use of the connection to the origin. Nothing may go on after the request.
func (t *fetch) Close() {
	if t.conn != nil {
		t.end(t.complete)
	}
	t.whole.release()
	t.free()
}

// errorAborted is the class of a fetch that nobody waited for any more.
const errorAborted = "aborted"

// release ends the use of a connection; it is kept for others when everything on it is over.
func (t *fetch) release(c *conn, a *response, o *origin, complete bool, now time.Time) {
	if u := c.upload; u != nil {
		_ = u.stop(c, uploadGrace)
		complete = complete && u.err == nil
		c.upload = nil
	}
	alive := c.unwatch()
	p := t.Pool
	if alive && complete && !a.close && !t.in.Upgrade && p.keepalive && c.r == c.w && c.uses+1 < p.maxUses {
		if t.slowWrite() {
			// The next request may not set one.
			_ = c.SetWriteDeadline(time.Time{})
		}
		t.Transports.put(c, o, keepFor(p.idle, a.keepAlive), now)
		return
	}
	c.Close()
}

// keepFor is how long an idle connection is kept: less than the origin keeps it, where it says so.
func keepFor(idle, told time.Duration) time.Duration {
	if told == 0 {
		return idle
	}
	return min(idle, told-min(told/2, time.Second))
}

func (p *Pool) failed(o *origin, why reason) {
	p.state.fail(o.health, why, p.maxFails, p.recovery)
}

func (t *fetch) failed(o *origin, why reason) {
	t.outcome.Error = string(why.class)
	t.Pool.failed(o, why)
}
