package requestlog

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"runtime/debug"

	"golang.org/x/sys/unix"
)

// The ring is a file that is memory at the same time. All numbers are little-endian.
//
//	0      magic
//	8      name of the ring, random
//	16     head: where the next row goes; 24 tail: where the oldest row is. Both only grow; a place is theirs modulo the room
//	32     console's clock minus this machine's, milliseconds
//	4096   losses: 1,024 slots of 80 bytes: length of the site's id, the id, rows lost at 72. The first slot is of all others
//	98304  room for rows: length of the row (4), CRC-32C (4), length of the site's id (1), the id, the row; filled up to 8 bytes.
//	       A row never goes around: a length of all ones says that the next one is at the beginning of the room
//
// The head moves once a row is whole, so a process that is killed at any point leaves the ring readable.
const (
	ringMagic  = "svclog1\n"
	atName     = 8
	atHead     = 16
	atTail     = 24
	atOffset   = 32
	atLosses   = 4096
	lossSlots  = 1024
	lossBytes  = 80
	lossCount  = 72
	ringHeader = 98304
	rowHeader  = 9
	aligned    = 8
	skip       = ^uint32(0)

	// Room for about 100,000 rows.
	ringRoom = 32 << 20
	// A site has this much in any case.
	minShare = 256 << 10
	// The largest row: all fields at their limits.
	maxRow = 16 << 10
)

var (
	order      = binary.LittleEndian
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
	errNoRing  = errors.New("the file is no ring of rows")
)

// ring is not for several goroutines.
type ring struct {
	file *os.File
	data []byte
	room uint64
	// Bytes of each site in the ring.
	sites map[string]uint64
	// Slots of losses by site.
	slots map[string]int
	// How often losses grew in this process; 1 where there may be some of a former one.
	losses uint64
}

// openRing opens or makes the ring in a folder. Without a folder that takes it, the ring is in memory alone, and err says why.
func openRing(folder string, room int) (r *ring, err error) {
	path := ringPath(folder)
	r = &ring{room: uint64(room), sites: map[string]uint64{}, slots: map[string]int{}}
	if err = r.mapFile(path, ringHeader+room); err == nil {
		if err = r.restore(); err == nil {
			return r, nil
		}
		r.close()
		_ = os.Remove(path)
		again := err
		if err = r.mapFile(path, ringHeader+room); err == nil {
			r.begin()
			return r, again
		}
	}
	r.data = make([]byte, ringHeader+room)
	r.begin()
	return r, err
}

func ringPath(folder string) string { return filepath.Join(folder, "rows.ring") }

func (r *ring) mapFile(path string, size int) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	fail := func(err error) error {
		file.Close()
		return err
	}
	// Another process that still writes would make two heads.
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return fail(err)
	}
	info, err := file.Stat()
	if err != nil {
		return fail(err)
	}
	if info.Size() != int64(size) {
		if err := file.Truncate(0); err != nil {
			return fail(err)
		}
		// All of it is taken at once: a disk that fills up later takes nothing away.
		if err := unix.Fallocate(int(file.Fd()), 0, 0, int64(size)); err != nil {
			if !errors.Is(err, unix.EOPNOTSUPP) && !errors.Is(err, unix.ENOSYS) {
				return fail(err)
			}
			if _, err := file.Write(make([]byte, size)); err != nil {
				return fail(err)
			}
		}
	}
	data, err := unix.Mmap(int(file.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return fail(err)
	}
	r.file, r.data = file, data
	return nil
}

func (r *ring) close() {
	if r.file != nil {
		_ = unix.Munmap(r.data)
		_ = r.file.Close()
		r.file, r.data = nil, nil
	}
}

// begin makes the ring an empty one.
func (r *ring) begin() {
	clear(r.data[:ringHeader])
	var name [8]byte
	_, _ = rand.Read(name[:])
	copy(r.data[atName:], name[:])
	r.data[atName] |= 1
	copy(r.data, ringMagic)
	r.sites, r.slots = map[string]uint64{}, map[string]int{"": 0}
}

// restore takes over what a former process left. A file of zeros is a new one.
func (r *ring) restore() error {
	if string(r.data[:len(ringMagic)]) != ringMagic {
		if order.Uint64(r.data) == 0 && order.Uint64(r.data[atHead:]) == 0 {
			r.begin()
			return nil
		}
		return errNoRing
	}
	r.slots[""] = 0
	for slot := 1; slot < lossSlots; slot++ {
		if at := r.loss(slot); at[0] != 0 && at[0] <= maxSite {
			r.slots[string(at[1:1+at[0]])] = slot
		}
	}
	r.losses = 1
	head, tail := r.head(), r.tail()
	if tail > head || head-tail > r.room || head%aligned != 0 || tail%aligned != 0 {
		return fmt.Errorf("%w: from %d to %d", errNoRing, tail, head)
	}
	for at := tail; at < head; {
		size, site, row := r.read(at)
		if row == nil && size == 0 {
			return fmt.Errorf("%w: a row at %d", errNoRing, at)
		}
		if row != nil {
			r.sites[site] += size
		}
		at += size
	}
	return nil
}

func (r *ring) name() uint64 { return order.Uint64(r.data[atName:]) }
func (r *ring) head() uint64 { return order.Uint64(r.data[atHead:]) }
func (r *ring) tail() uint64 { return order.Uint64(r.data[atTail:]) }

func (r *ring) loss(slot int) []byte {
	at := atLosses + slot*lossBytes
	return r.data[at : at+lossBytes : at+lossBytes]
}

// read reads what is at a place: its size with all around it, and the row, which is nil for a jump to the beginning. Size 0
// says that nothing readable is there.
func (r *ring) read(at uint64) (size uint64, site string, row []byte) {
	place := at % r.room
	b := r.data[ringHeader+place:]
	length := order.Uint32(b)
	if length == skip {
		return r.room - place, "", nil
	}
	if len(b) < rowHeader || int(b[8]) > maxSite || uint64(length)+rowHeader+uint64(b[8]) > uint64(len(b)) {
		return 0, "", nil
	}
	end := rowHeader + int(b[8]) + int(length)
	if crc32.Checksum(b[8:end], castagnoli) != order.Uint32(b[4:]) {
		return 0, "", nil
	}
	return filled(end), string(b[rowHeader : rowHeader+int(b[8])]), b[rowHeader+int(b[8]) : end : end]
}

func filled(n int) uint64 { return uint64(n+aligned-1) / aligned * aligned }

// put stores a row, and reports false where there is no room for the site.
func (r *ring) put(site string, row []byte) bool {
	if len(site) > maxSite || len(row) > maxRow {
		return false
	}
	end := rowHeader + len(site) + len(row)
	size := filled(end)
	head, tail := r.head(), r.tail()
	place := head % r.room
	jump := uint64(0)
	if place+size > r.room {
		jump = r.room - place
	}
	used := head - tail
	if used+jump+size > r.room {
		return false
	}
	own, known := r.sites[site]
	if used > r.room/2 {
		// One share more than there are sites: who comes new finds room.
		share := max(r.room/2/uint64(len(r.sites)+1), minShare)
		if own+size > share {
			return false
		}
	}
	if jump > 0 {
		order.PutUint32(r.data[ringHeader+place:], skip)
		head += jump
		place = 0
	}
	b := r.data[ringHeader+place:]
	order.PutUint32(b, uint32(len(row)))
	b[8] = byte(len(site))
	copy(b[rowHeader:], site)
	copy(b[rowHeader+len(site):], row)
	order.PutUint32(b[4:], crc32.Checksum(b[8:end], castagnoli))
	order.PutUint64(r.data[atHead:], head+size)
	if known {
		r.sites[site] = own + size
	} else {
		r.sites[string(append([]byte(nil), site...))] = size
	}
	return true
}

// lose counts a row that is not stored.
func (r *ring) lose(site string) {
	slot, known := r.slots[site]
	if !known && len(r.slots) < lossSlots && len(site) <= maxSite {
		slot = len(r.slots)
		at := r.loss(slot)
		copy(at[1:], site)
		at[0] = byte(len(site))
		r.slots[string(append([]byte(nil), site...))] = slot
	}
	at := r.loss(slot)[lossCount:]
	order.PutUint64(at, order.Uint64(at)+1)
	r.losses++
}

// take copies rows from the oldest on, of so many bytes at most, and returns where they end.
func (r *ring) take(most, bytes int) (rows [][]byte, position uint64) {
	head := r.head()
	at, taken := r.tail(), 0
	for at < head && len(rows) < most && taken < bytes {
		size, _, row := r.read(at)
		if size == 0 {
			// What the disk made of it is of no use; nothing behind it can be found.
			r.lose("")
			return rows, head
		}
		if row != nil {
			rows = append(rows, append([]byte(nil), row...))
			taken += len(row)
		}
		at += size
	}
	return rows, at
}

// release gives up rows up to a position.
func (r *ring) release(position uint64) {
	at := r.tail()
	if position <= at || position > r.head() {
		return
	}
	for at < position {
		size, site, row := r.read(at)
		if size == 0 {
			clear(r.sites)
			break
		}
		if row != nil {
			if own := r.sites[site]; own > size {
				r.sites[site] = own - size
			} else {
				delete(r.sites, site)
			}
		}
		at += size
	}
	order.PutUint64(r.data[atTail:], position)
}

// guarded does something with memory that is a file. Where the disk fails below it, it reports false.
func guarded(do func()) (ok bool) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			if _, fault := p.(interface{ Addr() uintptr }); !fault {
				panic(p)
			}
			ok = false
		}
	}()
	do()
	return true
}
