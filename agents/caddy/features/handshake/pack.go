package handshake

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"sync"

	"google.golang.org/protobuf/proto"

	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
	nodev1 "edge.svc/caddy/gen/svc/node/v1"
)

const (
	packName = "certificates.pack"
	// A chain has at most ten certificates; anything longer is not a record.
	maxRecordBytes = 1 << 20
	headBytes      = 8
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// fingerprint is the SHA-256 of the leaf of a certificate in DER.
type fingerprint [32]byte

// place is where the payload of a record is; no length = there is no record.
type place struct {
	at     int64
	length uint32
	// Of the payload.
	sum uint32
}

// holdsThatOf reports whether two records, which may be of two files, hold the same.
func (a place) holdsThatOf(b place) bool { return a.length == b.length && a.sum == b.sum }

// found is a record of a certificate.
type found struct {
	id     fingerprint
	staple bool
	place  place
}

// whereabouts say where the pack has what there is of a certificate. Hundreds of thousands of them are held, so they are
// small; nothing of the material itself is.
type whereabouts struct{ material, staple place }

// with has a record that was found in the place of the one of its kind.
func (w whereabouts) with(f found) whereabouts {
	if f.staple {
		w.staple = f.place
	} else {
		w.material = f.place
	}
	return w
}

func (w whereabouts) saysThatOf(other whereabouts) bool {
	return w.material.holdsThatOf(other.material) && w.staple.holdsThatOf(other.staple)
}

// pack reads the file of certificates that the agent writes. It never writes, and cuts nothing.
type pack struct {
	path string
	// For tests: what records are read through while they are looked for.
	through func(io.ReaderAt) io.ReaderAt

	// One looks for records at a time, and it alone changes what follows. Handshakes do not wait for it.
	reading sync.Mutex

	mu sync.RWMutex
	contents
	// What is wrong with the file, "" for nothing.
	damage string
}

// contents are what was read of a file.
type contents struct {
	file  *os.File
	index map[fingerprint]whereabouts
	// Up to where the file was read.
	end int64
}

func newPack(path string) *pack {
	return &pack{path: path, contents: contents{index: map[fingerprint]whereabouts{}}}
}

// read takes over what was added to the file since it was read last, or all of it where it is another one. It calls
// changed for each fingerprint of which there is something else now than there was.
func (p *pack) read(changed func(fingerprint)) error {
	p.reading.Lock()
	defer p.reading.Unlock()
	file, err := os.Open(p.path)
	if errors.Is(err, fs.ErrNotExist) {
		p.replace(contents{index: map[fingerprint]whereabouts{}}, "", changed)
		return nil
	}
	if err != nil {
		p.report(fmt.Sprintf("the pack of certificates cannot be opened: %v", err))
		return err
	}
	if p.isSame(file) {
		_ = file.Close()
		return p.follow(changed)
	}
	// The other one is served from until this one is known.
	other := contents{file: file, index: map[fingerprint]whereabouts{}}
	damage, err := p.scan(&other, func(f found) { other.index[f.id] = other.index[f.id].with(f) })
	if err != nil && p.file != nil {
		_ = file.Close()
		p.report(damage)
		return err
	}
	p.replace(other, damage, changed)
	return err
}

// isSame reports whether a file is the one that is held, and no shorter than what was read of it.
func (p *pack) isSame(file *os.File) bool {
	if p.file == nil {
		return false
	}
	held, err := p.file.Stat()
	if err != nil {
		return false
	}
	now, err := file.Stat()
	return err == nil && os.SameFile(held, now) && now.Size() >= p.end
}

// replace puts another file in the place of the one that is held. What both say of a certificate need not be read again.
func (p *pack) replace(other contents, damage string, changed func(fingerprint)) {
	former := p.contents
	p.mu.Lock()
	if former.file != nil {
		_ = former.file.Close()
	}
	p.contents, p.damage = other, damage
	p.mu.Unlock()
	for id, w := range former.index {
		if !w.saysThatOf(other.index[id]) {
			changed(id)
		}
	}
}

func (p *pack) report(damage string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.damage = damage
}

// follow takes over what was added to the file.
func (p *pack) follow(changed func(fingerprint)) error {
	added := contents{file: p.file, end: p.end}
	var all []found
	damage, err := p.scan(&added, func(f found) { all = append(all, f) })
	p.mu.Lock()
	for _, f := range all {
		p.index[f.id] = p.index[f.id].with(f)
	}
	p.end, p.damage = added.end, damage
	p.mu.Unlock()
	for _, f := range all {
		changed(f.id)
	}
	return err
}

// scan finds records from where the last one that was whole ended. A torn tail is what an append in progress looks like: it
// is read again the next time. A record that is damaged is left out, alone.
func (p *pack) scan(c *contents, find func(found)) (damage string, _ error) {
	info, err := c.file.Stat()
	if err != nil {
		return fmt.Sprintf("the pack of certificates cannot be read: %v", err), err
	}
	size := info.Size()
	var source io.ReaderAt = c.file
	if p.through != nil {
		source = p.through(source)
	}
	in := bufio.NewReaderSize(io.NewSectionReader(source, c.end, size-c.end), 256<<10)
	var payload []byte
	for c.end < size {
		var head [headBytes]byte
		if _, err := io.ReadFull(in, head[:]); err != nil {
			return c.cut(err)
		}
		length, sum := int64(binary.LittleEndian.Uint32(head[:4])), binary.LittleEndian.Uint32(head[4:])
		if length > maxRecordBytes {
			return fmt.Sprintf("the pack of certificates is damaged at byte %d; what comes before it is used", c.end), nil
		}
		next := c.end + headBytes + length
		if next > size {
			return c.cut(io.ErrUnexpectedEOF)
		}
		if int64(cap(payload)) < length {
			payload = make([]byte, length)
		}
		payload = payload[:length]
		if _, err := io.ReadFull(in, payload); err != nil {
			return c.cut(err)
		}
		why := ""
		if crc32.Checksum(payload, castagnoli) != sum {
			if next == size {
				return c.cut(io.ErrUnexpectedEOF)
			}
			why = "has a wrong checksum"
		} else if id, staple, ok := recordOf(payload); !ok {
			why = "cannot be decoded"
		} else {
			find(found{id, staple, place{c.end + headBytes, uint32(length), sum}})
		}
		if why != "" {
			damage = fmt.Sprintf("the pack of certificates is damaged: the record at byte %d %s and is left out", c.end, why)
		}
		c.end = next
	}
	return damage, nil
}

// cut tells a torn tail from a disk that cannot be read.
func (c *contents) cut(err error) (damage string, _ error) {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Sprintf("the pack of certificates is torn at byte %d; what comes before it is used", c.end), nil
	}
	return fmt.Sprintf("the pack of certificates cannot be read at byte %d: %v", c.end, err), err
}

// has reports whether there is material of a certificate.
func (p *pack) has(id fingerprint) bool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.index[id].material.length > 0
}

// problem says what is wrong with the file, "" when nothing is.
func (p *pack) problem() string {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.damage
}

// size is how many certificates there is something of.
func (p *pack) size() int {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return len(p.index)
}

var errNoMaterial = errors.New("the pack does not have this certificate")

// get reads what there is of a certificate; the staple is nil where there is none.
func (p *pack) get(id fingerprint) (*nodev1.CertificateMaterial, *nodev1.CertificateStaple, error) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	w := p.index[id]
	if w.material.length == 0 {
		return nil, nil, errNoMaterial
	}
	record, err := p.record(w.material)
	if err != nil {
		return nil, nil, err
	}
	material := record.GetMaterial()
	if w.staple.length == 0 {
		return material, nil, nil
	}
	if record, err = p.record(w.staple); err != nil {
		return nil, nil, err
	}
	return material, record.GetStaple(), nil
}

func (p *pack) record(from place) (*edgev1.CertificateRecord, error) {
	payload := make([]byte, from.length)
	if _, err := p.file.ReadAt(payload, from.at); err != nil {
		return nil, fmt.Errorf("cannot read the pack of certificates: %w", err)
	}
	record := &edgev1.CertificateRecord{}
	if err := proto.Unmarshal(payload, record); err != nil {
		return nil, fmt.Errorf("cannot decode its record in the pack: %w", err)
	}
	return record, nil
}
