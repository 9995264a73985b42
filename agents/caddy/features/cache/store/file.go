package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"sync"
)

const (
	magic     = "SVCRES\x01\n"
	tailMagic = 0x53564354
	preamble  = 16
	tailSize  = 32
	// chunk is how much of a body has one check sum.
	chunk = 64 << 10
	// folders is how many the files are spread over.
	folders = 4096
	// What a reader takes of the end of a file at first.
	headRead = 4 << 10
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// errNotOurs says that a file is torn, of another zone, of another object, or damaged.
var errNotOurs = errors.New("the file is not the stored response")

func (s *Store) path(id uint64) string {
	return filepath.Join(s.dir, fmt.Sprintf("%03x", id%folders), fmt.Sprintf("%016x", id))
}

var chunks = sync.Pool{New: func() any { return new([chunk]byte) }}

// Writer takes the body of a response as it comes. Until it has a chunk, nothing is written. Others may read what is there
// with ReadAt, from several goroutines, while one writes.
type Writer struct {
	store *Store
	id    uint64

	mu     sync.Mutex
	small  []byte
	file   *os.File
	length int64
	sums   []uint32
	ended  bool
}

// Write appends to the body. After an error nothing more may be written, and the Writer must be aborted; what was written
// before can still be read.
func (w *Writer) Write(p []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.file == nil && len(w.small)+len(p) <= chunk {
		w.small = append(w.small, p...)
		w.count(p)
		return nil
	}
	if w.file == nil {
		if err := w.open(); err != nil {
			return err
		}
	}
	if _, err := w.file.WriteAt(p, preamble+w.length); err != nil {
		return err
	}
	w.count(p)
	return nil
}

// open creates the file with what came so far.
func (w *Writer) open() error {
	file, err := w.store.create(w.id)
	if err != nil {
		return err
	}
	if _, err := file.WriteAt(append(w.store.preamble(), w.small...), 0); err != nil {
		_ = file.Close()
		_ = os.Remove(file.Name())
		return err
	}
	w.file = file
	return nil
}

func (s *Store) create(id uint64) (*os.File, error) {
	name := s.path(id)
	file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrNotExist) {
		if err = os.MkdirAll(filepath.Dir(name), 0o700); err == nil {
			file, err = os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		}
	}
	return file, err
}

func (s *Store) preamble() []byte { return append([]byte(magic), s.zone[:]...) }

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

// ReadAt reads what was written already.
func (w *Writer) ReadAt(p []byte, at int64) (int, error) {
	w.mu.Lock()
	if w.file == nil {
		defer w.mu.Unlock()
		if at >= int64(len(w.small)) {
			return 0, io.EOF
		}
		return copy(p, w.small[at:]), nil
	}
	file, left := w.file, w.length-at
	w.mu.Unlock()
	if left <= 0 {
		return 0, io.EOF
	}
	return file.ReadAt(p[:min(int64(len(p)), left)], preamble+at)
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
	defer w.mu.Unlock()
	if w.ended {
		return
	}
	w.ended = true
	if remove && w.file != nil {
		_ = os.Remove(w.file.Name())
	}
}

// Release closes the file once nobody reads from the Writer any more. It aborts what was not committed.
func (w *Writer) Release() {
	w.end(true)
	if w.file != nil {
		_ = w.file.Close()
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
