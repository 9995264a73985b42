package store

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
)

const recordSize = 48

const (
	opPut = iota + 1
	opRemove
)

func appendRecord(b []byte, op uint8, e *entry) []byte {
	begin := len(b)
	b = append(b, op, 0)
	b = binary.LittleEndian.AppendUint16(b, e.vary)
	b = binary.LittleEndian.AppendUint32(b, e.used)
	for _, n := range []uint64{e.url, e.variant, e.id, e.size} {
		b = binary.LittleEndian.AppendUint64(b, n)
	}
	b = binary.LittleEndian.AppendUint32(b, e.sum)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b[begin:], castagnoli))
}

func readRecord(b []byte) (op uint8, e entry, ok bool) {
	if crc32.Checksum(b[:recordSize-4], castagnoli) != binary.LittleEndian.Uint32(b[recordSize-4:]) {
		return 0, e, false
	}
	e.vary, e.used = binary.LittleEndian.Uint16(b[2:]), binary.LittleEndian.Uint32(b[4:])
	e.url, e.variant = binary.LittleEndian.Uint64(b[8:]), binary.LittleEndian.Uint64(b[16:])
	e.id, e.size = binary.LittleEndian.Uint64(b[24:]), binary.LittleEndian.Uint64(b[32:])
	e.sum = binary.LittleEndian.Uint32(b[40:])
	return b[0], e, true
}

// journal is the log of changes of the index. A checkpoint with a number holds what all logs of lower numbers say.
type journal struct {
	dir string

	mu     sync.Mutex
	open   bool
	buffer []byte
	count  int

	// Held while files are written, which nobody else waits for.
	writing sync.Mutex
	number  int
	file    logFile
	size    int64
	spare   []byte
}

type logFile interface {
	io.WriterAt
	io.Closer
}

// maxBuffered is how much of the log is kept in memory while the disk takes none. What is more is lost: it is found by the
// next sweep, or its file is not.
const maxBuffered = 16 << 20

func (j *journal) name(kind string, number int) string {
	return filepath.Join(j.dir, fmt.Sprintf("%s.%d", kind, number))
}

// numbers are those of the files of a kind, sorted.
func (j *journal) numbers(kind string) (list []int) {
	names, _ := filepath.Glob(filepath.Join(j.dir, kind+".*"))
	for _, name := range names {
		if n, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(name), kind+".")); err == nil {
			list = append(list, n)
		}
	}
	slices.Sort(list)
	return list
}

// append adds a record; it is written by the next flush.
func (j *journal) append(op uint8, e *entry) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.open && len(j.buffer) < maxBuffered {
		j.buffer = appendRecord(j.buffer, op, e)
		j.count++
	}
}

func (j *journal) flush() error {
	j.writing.Lock()
	defer j.writing.Unlock()
	return j.write()
}

// write writes what was appended. Records that were written in part stay, and are written in the same place by the next call.
// The caller holds writing.
func (j *journal) write() error {
	j.mu.Lock()
	records := j.buffer
	j.buffer = j.spare[:0]
	j.mu.Unlock()
	if len(records) == 0 {
		j.spare = records
		return nil
	}
	_, err := j.file.WriteAt(records, j.size)
	if err == nil {
		j.size += int64(len(records))
		if j.spare = records; cap(records) > 1<<20 {
			j.spare = nil
		}
		return nil
	}
	j.mu.Lock()
	j.buffer, j.spare = append(records, j.buffer...), nil
	j.mu.Unlock()
	return err
}

// next begins another log.
func (j *journal) next() error {
	j.writing.Lock()
	defer j.writing.Unlock()
	return j.rotate()
}

func (j *journal) rotate() error {
	if j.file != nil {
		_ = j.write()
	}
	file, err := os.OpenFile(j.name("log", j.number+1), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if j.file != nil {
		_ = j.file.Close()
	}
	j.file, j.size = file, 0
	j.number++
	j.mu.Lock()
	j.open, j.count = true, 0
	j.mu.Unlock()
	return j.write()
}

func (j *journal) close() {
	j.writing.Lock()
	defer j.writing.Unlock()
	if j.file == nil {
		return
	}
	_ = j.write()
	_ = j.file.Close()
	j.file = nil
	j.mu.Lock()
	j.open, j.buffer = false, nil
	j.mu.Unlock()
}

// replay reads the newest checkpoint and the logs since, each up to the first record that is not whole.
func (j *journal) replay(apply func(op uint8, e entry)) {
	from := 0
	checkpoints := j.numbers("index")
	if len(checkpoints) > 0 {
		from = checkpoints[len(checkpoints)-1]
		j.readFile(j.name("index", from), apply)
	}
	for _, n := range j.numbers("log") {
		if j.number = max(j.number, n); n >= from {
			j.readFile(j.name("log", n), apply)
		}
	}
	j.number = max(j.number, from)
}

func (j *journal) readFile(name string, apply func(op uint8, e entry)) {
	file, err := os.Open(name)
	if err != nil {
		return
	}
	defer file.Close()
	r := bufio.NewReaderSize(file, 1<<20)
	record := make([]byte, recordSize)
	for {
		if _, err := io.ReadFull(r, record); err != nil {
			return
		}
		op, e, ok := readRecord(record)
		if !ok {
			return
		}
		apply(op, e)
	}
}

// checkpoint writes the whole index, and removes the logs before.
func (j *journal) checkpoint(x *index) error {
	if err := j.next(); err != nil {
		return err
	}
	name := j.name("index", j.number)
	file, err := os.OpenFile(name+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	var b []byte
	x.each(func(entries []entry) bool {
		b = b[:0]
		for i := range entries {
			b = appendRecord(b, opPut, &entries[i])
		}
		_, err = file.Write(b)
		return err == nil
	})
	if err == nil {
		err = file.Sync()
	}
	if err == nil {
		err = os.Rename(name+".new", name)
	}
	if err != nil {
		return err
	}
	for _, kind := range []string{"index", "log"} {
		for _, n := range j.numbers(kind) {
			if n < j.number {
				_ = os.Remove(j.name(kind, n))
			}
		}
	}
	return nil
}

func (j *journal) length() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.count
}
