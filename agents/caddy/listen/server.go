package listen

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"

	"go.uber.org/zap"
)

// unreadTimeout is how long an HTTP/2 connection stays on which nothing can be written. Ending a stream needs a frame:
// where the client does not read, nothing on the connection ends before this.
const unreadTimeout = 30 * time.Second

// unreadBytes is what the client of an HTTP/2 connection may send ahead of who reads it.
const unreadBytes = 256 << 10

// Serve has server answer on connections of the wrapped listeners; its fields may not be changed after. It is what
// happens by itself in a server of Caddy.
func (w *Wrapper) Serve(server *http.Server) {
	server.ConnContext = w.connContext()
}

// connContext prepares the server with its first connection, which comes before any request is read: Caddy makes it after
// the wrapper.
func (w *Wrapper) connContext() func(context.Context, net.Conn) context.Context {
	var once sync.Once
	return func(ctx context.Context, c net.Conn) context.Context {
		once.Do(func() {
			if server, ok := ctx.Value(http.ServerContextKey).(*http.Server); ok {
				w.prepare(server)
			}
		})
		return withConn(ctx, c)
	}
}

func (w *Wrapper) prepare(server *http.Server) {
	// Between two requests, what is written is the server's own. Closing says so by itself.
	former := server.ConnState
	server.ConnState = func(conn net.Conn, state http.ConnState) {
		if state == http.StateIdle {
			switch c := conn.(type) {
			case *Conn:
				c.http1.handled.Store(false)
				c.meter.End()
			case *secureConn:
				c.under.http1.handled.Store(false)
			}
		}
		if former != nil {
			former(conn, state)
		}
	}
	// Else net/http answers `OPTIONS *` by itself.
	server.DisableGeneralOptionsHandler = true
	if w.caddy {
		// Caddy asks for it with HTTP/2, and takes its own way of refusing it only with connections it has wrapped, which hides
		// what they can do.
		server.Protocols.SetUnencryptedHTTP2(false)
	}
	var config http.HTTP2Config
	if server.HTTP2 != nil {
		config = *server.HTTP2
	}
	config.CountError = w.registry.http2Errors.add
	if config.WriteByteTimeout == 0 {
		config.WriteByteTimeout = unreadTimeout
	}
	if config.MaxReceiveBufferPerConnection == 0 {
		// Nobody counts what handlers have not read yet; by default it is 1 MiB.
		config.MaxReceiveBufferPerConnection, config.MaxReceiveBufferPerStream = unreadBytes, unreadBytes
	}
	if config.MaxReadFrameSize == 0 {
		config.MaxReadFrameSize = maxFrameBytes
	}
	server.HTTP2 = &config
	if !w.watchFrames(server) {
		w.core.Log().Error("HTTP/2 connections are closed, because their frames cannot be limited", zap.Error(errNoFrames))
	}
}

// asked notes that the head of a request is whole.
func (c *Conn) asked() {
	if !c.requested.Load() && c.requested.CompareAndSwap(false, true) {
		c.registry.limiter.asked(c)
	}
}
