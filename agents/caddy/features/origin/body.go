package origin

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"

	"edge.svc/caddy/exchange"
)

const (
	maxChunkLine = 4096
	// Bytes of framing beyond this are an attack on the reader, not a body.
	maxChunkWaste = 64 << 10
)

// deliver sends the body of an answer to the client. Its error is the origin's; errClient wraps one of the client's. What
// was written last may still be on its way when another goroutine delivers the rest.
func (c *conn) deliver(sink exchange.Sink, a *response, trailer *http.Header) error {
	switch {
	case a.chunked:
		return c.deliverChunked(sink, a, trailer)
	case a.length == 0:
		return nil
	case a.length > 0:
		a.left = a.length
		return c.deliverLength(sink, a)
	}
	return c.deliverToEnd(sink)
}

// deliverRest goes on where deliver is writing.
func (c *conn) deliverRest(sink exchange.Sink, a *response, trailer *http.Header) error {
	// The buffer is being written.
	rest := c.buf[c.r:c.w]
	c.buf, c.r, c.w = nil, 0, 0
	c.grow(max(largeBuffer, len(rest)))
	c.w = copy(c.buf, rest)
	switch {
	case a.chunked:
		return c.deliverChunked(sink, a, trailer)
	case a.length > 0:
		return c.deliverLength(sink, a)
	}
	return c.deliverToEnd(sink)
}

// next takes up to most bytes of the buffer, which stay in it until more is read.
func (c *conn) next(most int64) []byte {
	n := int(min(most, int64(c.w-c.r)))
	c.r += n
	return c.buf[c.r-n : c.r]
}

type clientError struct{ error }

// Unwrap gives the cause.
func (e clientError) Unwrap() error { return e.error }

func (c *conn) deliverLength(sink exchange.Sink, a *response) error {
	if a.left > int64(c.w-c.r) {
		c.grow(largeBuffer)
	}
	for a.left > 0 {
		if piece := c.next(a.left); len(piece) > 0 {
			a.left -= int64(len(piece))
			if err := sink.Write(piece); err != nil {
				return clientError{err}
			}
			if a.left == 0 {
				break
			}
			// A full buffer means more is there already.
			if c.w < len(c.buf) {
				if err := sink.Flush(); err != nil {
					return clientError{err}
				}
			}
		}
		if err := c.fill(); err != nil {
			return unexpected(err)
		}
	}
	return nil
}

func (c *conn) deliverToEnd(sink exchange.Sink) error {
	for {
		if c.w > c.r {
			if err := sink.Write(c.next(int64(c.w - c.r))); err != nil {
				return clientError{err}
			}
			if c.w == len(c.buf) {
				c.grow(largeBuffer)
			}
		}
		if err := sink.Flush(); err != nil {
			return clientError{err}
		}
		if err := c.fill(); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
	}
}

func (c *conn) deliverChunked(sink exchange.Sink, a *response, trailer *http.Header) error {
	for {
		if !a.inChunk {
			size, err := c.chunkSize(&a.waste, sink)
			if err != nil {
				return unexpected(err)
			}
			if size == 0 {
				break
			}
			if size > int64(len(c.buf)) {
				c.grow(largeBuffer)
			}
			a.left, a.inChunk = size, true
		}
		for a.left > 0 {
			if piece := c.next(a.left); len(piece) > 0 {
				a.left -= int64(len(piece))
				if err := sink.Write(piece); err != nil {
					return clientError{err}
				}
				continue
			}
			if err := sink.Flush(); err != nil {
				return clientError{err}
			}
			if err := c.fill(); err != nil {
				return unexpected(err)
			}
		}
		if err := c.chunkEnd(); err != nil {
			return unexpected(err)
		}
		a.inChunk = false
	}
	return unexpected(c.readTrailer(trailer, a))
}

// chunkSize reads the line before a chunk. waste counts the bytes that were no data and pays for them with data.
func (c *conn) chunkSize(waste *int, sink exchange.Sink) (int64, error) {
	line, err := c.line(sink)
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
		return 0, fmt.Errorf("%w: invalid chunk size %.40q", errMalformed, line)
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
			return 0, fmt.Errorf("%w: invalid chunk size %.40q", errMalformed, line)
		}
		size = size<<4 | int64(d)
	}
	// A digit and CR LF before each chunk are normal even for one-byte chunks.
	*waste = max(0, *waste-16-int(min(2*size, maxChunkWaste)))
	if *waste > maxChunkWaste {
		return 0, fmt.Errorf("%w: chunk extensions are too long", errMalformed)
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
		return fmt.Errorf("%w: a chunk has no line end", errMalformed)
	}
	c.r += 2
	return nil
}

// line reads up to CR LF and returns what is before. It flushes to the client before it waits.
func (c *conn) line(sink exchange.Sink) ([]byte, error) {
	for {
		data := c.buf[c.r:c.w]
		if n := bytes.IndexByte(data, '\n'); n >= 0 {
			if n == 0 || data[n-1] != '\r' {
				return nil, fmt.Errorf("%w: a chunk line is malformed", errMalformed)
			}
			c.r += n + 1
			return data[:n-1], nil
		}
		if len(data) > maxChunkLine {
			return nil, fmt.Errorf("%w: a chunk line is malformed", errMalformed)
		}
		if len(data) == len(c.buf) {
			c.grow(largeBuffer)
		}
		if err := sink.Flush(); err != nil {
			return nil, clientError{err}
		}
		if err := c.fill(); err != nil {
			return nil, err
		}
	}
}

// readTrailer reads the fields after the last chunk.
func (c *conn) readTrailer(trailer *http.Header, a *response) error {
	budget := maxHeader
	text, err := c.readHeader(&budget)
	if err != nil {
		return err
	}
	// As in the lines before chunks: net/http, and others that may read the same bytes, find no end of the body at LF alone.
	if !bytes.HasSuffix(c.buf[:c.r], []byte("\r\n")) || strings.Count(text, "\n") != strings.Count(text, "\r\n") {
		return fmt.Errorf("%w: a trailer line has no line end", errMalformed)
	}
	if text == "" {
		return nil
	}
	ofHop := map[string]bool{}
	for name := range named(a.connection) {
		ofHop[name] = true
	}
	fields := http.Header{}
	*trailer = fields
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
		fields[name] = append(fields[name], value)
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
