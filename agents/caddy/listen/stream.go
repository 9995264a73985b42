package listen

import (
	"errors"
	"io"
	"net"
	"time"

	"edge.svc/caddy/exchange"
)

// StreamListener accepts connections of protocols that the edge passes on as they are. The limits and bans of connections hold for them,
// and nothing of HTTP does.
type StreamListener struct{ *listener }

// WrapStreams wraps a listener on which something else than HTTP is spoken. proxy says, for each connection, whether a
// PROXY header comes first.
func (w *Wrapper) WrapStreams(ln net.Listener, proxy func(*exchange.Tables) bool) *StreamListener {
	w.registry.listeners.Add(1)
	return &StreamListener{&listener{Listener: ln, wrapper: w, proxy: proxy}}
}

// AcceptStream returns the next connection. It reads nothing from it.
func (l *StreamListener) AcceptStream() (*Stream, error) {
	c, err := l.accept()
	if err != nil {
		return nil, err
	}
	if !c.expectsProxy(c.core.Tables()) {
		// It awaits nothing that the time for the first request could limit.
		c.asked()
	}
	return &Stream{Conn: c}, nil
}

// Accept is AcceptStream for a net.Listener.
func (l *StreamListener) Accept() (net.Conn, error) {
	s, err := l.AcceptStream()
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Stream is a connection without HTTP. Deadlines are those its user sets; the time for the first request ends with the PROXY
// header. io.Copy between two of them, or one and a *net.TCPConn, moves bytes within the kernel (splice).
type Stream struct{ *Conn }

// Start reads the PROXY header where one is expected: then Proxied is known. Every way of reading does so first.
func (s *Stream) Start() error {
	if s.started {
		return nil
	}
	err := s.begin()
	if err == nil {
		s.asked()
	}
	return err
}

// NetConn is the connection of the system. What came with the PROXY header is not read from it any more: Read and WriteTo
// return it first.
func (s *Stream) NetConn() net.Conn { return s.Conn.Conn }

// Read reads from the client.
func (s *Stream) Read(p []byte) (int, error) {
	if err := s.Start(); err != nil {
		return 0, err
	}
	if s.rest != nil {
		return s.readRest(p)
	}
	return s.Conn.Conn.Read(p)
}

func (s *Stream) readRest(p []byte) (int, error) {
	n, err := s.rest.Read(p)
	if s.rest.Buffered() == 0 {
		s.rest = nil
	}
	return n, err
}

// Write writes to the client.
func (s *Stream) Write(p []byte) (int, error) { return s.Conn.Conn.Write(p) }

// WriteTo passes on all that the client sends, first what came with the PROXY header.
func (s *Stream) WriteTo(w io.Writer) (n int64, err error) {
	if err := s.Start(); err != nil {
		return 0, err
	}
	if s.rest != nil {
		ahead, _ := s.rest.Peek(s.rest.Buffered())
		written, err := w.Write(ahead)
		if n = int64(written); err != nil {
			_, _ = s.rest.Discard(written)
			return n, err
		}
		s.rest = nil
	}
	if to, ok := w.(*Stream); ok {
		w = to.NetConn()
	}
	moved, err := io.Copy(w, s.NetConn())
	return n + moved, err
}

// ReadFrom sends the client all that r has.
func (s *Stream) ReadFrom(r io.Reader) (int64, error) {
	if from, ok := r.(*Stream); ok {
		return from.WriteTo(s)
	}
	return io.Copy(s.NetConn(), r)
}

// SetDeadline limits reads and writes.
func (s *Stream) SetDeadline(t time.Time) error {
	return errors.Join(s.SetReadDeadline(t), s.SetWriteDeadline(t))
}

// SetReadDeadline limits reads.
func (s *Stream) SetReadDeadline(t time.Time) error { return s.Conn.Conn.SetReadDeadline(t) }

// SetWriteDeadline limits writes.
func (s *Stream) SetWriteDeadline(t time.Time) error { return s.Conn.Conn.SetWriteDeadline(t) }
