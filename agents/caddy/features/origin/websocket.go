package origin

import (
	"context"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"edge.svc/caddy/exchange"
)

const (
	// A tunnel ends when nothing passed either way for this long.
	tunnelIdle = time.Hour
	// After one side ended, the other has this long to finish.
	tunnelDrain = 10 * time.Second
)

// isWebSocket reports whether an origin agreed to a WebSocket.
func (a *response) isWebSocket() bool {
	return len(a.upgrade) == 1 && strings.EqualFold(a.upgrade[0], "websocket") && exchange.HasToken(a.connection, "upgrade")
}

// upgrade makes an answer the beginning of a tunnel.
func (t *fetch) upgrade(answer *exchange.Answer) {
	h := answer.Header
	delete(h, "Content-Length")
	h["Connection"], h["Upgrade"] = []string{"Upgrade"}, []string{"websocket"}
	answer.Upgrade = t
}

// Join joins client and origin.
func (t *fetch) Join(client net.Conn, early []byte) {
	c := t.conn
	// From here on the tunnel itself watches over the request: its end closes both sides at once.
	stop := context.AfterFunc(t.ctx, func() {
		client.Close()
		c.Conn.Close()
	})
	defer stop()
	c.stop()
	// Of a rule; those of the site are for answers.
	silence, stall := t.overrides.ReadTimeout, t.overrides.SendTimeout
	both := tunnel{client: client, origin: c.Conn, begun: time.Now()}
	done := make(chan struct{})
	exchange.Go("sending to a WebSocket", func() {
		both.copy(both.origin, both.client, early, 0, stall)
		close(done)
	}, func() {
		client.Close()
		c.Conn.Close()
		close(done)
	})
	both.copy(both.client, both.origin, c.buf[c.r:c.w], silence, 0)
	<-done
}

// tunnel is the two connections of a WebSocket and when something last passed between them. Times are nanoseconds since it
// began: they do not follow the wall clock, which may be set at any moment.
type tunnel struct {
	client, origin net.Conn
	begun          time.Time
	last           atomic.Int64
	// When everything ends, 0 while both sides are open.
	end atomic.Int64
}

func (t *tunnel) touch() { t.last.Store(int64(time.Since(t.begun))) }

// deadline is when the tunnel ends if nothing happens.
func (t *tunnel) deadline() time.Time {
	if end := t.end.Load(); end != 0 {
		return t.begun.Add(time.Duration(end))
	}
	return t.begun.Add(time.Duration(t.last.Load()) + tunnelIdle)
}

// copy passes bytes on until from ends, then closes that half of to and lets the other direction finish. It ends as well
// when from is silent for longer than silence, or to takes nothing for longer than stall; 0 is as long as the tunnel goes on.
func (t *tunnel) copy(to, from net.Conn, first []byte, silence, stall time.Duration) {
	defer t.drain(to)
	buffer := smallBuffers.Get().(*[smallBuffer]byte)
	defer smallBuffers.Put(buffer)
	if len(first) > 0 {
		if _, err := to.Write(first); err != nil {
			return
		}
	}
	heard := time.Now()
	for {
		deadline := t.deadline()
		_ = from.SetReadDeadline(sooner(deadline, heard, silence))
		if t.end.Load() != 0 && !deadline.Equal(t.deadline()) {
			continue
		}
		n, err := from.Read(buffer[:])
		if n > 0 {
			t.touch()
			heard = time.Now()
			_ = to.SetWriteDeadline(sooner(t.deadline(), heard, stall))
			if _, werr := to.Write(buffer[:n]); werr != nil {
				return
			}
		}
		// The other direction may have been busy meanwhile.
		if err != nil && !(isTimeout(err) && time.Now().Before(sooner(t.deadline(), heard, silence))) {
			return
		}
	}
}

// sooner is a deadline, or the end of a time since a moment where that comes first; 0 is no such time.
func sooner(deadline, since time.Time, limit time.Duration) time.Time {
	if own := since.Add(limit); limit > 0 && own.Before(deadline) {
		return own
	}
	return deadline
}

func (t *tunnel) drain(to net.Conn) {
	if half, ok := to.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
	end := time.Now().Add(tunnelDrain)
	t.end.CompareAndSwap(0, int64(end.Sub(t.begun)))
	_ = t.client.SetDeadline(end)
	_ = t.origin.SetDeadline(end)
}
