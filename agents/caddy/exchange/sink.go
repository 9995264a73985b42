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
	// TakesFiles reports whether the system sends files to the client by itself.
	TakesFiles() bool
	// WriteFile writes n bytes of f from a place on.
	WriteFile(f *os.File, at, n int64) error
}

// FilePart is a part of a file. Several may be of one file, whose own place none moves.
type FilePart struct {
	File *os.File
	// Where the part begins, and its length. Both move as it is read.
	At, Left int64
}

// Read reads on, for who does not know that it is a file.
func (p *FilePart) Read(b []byte) (int, error) {
	if p.Left <= 0 {
		return 0, io.EOF
	}
	n, err := p.File.ReadAt(b[:min(int64(len(b)), p.Left)], p.At)
	p.At, p.Left = p.At+int64(n), p.Left-int64(n)
	if n > 0 {
		err = nil
	}
	return n, err
}

func (s *clientSink) TakesFiles() bool {
	_, able := s.x.writer.(io.ReaderFrom)
	return able && s.x.Writes != nil && s.x.Writes.TakesFiles()
}

// WriteFile writes a file in pieces, each with a time of its own. The header leaves together with the first.
func (s *clientSink) WriteFile(f *os.File, at, n int64) error {
	to := s.x.writer.(io.ReaderFrom)
	writes := s.x.Writes
	defer writes.ReleaseHead()
	for part := (FilePart{File: f, At: at}); n > 0; {
		writes.BoundWrites()
		if flusher, able := s.x.writer.(http.Flusher); able && part.At == at {
			// Else net/http reads the first bytes to guess their type.
			writes.HoldHead()
			flusher.Flush()
		}
		part.Left = min(n, filePiece)
		sent, err := to.ReadFrom(&part)
		s.x.sent(sent)
		if n -= sent; err == nil && sent == 0 {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return err
		}
	}
	return nil
}
