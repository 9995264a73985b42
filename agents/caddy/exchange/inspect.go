package exchange

import (
	"errors"
	"io"
	"os"
)

// Room is where the beginnings of bodies are kept while they are looked at, bounded over all exchanges.
type Room interface {
	// Take reserves memory; false where there is none left.
	Take(bytes int) bool
	// Give returns what was taken.
	Give(bytes int)
	// File opens a file without a name for what does not fit into memory.
	File() (SpoolFile, error)
}

// SpoolFile is a file in which the end of a look lies. Closing it gives its bytes back.
type SpoolFile interface {
	io.WriterAt
	io.ReaderAt
	io.Closer
}

var _ SpoolFile = (*os.File)(nil)

// ErrNoRoom says that the beginning of a body finds no room, neither in memory nor in a file.
var ErrNoRoom = errors.New("there is no memory for the start of a request body")

const (
	// What one look keeps in memory; more of it goes into a file. It is taken as bytes come in, in steps that double.
	lookMemory = 128 << 10
	lookStep   = 16 << 10
	spoolPiece = 32 << 10
)

// kept is what a look keeps beside Body.head.
type kept struct {
	room  Room
	taken int
	file  SpoolFile
	// Bytes in the file.
	filed int64
	// What came and found no room: with it the look ended.
	over []byte
}

// Inspect reads the first n bytes of the body, fewer where it has no more: whole is true then. Whoever reads the body
// afterwards gets them all the same, and Inspected returns them as often as it is asked. It fails with ErrNoRoom, as the
// spool file does, or as Read would; what came until then is not lost for that. It is called once, after looks that were
// no longer than n.
func (b *Body) Inspect(n int64, room Room) (whole bool, err error) {
	if b.stream == nil {
		return true, nil
	}
	b.kept.room = room
	memory := int(min(n, lookMemory))
	if b.Length > 0 {
		memory = int(min(int64(memory), b.Length))
	}
	// What was looked at before is in memory already.
	for seen := len(b.head); b.kept.taken < memory; {
		step := min(memory-b.kept.taken, max(b.kept.taken, seen, lookStep))
		if !room.Take(step) {
			break
		}
		b.kept.taken += step
		if _, whole, err = b.Look(b.kept.taken); err != nil || whole {
			return whole, err
		}
	}
	return b.spool(n)
}

// Gather reads the body until it is whole, or so many bytes are kept in memory. Whoever reads the body afterwards gets them
// all the same. Errors are those of Read.
func (b *Body) Gather(memory int) (whole bool, err error) {
	if b.Whole() {
		return true, nil
	}
	if b.Length > 0 {
		memory = int(min(int64(memory), b.Length))
	}
	if b.InspectedLength() >= int64(memory) {
		return false, nil
	}
	_, whole, err = b.Look(memory)
	return whole, err
}

// GatherMore is Gather for what follows, which goes into a file: up to most bytes are kept in all. A body that is longer, or
// finds no room, is not whole: what is left has a higher minimum rate, because it holds an origin.
func (b *Body) GatherMore(most int64, room Room) (whole bool, err error) {
	if b.kept.room == nil {
		b.kept.room = room
	}
	if len(b.kept.over) == 0 {
		if whole, _ = b.spool(most); whole {
			return true, nil
		}
		if b.Failed() {
			return false, b.end
		}
	}
	b.rate, b.waited, b.came = heldBodyRate, 0, 0
	return false, nil
}

// Whole reports whether all of the body was read and is kept.
func (b *Body) Whole() bool { return !b.gone && (b.stream == nil || b.end == io.EOF) }

// spool reads what follows the head into a file, until n bytes are kept in all.
func (b *Body) spool(n int64) (whole bool, err error) {
	var piece []byte
	for b.end == nil && b.InspectedLength() < n {
		if piece == nil {
			piece = make([]byte, min(spoolPiece, n-b.InspectedLength()))
			if !b.Reserve(len(piece)) {
				b.end = ErrNoMemory
				break
			}
			defer b.release(int64(len(piece)))
		}
		room := piece[:min(int64(len(piece)), n-b.InspectedLength())]
		got := b.receive(room)
		if got == 0 {
			continue
		}
		written, err := b.file(room[:got])
		b.kept.filed += int64(written)
		if err != nil {
			b.kept.over = room[written:got]
			return false, err
		}
	}
	if b.Length > 0 && b.InspectedLength() == b.Length && b.end == nil {
		b.end = io.EOF
		b.disarm()
	}
	if b.end != nil && b.end != io.EOF {
		return false, b.end
	}
	return b.end == io.EOF, nil
}

// file appends to the file, which it makes for the first bytes.
func (b *Body) file(p []byte) (written int, err error) {
	if b.kept.file == nil {
		if b.kept.file, err = b.kept.room.File(); err != nil {
			b.kept.file = nil
			return 0, err
		}
	}
	return b.kept.file.WriteAt(p, b.kept.filed)
}

// unspool takes what lies beyond the head into it.
func (b *Body) unspool() error {
	if !b.Reserve(int(b.InspectedLength()) - len(b.head)) {
		return ErrNoMemory
	}
	head := make([]byte, b.InspectedLength())
	if n, err := (keptReader{b}).ReadAt(head, 0); n < len(head) {
		return err
	}
	if b.kept.file != nil {
		_ = b.kept.file.Close()
	}
	b.head, b.kept.file, b.kept.filed, b.kept.over = head, nil, 0, nil
	return nil
}

// Inspected reads what Inspect kept, from its first byte.
func (b *Body) Inspected() io.ReadSeeker {
	return io.NewSectionReader(keptReader{b}, 0, b.InspectedLength())
}

// InspectedLength is how many bytes Inspect kept.
func (b *Body) InspectedLength() int64 {
	return int64(len(b.head)) + b.kept.filed + int64(len(b.kept.over))
}

type keptReader struct{ body *Body }

// ReadAt reads over the borders between memory, file and what found no room in it.
func (r keptReader) ReadAt(p []byte, at int64) (n int, err error) {
	b := r.body
	if at < int64(len(b.head)) {
		n = copy(p, b.head[at:])
	}
	from := at + int64(n) - int64(len(b.head))
	if n < len(p) && from < b.kept.filed {
		filed := int(min(int64(len(p)-n), b.kept.filed-from))
		more, err := b.kept.file.ReadAt(p[n:n+filed], from)
		n, from = n+more, from+int64(more)
		if more < filed {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return n, err
		}
	}
	if beyond := from - b.kept.filed; n < len(p) && beyond < int64(len(b.kept.over)) {
		n += copy(p[n:], b.kept.over[beyond:])
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// forget gives back what was kept.
func (b *Body) forget() {
	if b.kept.file != nil {
		_ = b.kept.file.Close()
	}
	if b.kept.room != nil {
		b.kept.room.Give(b.kept.taken)
	}
	b.kept = kept{}
	b.release(b.reserved)
}
