package svclisten

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"
	_ "unsafe" // For newServerConn.

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
	"github.com/quic-go/quic-go/qlogwriter"
	"github.com/quic-go/quic-go/quicvarint"
)

// What begins the stream of control, and its frames and settings.
const (
	controlStream = 0
	settingsFrame = 4
	goawayFrame   = 7
	maxHeadField  = 6
)

// newServerConn makes what answers the requests on streams that it is given. quic-go's own server gives a head all the time
// in the world, and what it exports for those who accept streams themselves keeps the stream of control from them: without
// it nobody can say GOAWAY, or settings of their own. A test tells when it is no longer what it is here.
//
//go:linkname newServerConn github.com/quic-go/quic-go/http3.newRawServerConn
func newServerConn(conn *quic.Conn, datagrams bool, idle time.Duration, trace qlogwriter.Recorder, logger *slog.Logger, ctx context.Context, handler http.Handler, maxHeaderBytes int) *http3.RawServerConn

// http3Server answers HTTP/3 on connections until it ends.
type http3Server struct {
	handler http.Handler
	logger  *slog.Logger
	limiter *limiter
	errors  *tally

	serving sync.WaitGroup
	// No new requests, and nothing at all.
	farewell, over context.Context
	leave, end     context.CancelFunc
}

func newHTTP3Server(w *Wrapper, handler http.Handler) *http3Server {
	s := &http3Server{handler: began(watched(settled(handler))), limiter: &w.registry.limiter, errors: &w.registry.http3Errors}
	s.logger = quicLog(w.core.Log())
	s.over, s.end = context.WithCancel(context.Background())
	s.farewell, s.leave = context.WithCancel(s.over)
	return s
}

// serve takes the connections of a listener until it is closed.
func (s *http3Server) serve(listener *quic.Listener) {
	for {
		conn, err := listener.Accept(s.farewell)
		if err != nil {
			return
		}
		s.serving.Go(func() { s.answer(conn) })
	}
}

// close says GOAWAY to all clients. What is under way goes on until the context ends.
func (s *http3Server) close(ctx context.Context) {
	stop := context.AfterFunc(ctx, s.end)
	s.leave()
	s.serving.Wait()
	stop()
	s.end()
}

// answer answers the requests of a connection until its end.
func (s *http3Server) answer(conn *quic.Conn) {
	c, _ := conn.Context().Value(connKey{}).(*Conn)
	if c == nil {
		endQUIC(conn, http3.ErrCodeInternalError)
		return
	}
	record := c.Conn.(*quicConn)
	c.shaken()
	record.attach(conn)
	control, err := openControl(conn)
	if err != nil {
		endQUIC(conn, http3.ErrCodeInternalError)
		return
	}
	ctx := context.WithValue(conn.Context(), http.LocalAddrContextKey, conn.LocalAddr())
	server := newServerConn(conn, false, quicIdle, nil, s.logger, ctx, s.handler, maxHeaderBlock)
	var requests sync.WaitGroup
	requests.Go(func() {
		for {
			stream, err := conn.AcceptUniStream(context.Background())
			if err != nil {
				return
			}
			go server.HandleUnidirectionalStream(stream)
		}
	})
	next := s.accept(conn, s.farewell, func(stream *quic.Stream) {
		requests.Go(func() { s.request(server, conn, record, stream) })
	})
	// Writing waits for a client that gives it no room.
	requests.Go(func() { _, _ = control.Write(goaway(next)) })
	s.accept(conn, s.over, func(stream *quic.Stream) {
		stream.CancelRead(quic.StreamErrorCode(http3.ErrCodeRequestRejected))
		stream.CancelWrite(quic.StreamErrorCode(http3.ErrCodeRequestRejected))
	})
	_ = server.CloseWithError(quic.ApplicationErrorCode(http3.ErrCodeNoError), "")
	requests.Wait()
}

// accept takes streams until the context or the connection ends. It returns the first one that it has not taken.
func (s *http3Server) accept(conn *quic.Conn, ctx context.Context, take func(*quic.Stream)) (next quic.StreamID) {
	for {
		stream, err := conn.AcceptStream(ctx)
		if err != nil {
			return next
		}
		next = stream.StreamID() + 4
		take(stream)
	}
}

// openControl says what clients may do: extended CONNECT is none of it.
func openControl(conn *quic.Conn) (*quic.SendStream, error) {
	stream, err := conn.OpenUniStream()
	if err != nil {
		return nil, err
	}
	settings := quicvarint.Append(quicvarint.Append(nil, maxHeadField), maxHeaderBlock)
	_, err = stream.Write(append(quicvarint.Append(nil, controlStream), frameOf(settingsFrame, settings)...))
	return stream, err
}

func goaway(next quic.StreamID) []byte {
	return frameOf(goawayFrame, quicvarint.Append(nil, uint64(next)))
}

func frameOf(kind uint64, payload []byte) []byte {
	return append(quicvarint.Append(quicvarint.Append(nil, kind), uint64(len(payload))), payload...)
}

// Names under which heads that no handler has seen are counted.
const (
	slowHead  = "stream_H3_REQUEST_INCOMPLETE_slow"
	largeHead = "stream_431"
)

// slowHeads is how many of its heads a client may leave unfinished before its connection ends. One outage of its network
// leaves as many as were on their way.
var slowHeads = allowance{"slow_heads", 10, 0.1, 0}

// request answers the request of a stream, whose head comes within its time.
func (s *http3Server) request(server *http3.RawServerConn, conn *quic.Conn, record *quicConn, stream *quic.Stream) {
	var deadline time.Time
	if most := s.limiter.headerTime(); most > 0 {
		deadline = time.Now().Add(most)
		_ = stream.SetReadDeadline(deadline)
	}
	record.headBegins(stream.StreamID())
	server.HandleRequestStream(stream)
	if !record.headEnds(stream.StreamID()) || conn.Context().Err() != nil {
		return
	}
	ended, broken := errors.AsType[*quic.StreamError](context.Cause(stream.Context()))
	switch {
	case !broken:
		// Nothing else is answered without a handler.
		s.errors.add(largeHead)
	case !ended.Remote && ended.ErrorCode == quic.StreamErrorCode(http3.ErrCodeRequestIncomplete) && !deadline.IsZero() && !time.Now().Before(deadline):
		s.errors.add(slowHead)
		record.late(time.Now())
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
		c.Conn.(*quicConn).headEnds(stream.StreamID())
		// A stream that is gone says so later.
		_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
		next.ServeHTTP(w, r)
	})
}
