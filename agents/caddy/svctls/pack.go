package svctls

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

// whereabouts say where the pack has what there is of a certificate. Hundreds of thousands of them are held, so they are
// small; nothing of the material itself is.
type whereabouts struct {
	// Of the payload of the record; no length = no record.
	material, staple             int64
	materialLength, stapleLength uint32
}

// pack reads the file of certificates that the agent writes. It never writes, and cuts nothing.
type pack struct {
	path string

	mu    sync.RWMutex
	file  *os.File
	index map[fingerprint]whereabouts
	// Up to where the file was read.
	end int64
	// What is wrong with the file, "" for nothing.
	damage string
}

func newPack(path string) *pack { return &pack{path: path, index: map[fingerprint]whereabouts{}} }

// read takes over what was added to the file since it was read last, or all of it where it is another one. It calls
// changed for each fingerprint of which there is something else now; nil stands for all of them.
func (p *pack) read(changed func(*fingerprint)) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	file, err := os.Open(p.path)
	if errors.Is(err, fs.ErrNotExist) {
		if p.file != nil {
			p.replace(nil)
			changed(nil)
		}
		return nil
	}
	if err != nil {
		p.damage = fmt.Sprintf("the pack of certificates cannot be opened: %v", err)
		return err
	}
	if p.isSame(file) {
		_ = file.Close()
	} else {
		p.replace(file)
		changed(nil)
		changed = func(*fingerprint) {}
	}
	p.damage, err = p.follow(changed)
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

func (p *pack) replace(file *os.File) {
	if p.file != nil {
		_ = p.file.Close()
	}
	p.file, p.end, p.damage = file, 0, ""
	p.index = map[fingerprint]whereabouts{}
}

// follow reads records from where the last one that was whole ended. A torn tail is what an append in progress looks
// like: it is read again the next time. A record that is damaged is left out, alone.
func (p *pack) follow(changed func(*fingerprint)) (damage string, _ error) {
	info, err := p.file.Stat()
	if err != nil {
		return fmt.Sprintf("the pack of certificates cannot be read: %v", err), err
	}
	size := info.Size()
	in := bufio.NewReaderSize(io.NewSectionReader(p.file, p.end, size-p.end), 256<<10)
	var payload []byte
	for p.end < size {
		var head [headBytes]byte
		if _, err := io.ReadFull(in, head[:]); err != nil {
			return p.cut(err)
		}
		length := int64(binary.LittleEndian.Uint32(head[:4]))
		if length > maxRecordBytes {
			return fmt.Sprintf("the pack of certificates is damaged at byte %d; what comes before it is used", p.end), nil
		}
		next := p.end + headBytes + length
		if next > size {
			return p.cut(io.ErrUnexpectedEOF)
		}
		if int64(cap(payload)) < length {
			payload = make([]byte, length)
		}
		payload = payload[:length]
		if _, err := io.ReadFull(in, payload); err != nil {
			return p.cut(err)
		}
		why := ""
		if crc32.Checksum(payload, castagnoli) != binary.LittleEndian.Uint32(head[4:]) {
			if next == size {
				return p.cut(io.ErrUnexpectedEOF)
			}
			why = "has a wrong checksum"
		} else if id, staple, ok := recordOf(payload); !ok {
			why = "cannot be decoded"
		} else {
			p.note(id, staple, p.end+headBytes, uint32(length))
			changed(&id)
		}
		if why != "" {
			damage = fmt.Sprintf("the pack of certificates is damaged: the record at byte %d %s and is left out", p.end, why)
		}
		p.end = next
	}
	return damage, nil
}

// cut tells a torn tail from a disk that cannot be read.
func (p *pack) cut(err error) (damage string, _ error) {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Sprintf("the pack of certificates is torn at byte %d; what comes before it is used", p.end), nil
	}
	return fmt.Sprintf("the pack of certificates cannot be read at byte %d: %v", p.end, err), err
}

func (p *pack) note(id fingerprint, staple bool, at int64, length uint32) {
	w := p.index[id]
	if staple {
		w.staple, w.stapleLength = at, length
	} else {
		w.material, w.materialLength = at, length
	}
	p.index[id] = w
}

// has reports whether there is material of a certificate.
func (p *pack) has(id fingerprint) bool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.index[id].materialLength > 0
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

var errNoMaterial = errors.New("there is no material of it")

// get reads what there is of a certificate; the staple is nil where there is none.
func (p *pack) get(id fingerprint) (*nodev1.CertificateMaterial, *nodev1.CertificateStaple, error) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	w := p.index[id]
	if w.materialLength == 0 {
		return nil, nil, errNoMaterial
	}
	record, err := p.record(w.material, w.materialLength)
	if err != nil {
		return nil, nil, err
	}
	material := record.GetMaterial()
	if w.stapleLength == 0 {
		return material, nil, nil
	}
	if record, err = p.record(w.staple, w.stapleLength); err != nil {
		return nil, nil, err
	}
	return material, record.GetStaple(), nil
}

func (p *pack) record(at int64, length uint32) (*edgev1.CertificateRecord, error) {
	payload := make([]byte, length)
	if _, err := p.file.ReadAt(payload, at); err != nil {
		return nil, fmt.Errorf("the pack of certificates cannot be read: %w", err)
	}
	record := &edgev1.CertificateRecord{}
	if err := proto.Unmarshal(payload, record); err != nil {
		return nil, fmt.Errorf("the record of it cannot be decoded: %w", err)
	}
	return record, nil
}
