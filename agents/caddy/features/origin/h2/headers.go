package h2

import (
	"strconv"
	"strings"

	"golang.org/x/net/http2/hpack"
)

const (
	// Header block of a response, as sent and as decoded, with informational ones and trailers.
	maxHeader        = 64 << 10
	maxFields        = 1000
	maxContinuations = 64
	maxInterim       = 1000
	// Informational responses that wait.
	maxPending = 16
)

// Field is a field of a header; its name is in lower case.
type Field struct{ Name, Value string }

// Header is the header of a response.
type Header struct {
	Status int
	Fields []Field
	// Length of the body; -1 where it is not said.
	Length int64
}

// blockState is what is known of the header block that is being decoded.
type blockState struct {
	fields []Field
	status string
	size   int
	// There was a field that is no pseudo field.
	regular bool
	// A pseudo field after others, or one that responses have not.
	odd bool
	// Another rule is broken, or a bound.
	malformed, tooLarge bool
}

func (c *Conn) headers(id uint32, flags byte, payload []byte) {
	if _, ok := c.find(id, "HEADERS"); !ok {
		return
	}
	payload, ok := c.unpad(flags, payload)
	if !ok {
		return
	}
	if flags&flagPriority != 0 {
		const priorityBytes = 5
		if len(payload) < priorityBytes {
			c.breaks(codeFrameSize, "HEADERS has another size")
			return
		}
		payload = payload[priorityBytes:]
	}
	if flags&flagEndHeaders != 0 {
		c.whole(id, flags, payload)
		return
	}
	r := &c.reader
	r.open, r.stream, r.flags, r.continued = true, id, flags, 0
	r.block = append(r.block[:0], payload...)
}

func (c *Conn) continuation(id uint32, flags byte, payload []byte) {
	r := &c.reader
	if !r.open {
		c.breaks(codeProtocol, "CONTINUATION continues nothing")
		return
	}
	if r.continued++; r.continued > maxContinuations || len(r.block)+len(payload) > maxHeader {
		c.breaks(codeEnhanceYourCalm, "a header block is too large")
		return
	}
	r.block = append(r.block, payload...)
	if flags&flagEndHeaders != 0 {
		r.open = false
		c.whole(id, r.flags, r.block)
		r.block = nil
	}
}

// whole takes a whole header block. Each is decoded, because later ones refer to it.
func (c *Conn) whole(id uint32, flags byte, block []byte) {
	b := &c.reader.blockState
	*b = blockState{fields: b.fields[:0]}
	_, err := c.reader.decoder.Write(block)
	if err == nil {
		err = c.reader.decoder.Close()
	}
	if err != nil {
		c.breaks(codeCompression, "a header block cannot be decoded")
		return
	}
	s := c.streams[id]
	if s == nil {
		c.wasted()
		return
	}
	c.health.blocked, c.health.waste = false, 0
	s.headers(b, flags&flagEndStream != 0)
	clear(b.fields)
}

// take takes one field of a block.
func (r *reader) take(f hpack.HeaderField) {
	b := &r.blockState
	if b.size += int(f.Size()); b.size > maxHeader || len(b.fields) == maxFields {
		b.tooLarge = true
		return
	}
	if strings.HasPrefix(f.Name, ":") {
		b.odd = b.odd || f.Name != ":status" || b.status != "" || b.regular
		b.status = f.Value
		return
	}
	b.regular = true
	switch {
	case !validName(f.Name) || !validValue(f.Value):
		b.malformed = true
	case ofHTTP1(f.Name):
		// RFC 9113 §8.2.2 calls a response with them malformed. They mean nothing here, and go no further.
		return
	}
	b.fields = append(b.fields, Field{f.Name, strings.Trim(f.Value, " \t")})
}

func ofHTTP1(name string) bool {
	switch name {
	case "connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade":
		return true
	}
	return false
}

// statusOf is the status of a response.
func (b *blockState) statusOf() (status int, ok bool) {
	if b.odd || b.malformed || len(b.status) != 3 {
		return 0, false
	}
	for i := range len(b.status) {
		c := b.status[i]
		if c < '0' || c > '9' {
			return 0, false
		}
		status = status*10 + int(c-'0')
	}
	return status, status >= 100 && status != 101
}

// lengthOf is the length of the body that the fields say, -1 where they say none.
func lengthOf(fields []Field) (length int64, ok bool) {
	length = -1
	for _, f := range fields {
		if f.Name != "content-length" {
			continue
		}
		n, err := strconv.ParseUint(f.Value, 10, 63)
		if err != nil || f.Value[0] == '+' || length >= 0 && length != int64(n) {
			return -1, false
		}
		length = int64(n)
	}
	return length, true
}

var nameByte = func() (is [256]bool) {
	for _, c := range []byte("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz") {
		is[c] = true
	}
	return is
}()

func validName(name string) bool {
	for i := range len(name) {
		if !nameByte[name[i]] {
			return false
		}
	}
	return name != ""
}

func validValue(value string) bool {
	for i := range len(value) {
		if c := value[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}
