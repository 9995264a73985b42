package purge

import (
	"bufio"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"google.golang.org/protobuf/proto"

	"edge.svc/caddy/features/cache/store"
	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
	nodev1 "edge.svc/caddy/gen/svc/node/v1"
)

const (
	fileName = "purges"
	// A record has the batches of one call of the agent.
	maxRecord = 64 << 20
	// The file is written anew once it has grown by this, and to twice its size.
	worthwhile = 1 << 20
)

var (
	errDamaged = errors.New("the file of purges is damaged")
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
)

// File keeps marks across restarts of the process, in the folder of the zone. Its methods may be called at the same time.
type File struct {
	path  string
	marks *Marks

	mu         sync.Mutex
	generation uint64
	cluster    string
	// Up to where all purges are in force; zero while that is not known.
	place store.Position
	// nil while there is no file, or none that can be appended to.
	file       *os.File
	size, base int64
}

// Open reads the file of a folder into marks, which are new. Where there is none, or it is damaged, a generation begins, and
// everything that was stored before is absent; err says what was damaged. It writes nothing.
func Open(dir string, marks *Marks) (f *File, err error) {
	f = &File{path: filepath.Join(dir, fileName), marks: marks}
	if err = f.read(); err == nil && f.generation != 0 {
		return f, nil
	}
	f.begin("")
	return f, err
}

// begin begins a generation.
func (f *File) begin(cluster string) {
	var b [8]byte
	for f.generation = 0; f.generation == 0; f.generation = binary.LittleEndian.Uint64(b[:]) {
		_, _ = rand.Read(b[:])
	}
	f.close()
	f.cluster, f.place = cluster, store.Position{}
	f.marks.Begin(f.generation)
}

func (f *File) close() {
	if f.file != nil {
		_ = f.file.Close()
		f.file = nil
	}
}

// Keep has the generation outlive the process: what is stored from now on is there after a restart.
func (f *File) Keep() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.file != nil {
		return nil
	}
	return f.rewrite()
}

// Apply puts purges of a cluster in force, and then on disk. place is reached with them; nil where more follows. After an
// error they are in force in this process, and the caller repeats them.
func (f *File) Apply(cluster string, batches [][]byte, place *edgev1.PurgePlace) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if cluster != f.cluster {
		if f.cluster != "" {
			f.begin(cluster)
		}
		f.cluster = cluster
		f.close()
	}
	record := &edgev1.PurgeRecord{Batches: batches, Place: place}
	if err := f.enforce(record); err != nil {
		return err
	}
	if f.file == nil || f.size > 2*f.base && f.size-f.base > worthwhile {
		return f.rewrite()
	}
	framed, err := frame(nil, record)
	if err == nil {
		_, err = f.file.Write(framed)
	}
	if err == nil {
		err = f.file.Sync()
	}
	if err != nil {
		// What of it is on disk is not known: the next call writes everything.
		f.close()
		return err
	}
	f.size += int64(len(framed))
	return nil
}

// enforce puts a record in force.
func (f *File) enforce(r *edgev1.PurgeRecord) error {
	var marks []Mark
	for _, b := range r.GetBatches() {
		batch := &nodev1.PurgeBatch{}
		if err := proto.Unmarshal(b, batch); err != nil {
			return fmt.Errorf("the purges cannot be decoded: %w", err)
		}
		marks = append(marks, marksOf(batch)...)
	}
	var place store.Position
	if p := r.GetPlace(); p != nil {
		place = store.Position{Epoch: p.GetEpoch(), Sequence: p.GetSequence()}
		f.place = place
	}
	f.marks.AddUpTo(place, marks...)
	return nil
}

// Place is whose purges are in force, and up to where. cluster is "" while that is not known.
func (f *File) Place() (cluster string, epoch, sequence uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.cluster, f.place.Epoch, f.place.Sequence
}

// rewrite writes a file with all marks in the place of the one that is there.
func (f *File) rewrite() (err error) {
	f.close()
	if err = os.MkdirAll(filepath.Dir(f.path), 0o700); err != nil {
		return err
	}
	next, err := os.OpenFile(f.path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	w := &pieces{file: next}
	err = w.record(&edgev1.PurgeRecord{ClusterId: f.cluster, Generation: f.generation})
	if err == nil {
		err = f.marks.Each(func(marks []Mark) error {
			b, err := proto.Marshal(batchOf(marks))
			if err != nil {
				return err
			}
			return w.record(&edgev1.PurgeRecord{Batches: [][]byte{b}})
		})
	}
	if err == nil && f.place != (store.Position{}) {
		err = w.record(&edgev1.PurgeRecord{Place: &edgev1.PurgePlace{Epoch: f.place.Epoch, Sequence: f.place.Sequence}})
	}
	if err == nil {
		err = w.write(0)
	}
	if err == nil {
		err = next.Sync()
	}
	if err == nil {
		err = os.Rename(next.Name(), f.path)
	}
	if err == nil {
		err = syncFolder(filepath.Dir(f.path))
	}
	if err != nil {
		_ = next.Close()
		return err
	}
	f.file, f.size, f.base = next, w.n, w.n
	return nil
}

func syncFolder(dir string) error {
	folder, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer folder.Close()
	return folder.Sync()
}

// pieces writes records in pieces of a megabyte.
type pieces struct {
	file *os.File
	b    []byte
	n    int64
}

func (p *pieces) record(r *edgev1.PurgeRecord) (err error) {
	if p.b, err = frame(p.b, r); err != nil {
		return err
	}
	return p.write(1 << 20)
}

// write writes what there is, if it is more than that.
func (p *pieces) write(more int) error {
	if len(p.b) <= more {
		return nil
	}
	n, err := p.file.Write(p.b)
	p.n, p.b = p.n+int64(n), p.b[:0]
	return err
}

// frame appends a record as it stands in the file.
func frame(b []byte, r *edgev1.PurgeRecord) ([]byte, error) {
	payload, err := proto.Marshal(r)
	if err != nil {
		return nil, err
	}
	head := len(b)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(payload)))
	// A wrong length would look like a record that is cut off.
	b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(b[head:], castagnoli))
	b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(payload, castagnoli))
	return append(b, payload...), nil
}

// read puts in force what the file says; without a file it does nothing. A last record that is cut off was acknowledged to
// nobody: the agent sees that its place was not reached.
func (f *File) read() error {
	file, err := os.Open(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	r := bufio.NewReaderSize(file, 256<<10)
	for first := true; ; first = false {
		record, err := readRecord(r)
		if !first && (err == io.EOF || err == io.ErrUnexpectedEOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%w: %w", errDamaged, err)
		}
		if !first {
			if err := f.enforce(record); err != nil {
				return fmt.Errorf("%w: %w", errDamaged, err)
			}
			continue
		}
		if record.GetGeneration() == 0 {
			return fmt.Errorf("%w: it has no header", errDamaged)
		}
		f.cluster, f.generation = record.GetClusterId(), record.GetGeneration()
		f.marks.Begin(f.generation)
	}
}

// readRecord returns io.EOF at the end of the file, and io.ErrUnexpectedEOF for a record that is cut off.
func readRecord(r *bufio.Reader) (*edgev1.PurgeRecord, error) {
	var head [12]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	length := binary.LittleEndian.Uint32(head[:4])
	if crc32.Checksum(head[:4], castagnoli) != binary.LittleEndian.Uint32(head[4:]) {
		return nil, errors.New("the length of a record is wrong")
	}
	if length > maxRecord {
		return nil, errors.New("a record is too long")
	}
	payload, err := readN(r, int(length))
	if err != nil {
		return nil, err
	}
	if crc32.Checksum(payload, castagnoli) != binary.LittleEndian.Uint32(head[8:]) {
		return nil, errors.New("the checksum of a record is wrong")
	}
	record := &edgev1.PurgeRecord{}
	return record, proto.Unmarshal(payload, record)
}

// readN reads n bytes into a buffer that grows as bytes arrive: a wrong length costs nothing.
func readN(r io.Reader, n int) (b []byte, err error) {
	const step = 1 << 20
	for len(b) < n {
		at := len(b)
		b = append(b, make([]byte, min(step, n-at))...)
		if _, err := io.ReadFull(r, b[at:]); err == io.EOF {
			return nil, io.ErrUnexpectedEOF
		} else if err != nil {
			return nil, err
		}
	}
	return b, nil
}
