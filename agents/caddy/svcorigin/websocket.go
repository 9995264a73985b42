package svcorigin

import (
	"context"
	"encoding/base64"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// A tunnel ends when nothing passed either way for this long.
	tunnelIdle = time.Hour
	// After one side ended, the other has this long to finish.
	tunnelDrain = 10 * time.Second
)

// wantsWebSocket says whether a request is a WebSocket handshake in every respect. Any other wish for an upgrade is
// not passed on.
func wantsWebSocket(r *http.Request) bool {
	upgrade := r.Header["Upgrade"]
	if len(upgrade) != 1 {
		return false
	}
	if !strings.EqualFold(upgrade[0], "websocket") || r.Method != http.MethodGet || r.ProtoMajor != 1 || r.ProtoMinor != 1 {
		return false
	}
	if r.ContentLength != 0 || !hasToken(r.Header["Connection"], "upgrade") {
		return false
	}
	key, version := r.Header["Sec-Websocket-Key"], r.Header["Sec-Websocket-Version"]
	if len(key) != 1 || len(version) != 1 || version[0] != "13" {
		return false
	}
	nonce, err := base64.StdEncoding.Strict().DecodeString(key[0])
	return err == nil && len(nonce) == 16
}

// tunnel joins client and origin after the origin agreed to a WebSocket. Another protocol is not what was asked for.
func (x *exchange) tunnel(c *conn, a *response) {
	defer a.release()
	if len(a.upgrade) != 1 || !strings.EqualFold(a.upgrade[0], "websocket") || !hasToken(a.connection, "upgrade") {
		x.release(c, a, nil, false)
		x.in.Fail(x.w, x.r, http.StatusBadGateway, codeUnreachable)
		return
	}
	defer x.release(c, a, nil, false)
	h := x.w.Header()
	a.copyHeader(h)
	delete(h, "Content-Length")
	if x.in.Response != nil {
		x.in.Response(a.status, h)
	}
	h["Connection"], h["Upgrade"] = []string{"Upgrade"}, []string{"websocket"}
	x.w.WriteHeader(http.StatusSwitchingProtocols)
	client, buffered, err := http.NewResponseController(x.w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	// From here on the tunnel itself watches over the request: its end closes both sides at once.
	stop := context.AfterFunc(x.ctx, func() {
		client.Close()
		c.Conn.Close()
	})
	defer stop()
	defer client.Close()
	c.stop()
	var early []byte
	if n := buffered.Reader.Buffered(); n > 0 {
		early, _ = buffered.Reader.Peek(n)
	}
	t := tunnel{client: client, origin: c.Conn}
	t.touch()
	var both sync.WaitGroup
	both.Go(func() { t.copy(t.origin, t.client, early) })
	t.copy(t.client, t.origin, c.buf[c.r:c.w])
	both.Wait()
}

// tunnel is the two connections of a WebSocket and when something last passed between them.
type tunnel struct {
	client, origin net.Conn
	last           atomic.Int64
	// Unix nanoseconds at which everything ends, 0 while both sides are open.
	end atomic.Int64
}

func (t *tunnel) touch() { t.last.Store(time.Now().UnixNano()) }

// deadline is when the tunnel ends if nothing happens.
func (t *tunnel) deadline() time.Time {
	if end := t.end.Load(); end != 0 {
		return time.Unix(0, end)
	}
	return time.Unix(0, t.last.Load()).Add(tunnelIdle)
}

// copy passes bytes on until from ends, then closes that half of to and lets the other direction finish.
func (t *tunnel) copy(to, from net.Conn, first []byte) {
	defer t.drain(to)
	buffer := smallBuffers.Get().(*[smallBuffer]byte)
	defer smallBuffers.Put(buffer)
	if len(first) > 0 {
		if _, err := to.Write(first); err != nil {
			return
		}
	}
	for {
		deadline := t.deadline()
		_ = from.SetReadDeadline(deadline)
		if t.end.Load() != 0 && !deadline.Equal(t.deadline()) {
			continue
		}
		n, err := from.Read(buffer[:])
		if n > 0 {
			t.touch()
			_ = to.SetWriteDeadline(t.deadline())
			if _, werr := to.Write(buffer[:n]); werr != nil {
				return
			}
		}
		// The other direction may have been busy meanwhile.
		if err != nil && !(isTimeout(err) && time.Now().Before(t.deadline())) {
			return
		}
	}
}

func (t *tunnel) drain(to net.Conn) {
	if half, ok := to.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
	end := time.Now().Add(tunnelDrain)
	t.end.CompareAndSwap(0, end.UnixNano())
	_ = t.client.SetDeadline(end)
	_ = t.origin.SetDeadline(end)
}
