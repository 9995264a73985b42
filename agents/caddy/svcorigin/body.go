package svcorigin

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
)

const (
	maxChunkLine = 4096
	// Bytes of framing beyond this are an attack on the reader, not a body.
	maxChunkWaste = 64 << 10
)

// deliver sends the body of an answer to the client. Its error is the origin's; errClient wraps one of the client's.
func (c *conn) deliver(w http.ResponseWriter, a *response, flush *flusher) error {
	switch {
	case a.chunked:
		return c.deliverChunked(w, a, flush)
	case a.length == 0:
		return nil
	case a.length > 0:
		return c.deliverLength(w, a.length, flush)
	}
	return c.deliverToEnd(w, flush)
}

type clientError struct{ error }

// Unwrap gives the cause.
func (e clientError) Unwrap() error { return e.error }

func (c *conn) deliverLength(w http.ResponseWriter, left int64, flush *flusher) error {
	if left > int64(c.w-c.r) {
		c.grow(largeBuffer)
	}
	for {
		n := int(min(left, int64(c.w-c.r)))
		if n > 0 {
			if _, err := w.Write(c.buf[c.r : c.r+n]); err != nil {
				return clientError{err}
			}
			c.r += n
			if left -= int64(n); left == 0 {
				return nil
			}
			// A full buffer means more is there already.
			if c.w < len(c.buf) {
				flush.now()
			}
		}
		if err := c.fill(); err != nil {
			return unexpected(err)
		}
	}
}

func (c *conn) deliverToEnd(w http.ResponseWriter, flush *flusher) error {
	for {
		if c.w > c.r {
			if _, err := w.Write(c.buf[c.r:c.w]); err != nil {
				return clientError{err}
			}
			c.r = c.w
			if c.w == len(c.buf) {
				c.grow(largeBuffer)
			}
		}
		flush.now()
		if err := c.fill(); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
	}
}

func (c *conn) deliverChunked(w http.ResponseWriter, a *response, flush *flusher) error {
	waste := 0
	for {
		size, err := c.chunkSize(&waste, flush)
		if err != nil {
			return unexpected(err)
		}
		if size == 0 {
			break
		}
		if size > int64(len(c.buf)) {
			c.grow(largeBuffer)
		}
		for left := size; left > 0; {
			n := int(min(left, int64(c.w-c.r)))
			if n > 0 {
				if _, err := w.Write(c.buf[c.r : c.r+n]); err != nil {
					return clientError{err}
				}
				c.r += n
				left -= int64(n)
				continue
			}
			flush.now()
			if err := c.fill(); err != nil {
				return unexpected(err)
			}
		}
		if err := c.chunkEnd(); err != nil {
			return unexpected(err)
		}
	}
	return unexpected(c.copyTrailer(w.Header(), a))
}

// chunkSize reads the line before a chunk. waste counts the bytes that were no data and pays for them with data.
func (c *conn) chunkSize(waste *int, flush *flusher) (int64, error) {
	line, err := c.line(flush)
	if err != nil {
		return 0, err
	}
	*waste += len(line)
	digits := line
	if i := bytes.IndexByte(line, ';'); i >= 0 {
		digits = line[:i]
	}
	digits = bytes.TrimRight(digits, " \t")
	if len(digits) == 0 || len(digits) > 15 {
		return 0, fmt.Errorf("%w: chunk size %.40q", errMalformed, line)
	}
	size := int64(0)
	for _, d := range digits {
		switch {
		case '0' <= d && d <= '9':
			d -= '0'
		case 'a' <= d && d <= 'f':
			d -= 'a' - 10
		case 'A' <= d && d <= 'F':
			d -= 'A' - 10
		default:
			return 0, fmt.Errorf("%w: chunk size %.40q", errMalformed, line)
		}
		size = size<<4 | int64(d)
	}
	// A digit and CR LF before each chunk are normal even for one-byte chunks.
	*waste = max(0, *waste-16-int(min(2*size, maxChunkWaste)))
	if *waste > maxChunkWaste {
		return 0, fmt.Errorf("%w: chunk extensions", errMalformed)
	}
	return size, nil
}

func (c *conn) chunkEnd() error {
	for c.w-c.r < 2 {
		if c.w > c.r && c.buf[c.r] != '\r' {
			break
		}
		if err := c.fill(); err != nil {
			return err
		}
	}
	if c.buf[c.r] != '\r' || c.buf[c.r+1] != '\n' {
		return fmt.Errorf("%w: end of chunk", errMalformed)
	}
	c.r += 2
	return nil
}

// line reads up to CR LF and returns what is before. It flushes to the client before it waits.
func (c *conn) line(flush *flusher) ([]byte, error) {
	for {
		data := c.buf[c.r:c.w]
		if n := bytes.IndexByte(data, '\n'); n >= 0 {
			if n == 0 || data[n-1] != '\r' {
				return nil, fmt.Errorf("%w: chunk line", errMalformed)
			}
			c.r += n + 1
			return data[:n-1], nil
		}
		if len(data) > maxChunkLine {
			return nil, fmt.Errorf("%w: chunk line", errMalformed)
		}
		if len(data) == len(c.buf) {
			c.grow(largeBuffer)
		}
		flush.now()
		if err := c.fill(); err != nil {
			return nil, err
		}
	}
}

// copyTrailer reads the fields after the last chunk. Those announced are sent under their name, others the way
// net/http sends what was not announced.
func (c *conn) copyTrailer(h http.Header, a *response) error {
	budget := maxHeader
	text, err := c.readHeader(&budget)
	if err != nil {
		return err
	}
	if text == "" {
		return nil
	}
	announced, ofHop := map[string]bool{}, map[string]bool{}
	for _, name := range h["Trailer"] {
		announced[name] = true
	}
	for name := range named(a.connection) {
		ofHop[name] = true
	}
	for count := 0; text != ""; count++ {
		var line string
		line, text = cutLine(text)
		name, value, err := parseField(line)
		if err != nil {
			return err
		}
		if count == maxFields {
			return errTooLarge
		}
		if !trailerAllowed(name) || ofHop[name] {
			continue
		}
		key := name
		if !announced[name] {
			key = http.TrailerPrefix + name
		}
		h[key] = append(h[key], value)
	}
	return nil
}

// unexpected makes an early end an error: with a length or chunks, the end of the connection is not the end of the body.
func unexpected(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// flusher sends what the server buffers on to the client.
type flusher struct {
	control *http.ResponseController
	w       http.ResponseWriter
}

func (f *flusher) now() {
	if f.control == nil {
		f.control = http.NewResponseController(f.w)
	}
	// A writer that cannot flush buffers; nothing is lost.
	_ = f.control.Flush()
}
