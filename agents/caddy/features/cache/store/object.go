package store

import (
	"hash/crc32"

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
	// nil where the body is in memory.
	on *openBody
}

// openBody is the file of a body, and a chunk that was read and checked already.
type openBody struct {
	File
	first   *[chunk]byte
	firstAt int64
	// Of the file that other responses use as well; nil where it is this one's own.
	shared *sharedFile
}

// Open opens the body to copy it from a place on. It fails where the file is gone, or damaged at that place, and where the
// disk hangs: then nothing was sent, and the origin can be asked.
func (o *Object) Open(from int64) (*Body, error) {
	b := &Body{object: o}
	if o.body != nil || o.Length == 0 {
		return b, nil
	}
	if o.checked {
		if shared := o.store.files.take(o.id); shared != nil {
			b.on = &openBody{File: shared.file, firstAt: -1, shared: shared}
			if inMemory(shared.file, preamble+from) {
				return b, nil
			}
			err := b.bounded(func() error { return b.touch(from) })
			if err != nil {
				b.Close()
				return nil, err
			}
			return b, nil
		}
	}
	b, err := within(o.store.reads, func() (*Body, error) { return o.open(from) }, (*Body).Close)
	if err != nil {
		o.store.damaged(o, err)
		return nil, err
	}
	return b, nil
}

func (o *Object) open(from int64) (*Body, error) {
	file, err := o.store.disk.Open(o.store.path(o.id))
	if err != nil {
		return nil, err
	}
	b := &Body{object: o, on: &openBody{File: file, firstAt: -1}}
	if o.checked {
		if err = b.touch(from); err == nil && file.Descriptor() != nil {
			b.on.shared = o.store.files.share(o.id, file)
			b.on.File = b.on.shared.file
		}
	} else {
		at, buffer := from-from%chunk, chunks.Get().(*[chunk]byte)
		b.on.first, b.on.firstAt = buffer, at
		err = b.read(buffer[:min(chunk, o.Length-at)], at)
	}
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	return b, nil
}

// touch has the system read a place into its memory.
func (b *Body) touch(at int64) error {
	var one [1]byte
	_, err := b.on.ReadAt(one[:], preamble+at)
	return err
}

// Close ends the use of the body.
func (b *Body) Close() {
	switch {
	case b.on == nil:
	case b.on.shared != nil:
		b.object.store.files.leave(b.on.shared)
	default:
		_ = b.on.Close()
	}
	b.on = nil
}

// CopyTo writes a part of the body into a sink. Where this process has not seen the bytes before, no byte of a chunk leaves
// before the chunk is checked; on a failure the object is deleted.
func (b *Body) CopyTo(sink exchange.Sink, from, length int64) error {
	o := b.object
	switch {
	case length == 0:
		return nil
	case b.on == nil:
		return sink.Write(o.body[from : from+length])
	case o.checked:
		return b.copyChecked(sink, from, length)
	}
	buffer := b.on.first
	if b.on.first = nil; buffer == nil {
		buffer = chunks.Get().(*[chunk]byte)
	}
	for at := from - from%chunk; at < from+length; at += chunk {
		part := buffer[:min(chunk, o.Length-at)]
		if at != b.on.firstAt {
			b.on.firstAt = -1
			if err := b.bounded(func() error { return b.read(part, at) }); err != nil {
				return err
			}
		}
		skip := max(from-at, 0)
		if err := sink.Write(part[skip:min(int64(len(part)), from+length-at)]); err != nil {
			return err
		}
	}
	// After a failure, the disk or a server of HTTP/2 may still have the buffer.
	chunks.Put(buffer)
	if from == 0 && length == o.Length {
		o.store.setChecked(o)
	}
	return nil
}

// read reads one chunk and checks it.
func (b *Body) read(part []byte, at int64) error {
	_, err := b.on.ReadAt(part, preamble+at)
	if err == nil && crc32.Checksum(part, castagnoli) != b.object.sums[at/chunk] {
		err = errNotOurs
	}
	return err
}

// bounded waits for the disk for a bounded time. After a failure that is not passing the object is deleted.
func (b *Body) bounded(read func() error) error {
	err := b.object.store.reads.attempt(read, nil)
	if err != nil {
		b.object.store.damaged(b.object, err)
	}
	return err
}

func (b *Body) copyChecked(sink exchange.Sink, from, length int64) error {
	if files, ok := sink.(exchange.FileSink); ok && files.TakesFiles() {
		if file := b.on.Descriptor(); file != nil {
			return files.WriteFile(file, preamble+from, length)
		}
	}
	buffer := chunks.Get().(*[chunk]byte)
	for length > 0 {
		part := buffer[:min(chunk, length)]
		if n := readFromMemory(b.on.File, part, preamble+from); n > 0 {
			part = part[:n]
		} else if err := b.bounded(func() error { _, err := b.on.ReadAt(part, preamble+from); return err }); err != nil {
			return err
		}
		if err := sink.Write(part); err != nil {
			return err
		}
		from, length = from+int64(len(part)), length-int64(len(part))
	}
	chunks.Put(buffer)
	return nil
}

// load reads an object from its file.
func (s *Store) load(e entry) (*Object, error) {
	file, err := s.disk.Open(s.path(e.id))
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
