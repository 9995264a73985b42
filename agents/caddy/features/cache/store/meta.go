package store

import (
	"encoding/binary"
	"errors"
	"net/http"
	"time"
)

// Position is where in the feed of purges a request left for its origin. A later purge makes its response absent. Positions of
// two generations do not compare: between them, purges may have been lost.
type Position struct{ Generation, Epoch, Sequence uint64 }

// Before reports whether the position is earlier than another of its generation.
func (p Position) Before(other Position) bool {
	return p.Epoch < other.Epoch || p.Epoch == other.Epoch && p.Sequence < other.Sequence
}

// Meta is the head of a stored response.
type Meta struct {
	// Key is the text that the hashes of the index come from.
	Key string
	// Site, Host and Path are what purges compare.
	Site, Host, Path string
	// Position is the one its request left with.
	Position Position
	Status   int
	Header   http.Header
	// Vary are the names of the fields that it varies by, Variant what its request had in them.
	Vary    []string
	Variant string
	// Tags are those of Cache-Tag, in lower case.
	Tags []string

	Received                                                 time.Time
	InitialAge, Lifetime, StaleWhileRevalidate, StaleIfError time.Duration
	// Total is 0, or the length of the whole that the body is the first slice of.
	Total int64
	// Flags are the caller's.
	Flags uint32
}

var errHead = errors.New("the head of a stored response is not valid")

const (
	maxHead = 1 << 20
	maxList = 4096
)

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendTexts(b []byte, list []string) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	for _, s := range list {
		b = appendText(b, s)
	}
	return b
}

func (m *Meta) append(b []byte) []byte {
	for _, s := range []string{m.Key, m.Site, m.Host, m.Path, m.Variant} {
		b = appendText(b, s)
	}
	for _, n := range []uint64{
		m.Position.Generation, m.Position.Epoch, m.Position.Sequence, uint64(m.Status), uint64(m.Received.UnixMilli()), uint64(m.InitialAge / time.Millisecond),
		uint64(m.Lifetime / time.Second), uint64(m.StaleWhileRevalidate / time.Second), uint64(m.StaleIfError / time.Second), uint64(m.Flags), uint64(m.Total),
	} {
		b = binary.AppendUvarint(b, n)
	}
	b = appendTexts(appendTexts(b, m.Vary), m.Tags)
	b = binary.AppendUvarint(b, uint64(len(m.Header)))
	for name, values := range m.Header {
		b = appendTexts(appendText(b, name), values)
	}
	return b
}

// decoder reads what append wrote. After a failure all it returns is empty.
type decoder struct {
	b      []byte
	failed bool
}

func (d *decoder) number() uint64 {
	n, size := binary.Uvarint(d.b)
	if size <= 0 {
		d.failed, d.b = true, nil
		return 0
	}
	d.b = d.b[size:]
	return n
}

// below is a number that is less than a bound.
func (d *decoder) below(bound uint64) uint64 {
	n := d.number()
	if n >= bound {
		d.failed, d.b = true, nil
		return 0
	}
	return n
}

func (d *decoder) text() string {
	n := d.number()
	if n > uint64(len(d.b)) {
		d.failed, d.b = true, nil
		return ""
	}
	s := string(d.b[:n])
	d.b = d.b[n:]
	return s
}

func (d *decoder) texts() []string {
	n := d.below(maxList)
	if n == 0 {
		return nil
	}
	list := make([]string, 0, n)
	for range n {
		list = append(list, d.text())
	}
	return list
}

func (d *decoder) duration(unit time.Duration) time.Duration {
	return time.Duration(d.below(1<<42)) * unit
}

// decodeMeta reads a head; the rest of b is what follows it.
func decodeMeta(b []byte) (m *Meta, rest []byte, err error) {
	d := decoder{b: b}
	m = &Meta{Key: d.text(), Site: d.text(), Host: d.text(), Path: d.text(), Variant: d.text()}
	m.Position = Position{d.number(), d.number(), d.number()}
	m.Status = int(d.below(1000))
	m.Received = time.UnixMilli(int64(d.below(1 << 60)))
	m.InitialAge = d.duration(time.Millisecond)
	m.Lifetime, m.StaleWhileRevalidate, m.StaleIfError = d.seconds(), d.seconds(), d.seconds()
	m.Flags = uint32(d.below(1 << 32))
	m.Total = int64(d.below(1 << 62))
	m.Vary, m.Tags = d.texts(), d.texts()
	n := d.below(maxList)
	m.Header = make(http.Header, n)
	for range n {
		name := d.text()
		m.Header[name] = d.texts()
	}
	if d.failed {
		return nil, nil, errHead
	}
	return m, d.b, nil
}

func (d *decoder) seconds() time.Duration { return time.Duration(d.below(1<<33)) * time.Second }
