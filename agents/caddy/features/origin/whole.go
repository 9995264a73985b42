package origin

import (
	"net/http"

	"edge.svc/caddy/exchange"
)

// wholeBody is a body that came together with its header, with the buffer it lies in.
type wholeBody struct{ data, room []byte }

// keepWhole lets the connection go to other requests before the client is written to, where nothing of the response is
// still to come: a slow client holds no origin then, and nobody has to read ahead of it.
func (t *fetch) keepWhole() {
	c, a := t.conn, t.response
	if a.status == http.StatusSwitchingProtocols || a.chunked || a.length < 0 || a.length > int64(c.w-c.r) || c.upload != nil {
		return
	}
	if a.length > 0 {
		t.whole.data = c.next(a.length)
		if c.r == c.w {
			t.whole.room, c.buf, c.r, c.w = c.buf, nil, 0, 0
		} else {
			// What follows was not asked for; the connection ends, and the buffer with it.
			t.whole.data = append([]byte(nil), t.whole.data...)
		}
	}
	t.complete = true
	t.endAt(true, t.answered)
}

func (t *fetch) copyWhole(sink exchange.Sink) error {
	if len(t.whole.data) == 0 {
		return nil
	}
	err := sink.Write(t.whole.data)
	if err != nil {
		err = clientError{err}
		t.outcome.Error = errorAborted
		if t.x == nil || t.in.Major != 1 {
			// An HTTP/2 server may still be writing what a failed write was given.
			t.whole.room = nil
		}
	}
	return err
}

// release gives the buffer back.
func (w *wholeBody) release() {
	if w.room != nil {
		releaseBuffer(w.room)
	}
	*w = wholeBody{}
}
