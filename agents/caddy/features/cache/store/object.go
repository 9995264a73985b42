package store

import (
	"hash/crc32"
	"os"

	"edge.svc/caddy/exchange"
)

// Object is a stored response. It never changes, and many requests may use it at once.
type Object struct {
	*Meta
	// Length of the body in bytes.
	Length int64

	store   *Store
	url, id uint64
	cost    int64
	sums    []uint32
	// The body, where it is small; else it is in the file.
	body    []byte
	checked bool
}

// smallBody is the largest body, in bytes, that the tier in memory keeps.
const smallBody = chunk

// ID names the object in its zone; a later one has a larger ID.
func (o *Object) ID() uint64 { return o.id }

func (o *Object) estimate() {
	o.cost = 512 + int64(len(o.body)) + int64(len(o.sums))*4 + int64(len(o.Key)*2)
	for name, values := range o.Header {
		o.cost += 64 + int64(len(name))
		for _, v := range values {
			o.cost += 16 + int64(len(v))
		}
	}
}

// Body is what reads the body of an object for one response. Close it.
type Body struct {
	object *Object
	file   *os.File
}

// Open opens the body. It fails where the file is gone or, for a body of one chunk, damaged.
func (o *Object) Open() (*Body, error) {
	b := &Body{object: o}
	if o.body != nil || o.Length == 0 {
		return b, nil
	}
	file, err := os.Open(o.store.path(o.id))
	if err != nil {
		o.store.drop(o.url, o.id)
		return nil, err
	}
	b.file = file
	return b, nil
}

// Close ends the use of the body.
func (b *Body) Close() {
	if b.file != nil {
		_ = b.file.Close()
		b.file = nil
	}
}

// CopyTo writes a part of the body into a sink. Where this process has not seen the bytes before, no byte of a chunk leaves
// before the chunk is checked; on a failure the object is deleted.
func (b *Body) CopyTo(sink exchange.Sink, from, length int64) error {
	o := b.object
	switch {
	case length == 0:
		return nil
	case b.file == nil:
		return sink.Write(o.body[from : from+length])
	case o.checked:
		return b.copyChecked(sink, from, length)
	}
	buffer := chunks.Get().(*[chunk]byte)
	defer chunks.Put(buffer)
	for at := from - from%chunk; at < from+length; at += chunk {
		part := buffer[:min(chunk, o.Length-at)]
		if err := b.read(part, at); err != nil {
			return err
		}
		skip := max(from-at, 0)
		if err := sink.Write(part[skip:min(int64(len(part)), from+length-at)]); err != nil {
			return err
		}
	}
	if from == 0 && length == o.Length {
		o.store.setChecked(o)
	}
	return nil
}

// read reads one chunk and checks it.
func (b *Body) read(part []byte, at int64) error {
	_, err := b.file.ReadAt(part, preamble+at)
	if err == nil && crc32.Checksum(part, castagnoli) != b.object.sums[at/chunk] {
		err = errNotOurs
	}
	if err != nil {
		b.object.store.damaged(b.object, err)
	}
	return err
}

func (b *Body) copyChecked(sink exchange.Sink, from, length int64) error {
	if files, ok := sink.(exchange.FileSink); ok {
		if _, err := b.file.Seek(preamble+from, 0); err != nil {
			return err
		}
		return files.WriteFile(b.file, length)
	}
	buffer := chunks.Get().(*[chunk]byte)
	defer chunks.Put(buffer)
	for length > 0 {
		part := buffer[:min(chunk, length)]
		if _, err := b.file.ReadAt(part, preamble+from); err != nil {
			b.object.store.damaged(b.object, err)
			return err
		}
		if err := sink.Write(part); err != nil {
			return err
		}
		from, length = from+int64(len(part)), length-int64(len(part))
	}
	return nil
}

// load reads an object from its file.
func (s *Store) load(e entry) (*Object, error) {
	file, err := os.Open(s.path(e.id))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	m, end, sums, err := readEnd(file, e.id, int64(e.size))
	if err != nil {
		return nil, err
	}
	if end.sum != e.sum {
		return nil, errNotOurs
	}
	o := &Object{Meta: m, Length: end.length, store: s, url: e.url, id: e.id, sums: sums, checked: e.flags&checked != 0}
	first := make([]byte, preamble)
	if _, err := file.ReadAt(first, 0); err != nil {
		return nil, err
	}
	if string(first) != string(s.preamble()) {
		return nil, errNotOurs
	}
	if o.Length > 0 && o.Length <= smallBody {
		o.body = make([]byte, o.Length)
		if _, err := file.ReadAt(o.body, preamble); err != nil {
			return nil, err
		}
		if crc32.Checksum(o.body, castagnoli) != sums[0] {
			return nil, errNotOurs
		}
	}
	o.estimate()
	return o, nil
}

// With is the object with another head, for one response: what is stored stays as it is.
func (o *Object) With(m *Meta) *Object {
	next := *o
	next.Meta = m
	return &next
}
