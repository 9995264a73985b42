package store

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"sync"
)

const (
	magic     = "SVCRES\x01\n"
	tailMagic = 0x53564354
	preamble  = 16
	tailSize  = 32
	// chunk is how much of a body has one check sum.
	chunk = 64 << 10
	// What a reader takes of the end of a file at first.
	headRead = 4 << 10
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// errNotOurs says that a file is torn, of another zone, of another object, or damaged.
var errNotOurs = errors.New("the file is not the stored response")

// path is where a file is. Those stored one after another are in one folder, so that they share its blocks of the disk.
func (s *Store) path(id uint64) string {
	const digits = "0123456789abcdef"
	b := make([]byte, 0, len(s.dir)+24)
	b = append(append(b, s.dir...), '/')
	for shift := 16; shift >= 8; shift -= 4 {
		b = append(b, digits[id>>shift&15])
	}
	b = append(b, '/')
	for shift := 60; shift >= 0; shift -= 4 {
		b = append(b, digits[id>>shift&15])
	}
	return string(b)
}

var chunks = sync.Pool{New: func() any { return new([chunk]byte) }}

// Writer takes the body of a response as it comes, and writes whole chunks of it. Others may read what is there with ReadAt,
// from several goroutines, while one writes.
type Writer struct {
	store *Store
	id    uint64

	mu sync.Mutex
	// The last chunk, which is not in the file.
	buffer *[chunk]byte
	file   File
	// How much came, how much of it is in the file, and check sums.
	length, flushed int64
	sums            []uint32
	ended           bool
	// The disk may still have the last chunk.
	lent bool
}

var (
	errEnded = errors.New("the writer has ended")
	errFull  = errors.New("the disk or the zone is too full for the response")
)

// Write appends to the body. After an error nothing more may be written, and the Writer must be aborted; what was written
// before can still be read.
func (w *Writer) Write(p []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return errEnded
	}
	for len(p) > 0 {
		if w.buffer == nil {
			w.buffer = chunks.Get().(*[chunk]byte)
		}
		if w.length-w.flushed == chunk {
			if err := w.flush(); err != nil {
				return err
			}
		}
		n := copy(w.buffer[w.length-w.flushed:], p)
		w.count(p[:n])
		p = p[n:]
	}
	return nil
}

// flush writes a whole chunk. The caller holds the lock.
func (w *Writer) flush() error {
	s := w.store
	if !s.takes(w.length + chunk) {
		return errFull
	}
	file, buffer, id, at := w.file, w.buffer, w.id, preamble+w.flushed
	made, err := within(s.writes, func() (File, error) {
		if !s.enter() {
			return nil, ErrNotStoring
		}
		defer s.leave()
		if file != nil {
			_, err := file.WriteAt(buffer[:], at)
			return file, err
		}
		file, err := s.disk.Create(s.path(id))
		if err != nil {
			return nil, err
		}
		if _, err = file.WriteAt(s.preamble(), 0); err == nil {
			_, err = file.WriteAt(buffer[:], preamble)
		}
		if err != nil {
			_ = file.Close()
			_ = s.disk.Remove(s.path(id))
		}
		return file, err
	}, func(late File) {
		if file == nil {
			_ = late.Close()
			_ = s.disk.Remove(s.path(id))
		}
	})
	if err != nil {
		w.lent = true
		return err
	}
	s.spend(chunk)
	w.file, w.flushed = made, w.length
	return nil
}

func (s *Store) preamble() []byte { return append([]byte(magic), s.zone.Load()[:]...) }

// count adds bytes to the length and the check sums.
func (w *Writer) count(p []byte) {
	for len(p) > 0 {
		used := int(w.length % chunk)
		n := min(chunk-used, len(p))
		if used == 0 {
			w.sums = append(w.sums, 0)
		}
		last := &w.sums[len(w.sums)-1]
		*last = crc32.Update(*last, castagnoli, p[:n])
		w.length += int64(n)
		p = p[n:]
	}
}

// ReadAt reads what was written already. After ErrSlow, p belongs to the disk.
func (w *Writer) ReadAt(p []byte, at int64) (int, error) {
	w.mu.Lock()
	if at >= w.flushed {
		defer w.mu.Unlock()
		if at >= w.length {
			return 0, io.EOF
		}
		return copy(p, w.buffer[at-w.flushed:w.length-w.flushed]), nil
	}
	file, left := w.file, w.flushed-at
	w.mu.Unlock()
	p = p[:min(int64(len(p)), left)]
	return within(w.store.reads, func() (int, error) { return file.ReadAt(p, preamble+at) }, nil)
}

// Length is how much of the body was written.
func (w *Writer) Length() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.length
}

// Abort gives the response up. What was written can be read until Release.
func (w *Writer) Abort() { w.end(true) }

func (w *Writer) end(remove bool) {
	w.mu.Lock()
	ended, file := w.ended, w.file
	w.ended = true
	w.mu.Unlock()
	if remove && !ended && file != nil {
		_ = w.store.delete(w.id)
	}
}

// Release closes the file once nobody reads from the Writer any more. It aborts what was not committed.
func (w *Writer) Release() {
	w.end(true)
	if w.file != nil {
		_ = w.file.Close()
	}
	if w.buffer != nil && !w.lent {
		chunks.Put(w.buffer)
		w.buffer = nil
	}
}

// appendEnd appends head and tail for a body of so many bytes; at is where they will be in the file.
func appendEnd(b []byte, m *Meta, id uint64, length, at int64, sums []uint32) (end []byte, sum uint32) {
	begin := len(b)
	b = binary.LittleEndian.AppendUint64(b, id)
	b = m.append(b)
	for _, c := range sums {
		b = binary.LittleEndian.AppendUint32(b, c)
	}
	head := b[begin:]
	sum = crc32.Checksum(head, castagnoli)
	tail := len(b)
	b = binary.LittleEndian.AppendUint32(b, tailMagic)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(head)))
	b = binary.LittleEndian.AppendUint64(b, uint64(at))
	b = binary.LittleEndian.AppendUint64(b, uint64(length))
	b = binary.LittleEndian.AppendUint32(b, sum)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b[tail:], castagnoli)), sum
}

// ending is what a tail says.
type ending struct {
	headAt, length int64
	headLength     int
	sum            uint32
}

func readTail(b []byte, size int64) (e ending, ok bool) {
	if len(b) != tailSize || binary.LittleEndian.Uint32(b) != tailMagic ||
		crc32.Checksum(b[:tailSize-4], castagnoli) != binary.LittleEndian.Uint32(b[tailSize-4:]) {
		return e, false
	}
	e.headLength = int(binary.LittleEndian.Uint32(b[4:]))
	e.headAt = int64(binary.LittleEndian.Uint64(b[8:]))
	e.length = int64(binary.LittleEndian.Uint64(b[16:]))
	e.sum = binary.LittleEndian.Uint32(b[24:])
	ok = e.headLength <= maxHead && e.length >= 0 && e.headAt >= preamble+e.length && e.headAt+int64(e.headLength)+tailSize == size
	return e, ok
}

// readEnd reads head and tail of a file of so many bytes.
func readEnd(file io.ReaderAt, id uint64, size int64) (m *Meta, e ending, sums []uint32, err error) {
	if size < preamble+tailSize {
		return nil, e, nil, errNotOurs
	}
	b := make([]byte, min(headRead, size))
	if _, err := file.ReadAt(b, size-int64(len(b))); err != nil {
		return nil, e, nil, err
	}
	e, ok := readTail(b[len(b)-tailSize:], size)
	if !ok {
		return nil, e, nil, errNotOurs
	}
	if missing := e.headLength + tailSize - len(b); missing > 0 {
		b = make([]byte, e.headLength+tailSize)
		if _, err := file.ReadAt(b, e.headAt); err != nil {
			return nil, e, nil, err
		}
	}
	head := b[len(b)-tailSize-e.headLength : len(b)-tailSize]
	m, sums, err = decodeHead(head, id, &e)
	return m, e, sums, err
}

func decodeHead(head []byte, id uint64, e *ending) (*Meta, []uint32, error) {
	if crc32.Checksum(head, castagnoli) != e.sum || len(head) < 8 || binary.LittleEndian.Uint64(head) != id {
		return nil, nil, errNotOurs
	}
	m, rest, err := decodeMeta(head[8:])
	if err != nil {
		return nil, nil, err
	}
	n := (e.length + chunk - 1) / chunk
	if int64(len(rest)) != n*4 {
		return nil, nil, errNotOurs
	}
	sums := make([]uint32, n)
	for i := range sums {
		sums[i] = binary.LittleEndian.Uint32(rest[i*4:])
	}
	return m, sums, nil
}
