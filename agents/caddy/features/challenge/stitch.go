package challenge

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"hash/crc32"
)

// stitched is a page of fixed parts with places between them. Its fixed parts are compressed once; what differs between
// responses goes into uncompressed blocks between them, so a response costs a copy and a checksum, not a compression.
type stitched struct {
	parts []stitchPart
}

// stitchPart is a fixed part and the slot that follows it; the last part has none.
type stitchPart struct {
	raw, deflated []byte
	crc           uint32
	shift         crcShift
	slot          slot
}

const (
	gzipHeader = "\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\xff"
	// Of a block that is not compressed; one holds up to 65,535 bytes, which no slot comes near.
	storedHeader = 5
)

func newStitched(texts []string, slots []slot) *stitched {
	s := &stitched{}
	for i, text := range texts {
		last := i == len(texts)-1
		p := stitchPart{raw: []byte(text), crc: crc32.ChecksumIEEE([]byte(text)), shift: newCRCShift(len(text))}
		var out bytes.Buffer
		// The level exists, and writing to memory cannot fail.
		w, _ := flate.NewWriter(&out, flate.BestCompression)
		_, _ = w.Write(p.raw)
		if last {
			_ = w.Close()
		} else {
			_ = w.Flush()
			p.slot = slots[i]
		}
		p.deflated = out.Bytes()
		s.parts = append(s.parts, p)
	}
	return s
}

// plain appends the page.
func (s *stitched) plain(dst []byte, f *filling) []byte {
	for i := range s.parts {
		p := &s.parts[i]
		dst = append(dst, p.raw...)
		if p.slot != noSlot {
			dst = f.append(dst, p.slot)
		}
	}
	return dst
}

// gzip appends the page as a gzip stream.
func (s *stitched) gzip(dst []byte, f *filling) []byte {
	dst = append(dst, gzipHeader...)
	crc, size := uint32(0), 0
	for i := range s.parts {
		p := &s.parts[i]
		dst = append(dst, p.deflated...)
		crc = p.shift.apply(crc) ^ p.crc
		size += len(p.raw)
		if p.slot == noSlot {
			continue
		}
		start := len(dst)
		dst = f.append(append(dst, 0, 0, 0, 0, 0), p.slot)
		text := dst[start+storedHeader:]
		if len(text) == 0 {
			dst = dst[:start]
			continue
		}
		n := uint16(len(text))
		binary.LittleEndian.PutUint16(dst[start+1:], n)
		binary.LittleEndian.PutUint16(dst[start+3:], ^n)
		crc = crc32.Update(crc, crc32.IEEETable, text)
		size += len(text)
	}
	dst = binary.LittleEndian.AppendUint32(dst, crc)
	return binary.LittleEndian.AppendUint32(dst, uint32(size))
}

// crcShift moves a CRC-32 past so many bytes of zeros: a linear map over its bits.
type crcShift [32]uint32

func (m *crcShift) apply(crc uint32) (out uint32) {
	for i := 0; crc != 0; i, crc = i+1, crc>>1 {
		out ^= m[i] & -(crc & 1)
	}
	return out
}

func newCRCShift(size int) (shift crcShift) {
	var step crcShift
	step[0] = crc32.IEEE
	for i := range shift {
		shift[i] = 1 << i
		if i > 0 {
			// One bit of zero.
			step[i] = 1 << (i - 1)
		}
	}
	for bits := 8 * size; bits > 0; bits >>= 1 {
		if bits&1 == 1 {
			for i := range shift {
				shift[i] = step.apply(shift[i])
			}
		}
		var square crcShift
		for i := range square {
			square[i] = step.apply(step[i])
		}
		step = square
	}
	return shift
}
