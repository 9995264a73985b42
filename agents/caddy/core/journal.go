package core

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"

	"google.golang.org/protobuf/proto"

	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
)

const (
	journalFormat = 1
	// A record holds at most one page of a snapshot; anything longer is not a record.
	maxRecordBytes = 64 << 20
)

// ErrJournal says that a journal cannot be read, or says nothing while something is held: what was held keeps serving.
var ErrJournal = errors.New("journal_unreadable")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Damage is what was wrong with a journal; the zero value is nothing.
type Damage struct {
	// Text says what it was, "" for nothing.
	Text string
	// The end is missing, as after a crash or while a record is being written.
	Torn bool
}

// ReadJournal calls each for every record after the header, in order, and returns the header. The reader never writes:
// a torn tail, which a crash or a write in progress leaves, and anything after a damaged record are left alone and come
// back as damage. Without a file there is neither header nor damage.
func ReadJournal(path string, each func(*edgev1.JournalRecord)) (*edgev1.JournalHeader, Damage) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, Damage{}
	}
	if err != nil {
		return nil, Damage{Text: fmt.Sprintf("journal cannot be opened: %v", err)}
	}
	defer f.Close()
	return readRecords(bufio.NewReaderSize(f, 256<<10), path, each)
}

func readRecords(r *bufio.Reader, path string, each func(*edgev1.JournalRecord)) (header *edgev1.JournalHeader, _ Damage) {
	damaged := func(record int, offset int64, what string) Damage {
		return Damage{Text: fmt.Sprintf("journal %s: record %d at byte %d %s; what comes before it is used", path, record, offset, what)}
	}
	torn := func(record int, offset int64) Damage {
		d := damaged(record, offset, "is torn")
		d.Torn = true
		return d
	}
	// A disk that cannot be read is not the end of a file.
	cut := func(record int, offset int64, err error) Damage {
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			return torn(record, offset)
		}
		return damaged(record, offset, fmt.Sprintf("cannot be read: %v", err))
	}
	var payload []byte
	var offset int64
	for n := 0; ; n++ {
		var head [8]byte
		if _, err := io.ReadFull(r, head[:]); err != nil {
			if err == io.EOF {
				if header == nil {
					return nil, Damage{Text: fmt.Sprintf("journal %s is empty", path), Torn: true}
				}
				return header, Damage{}
			}
			return header, cut(n, offset, err)
		}
		length := binary.LittleEndian.Uint32(head[:4])
		if length > maxRecordBytes {
			return header, damaged(n, offset, "is corrupt: its length is out of range")
		}
		var err error
		if payload, err = readPayload(r, payload, int(length)); err != nil {
			return header, cut(n, offset, err)
		}
		if crc32.Checksum(payload, castagnoli) != binary.LittleEndian.Uint32(head[4:]) {
			if _, err := r.Peek(1); err != nil {
				return header, torn(n, offset)
			}
			return header, damaged(n, offset, "is corrupt: its checksum is wrong")
		}
		record := &edgev1.JournalRecord{}
		if err := proto.Unmarshal(payload, record); err != nil {
			return header, damaged(n, offset, "is corrupt: it cannot be decoded")
		}
		switch {
		case n == 0:
			h := record.GetHeader()
			if h == nil {
				return nil, damaged(n, offset, "is corrupt: it is not a header")
			}
			if h.GetFormat() != journalFormat {
				return nil, Damage{Text: fmt.Sprintf("journal %s has format %d, this version reads %d", path, h.GetFormat(), journalFormat)}
			}
			header = h
		case record.GetHeader() != nil:
			return header, damaged(n, offset, "is corrupt: it is a second header")
		default:
			each(record)
		}
		offset += int64(len(head)) + int64(length)
	}
}

// readPayload reads n bytes into a buffer that grows only as bytes arrive, so that a wrong length costs nothing.
func readPayload(r io.Reader, buf []byte, n int) ([]byte, error) {
	const step = 1 << 20
	buf = buf[:0]
	for len(buf) < n {
		at := len(buf)
		more := min(step, n-at)
		if cap(buf)-at < more {
			buf = append(buf, make([]byte, more)...)
		} else {
			buf = buf[:at+more]
		}
		if _, err := io.ReadFull(r, buf[at:at+more]); err != nil {
			return nil, err
		}
	}
	return buf, nil
}

// Reading is what a journal said, beside its records.
type Reading struct {
	Header *edgev1.JournalHeader
	Damage Damage
	// A record named a position: the journal says how much there is.
	Stated bool
}

// refused tells why a journal may not take the place of what is held; "" when it may. Neither damage nor a missing file
// nor a new one says that everything is gone. A torn tail is what a write in progress looks like.
func (r *Reading) refused(name string, holds, otherCluster bool) string {
	switch {
	case r.Damage.Text != "" && !r.Damage.Torn:
		return r.Damage.Text
	case r.Header == nil && r.Damage.Text != "":
		return r.Damage.Text
	case r.Header == nil:
		return fmt.Sprintf("journal %s is missing", name)
	case holds && !r.Stated && !otherCluster:
		return fmt.Sprintf("journal %s does not say what it holds", name)
	}
	return ""
}

// Judge decides whether what a journal said takes the place of what is held, and remembers what was wrong with it. It fails
// with ErrJournal when everything has to stay as it is; never for a process that isNew, which has nothing to keep.
func (c *Core) Judge(name string, r *Reading, isNew, holds bool) error {
	c.notesMu.Lock()
	before := c.clusters[name]
	c.notesMu.Unlock()
	otherCluster := before != "" && r.Header.GetClusterId() != before
	if why := r.refused(name, holds, otherCluster); why != "" && !isNew {
		c.NoteJournal(name, nil, Damage{Text: why})
		return fmt.Errorf("%w: %s", ErrJournal, why)
	}
	c.NoteJournal(name, r.Header, r.Damage)
	c.notesMu.Lock()
	c.clusters[name] = r.Header.GetClusterId()
	c.notesMu.Unlock()
	return nil
}
