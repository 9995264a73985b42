package exchange

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"time"
)

// lingerTime is how long a connection stays half open after its last response: a client that still sends would get a reset,
// and could lose the response with it.
const lingerTime = 500 * time.Millisecond

// leftOver reports whether bytes of an HTTP/1 body may still come that the server would read as the next request: with full
// duplex, net/http keeps a connection even when reading the rest of a body failed. No other goroutine may be reading.
func (b *Body) leftOver() bool {
	return b.stream != nil && b.duplex && b.end != io.EOF && b.exchange.In.Major == 1
}

// Refuse gives up the body of an HTTP/2 request that nobody is going to read: the server throws away what came of it and
// what still comes.
func (b *Body) Refuse() {
	if b.stream != nil && b.exchange.In.Major == 2 {
		b.end = ErrBodyStopped
		_ = b.asked.Body.Close()
	}
}

// endConnection completes a response whose request has a left-over body, and closes its connection. Taking the connection
// from the server is the one documented way to have it read no further request. It reports false where the response did not
// leave whole, or where the server keeps its connection; the handler must then abort.
func (x *Exchange) endConnection(a *Answer) bool {
	control := http.NewResponseController(x.writer)
	x.boundWrites()
	if control.Flush() != nil {
		return false
	}
	client, _, err := control.Hijack()
	if err != nil {
		return false
	}
	x.Body.end = ErrBodyStopped
	_ = client.SetWriteDeadline(time.Now().Add(bodyTimes.rest))
	if x.chunked(a) {
		if err := writeLastChunk(client, a.Trailer); err != nil {
			_ = client.Close()
			return false
		}
	}
	closeWrite(client)
	time.AfterFunc(lingerTime, func() { _ = client.Close() })
	return true
}

// chunked reports whether the server sends the body of an HTTP/1 response in chunks (RFC 9112 §6.1).
func (x *Exchange) chunked(a *Answer) bool {
	return x.In.Minor > 0 && x.In.Method != http.MethodHead && bodyAllowed(a.Status) && len(x.writer.Header()["Content-Length"]) == 0
}

// writeLastChunk ends a chunked body, with its trailers.
func writeLastChunk(w io.Writer, trailer http.Header) error {
	last := bytes.NewBufferString("0\r\n")
	if err := trailer.Write(last); err != nil {
		return err
	}
	last.WriteString("\r\n")
	_, err := w.Write(last.Bytes())
	return err
}

// closeWrite ends the sending half of a connection, that of TLS before that of TCP.
func closeWrite(conn net.Conn) {
	for conn != nil {
		if half, ok := conn.(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite()
		}
		above, ok := conn.(interface{ NetConn() net.Conn })
		if !ok {
			return
		}
		conn = above.NetConn()
	}
}
