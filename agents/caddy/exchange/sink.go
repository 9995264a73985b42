package exchange

import (
	"io"
	"net/http"
	"os"
)

// Sink takes a body. Sinks chain: one that counts or compresses passes on to the next.
type Sink interface {
	Write(p []byte) error
	// Flush sends on what is held back.
	Flush() error
}

// clientSink writes to the client. It is a part of its exchange.
type clientSink struct {
	x       *Exchange
	control *http.ResponseController
}

func (s *clientSink) Write(p []byte) error {
	s.x.boundWrites()
	n, err := s.x.writer.Write(p)
	s.x.sent(int64(n))
	return err
}

func (s *clientSink) Flush() error {
	s.x.boundWrites()
	if s.control == nil {
		s.control = http.NewResponseController(s.x.writer)
	}
	// A writer that cannot flush buffers; nothing is lost.
	_ = s.control.Flush()
	return nil
}

// filePiece is how much of a file leaves under one limit on writes.
const filePiece = 1 << 20

// FileSink is a sink that takes files as they are, so that the system can send them without a copy. Only the last sink,
// the client's, may be one.
type FileSink interface {
	Sink
	// WriteFile writes n bytes of f from where it is.
	WriteFile(f *os.File, n int64) error
}

// WriteFile writes a file in pieces, each with a time of its own.
func (s *clientSink) WriteFile(f *os.File, n int64) error {
	for n > 0 {
		s.x.boundWrites()
		part, err := io.CopyN(s.x.writer, f, min(n, filePiece))
		s.x.sent(part)
		if n -= part; err != nil {
			return err
		}
	}
	return nil
}
