package listen

import (
	"context"
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
	server := newServerConn(conn, false, quicIdle, nil, s.logger, ctx, s.handler, maxUnpackedHead)
	heads := heads{record: record, conn: conn, errors: s.errors, within: s.limiter.headerTime()}
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
	next := accept(s.farewell, conn, func(stream *quic.Stream) {
		requests.Go(func() {
			heads.begin(stream)
			if !refuseLarge(stream) {
				server.HandleRequestStream(stream)
			}
			heads.end(stream)
		})
	})
	// Writing waits for a client that gives it no room.
	requests.Go(func() { _, _ = control.Write(goaway(next)) })
	accept(s.over, conn, func(stream *quic.Stream) {
		stream.CancelRead(quic.StreamErrorCode(http3.ErrCodeRequestRejected))
		stream.CancelWrite(quic.StreamErrorCode(http3.ErrCodeRequestRejected))
	})
	_ = server.CloseWithError(quic.ApplicationErrorCode(http3.ErrCodeNoError), "")
	requests.Wait()
}

// accept takes streams until the context or the connection ends. It returns the first one that it has not taken.
func accept(ctx context.Context, conn *quic.Conn, take func(*quic.Stream)) (next quic.StreamID) {
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
