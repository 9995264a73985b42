package listen

import (
	"errors"
	"net/http"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

// watched has a handler answer requests, and counts those that their clients take back while it does. A connection never has
// more requests at a time than it may have streams: one that was taken back stays until its handler has heard of it.
func watched(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			c, _ := r.Context().Value(connKey{}).(*Conn)
			if c != nil && r.Context().Err() != nil {
				c.Conn.(*quicConn).reset(time.Now())
			}
		}()
		next.ServeHTTP(w, r)
	})
}

// reset counts a request that its client took back.
func (q *quicConn) reset(now time.Time) { q.spend(&q.resets, &allowances[resetFrames], now) }

// late counts a request whose head did not come in its time.
func (q *quicConn) late(now time.Time) { q.spend(&q.unfinished, &slowHeads, now) }

// spend takes one from what a client may do, and ends the connection of one that does it too often.
func (q *quicConn) spend(of *spent, allowed *allowance, now time.Time) {
	q.mu.Lock()
	within := of.within(allowed, now, 0)
	conn := q.conn
	q.mu.Unlock()
	if !within && conn != nil {
		endQUIC(conn, http3.ErrCodeExcessiveLoad)
	}
}

// breachOf names what a connection was ended for by this side, "" where it is nothing that its client did wrong.
func breachOf(cause error) string {
	if application, is := errors.AsType[*quic.ApplicationError](cause); is && !application.Remote {
		if code := http3.ErrCode(application.ErrorCode); code != http3.ErrCodeNoError {
			return "conn_" + code.String()
		}
	}
	if transport, is := errors.AsType[*quic.TransportError](cause); is && !transport.Remote && transport.ErrorCode != quic.NoError {
		return "conn_" + transport.ErrorCode.String()
	}
	return ""
}
