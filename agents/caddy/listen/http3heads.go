package listen

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

// Names under which heads that no handler has seen are counted.
const (
	slowHead  = "stream_H3_REQUEST_INCOMPLETE_slow"
	largeHead = "stream_431"
)

// slowHeads is how many of its heads a client may leave unfinished before its connection ends. One outage of its network
// leaves as many as were on their way.
var slowHeads = allowance{"slow_heads", 10, 0.1, 0}

// heads are those of the requests of a connection: each comes within its time, where there is one.
type heads struct {
	record *quicConn
	conn   *quic.Conn
	errors *tally
	within time.Duration
}

// begin is called before the request of a stream is read.
func (h *heads) begin(stream *quic.Stream) {
	now := time.Now()
	if h.within > 0 {
		_ = stream.SetReadDeadline(now.Add(h.within))
	}
	h.record.headBegins(stream.StreamID(), now)
}

// end is called when nothing of the request is left, and counts it where no handler has seen it.
func (h *heads) end(stream *quic.Stream) {
	since, unseen := h.record.headEnds(stream.StreamID())
	if !unseen || h.conn.Context().Err() != nil {
		return
	}
	now := time.Now()
	ended, broken := errors.AsType[*quic.StreamError](context.Cause(stream.Context()))
	switch {
	case !broken:
		// Nothing else is answered without a handler.
		h.errors.add(largeHead)
	case !ended.Remote && ended.ErrorCode == quic.StreamErrorCode(http3.ErrCodeRequestIncomplete) && h.within > 0 && now.Sub(since) >= h.within:
		h.errors.add(slowHead)
		h.record.late(now)
	}
}

// began has a handler answer requests whose head has come: the time for it is no longer one for their body.
func began(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, _ := r.Context().Value(connKey{}).(*Conn)
		stream, known := r.Body.(interface{ StreamID() quic.StreamID })
		if c == nil || !known {
			panic("a request over QUIC tells neither its connection nor its stream")
		}
		_, _ = c.Conn.(*quicConn).headEnds(stream.StreamID())
		// A stream that is gone says so later.
		_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
		next.ServeHTTP(w, r)
	})
}
