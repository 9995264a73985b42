package bans

import (
	"encoding/binary"
	"math/bits"
	"math/rand/v2"
	"net/netip"
	"sync/atomic"
)

// filter answers "certainly not banned by anything" from one word of memory for each prefix length in use. Most clients
// are not banned, and the tries are larger than a processor's caches, so this is what a flood from ever new addresses
// costs. It is a Bloom filter with three bits a ban in one word, and counts at the writer's side.
type filter struct {
	seed  uint64
	words []atomic.Uint64
	// Bit n says that bans of length n exist.
	lengths4 atomic.Uint64
	lengths6 [3]atomic.Uint64

	// Writer only. A count of 255 means many and never changes again.
	counts []uint8
	count4 [33]int32
	count6 [129]int32
}

const (
	filterBitsPerBan = 20
	// With more lengths in use than this the tries are as fast.
	maxFilterLengths = 8
)

func newFilter(capacity int) *filter {
	size := 1 << bits.Len(uint(max(capacity, 64)*filterBitsPerBan/64-1))
	return &filter{seed: rand.Uint64(), words: make([]atomic.Uint64, size), counts: make([]uint8, size*64)}
}

// excludes says that no ban of any scope covers addr, which is not IPv4-mapped.
func (f *filter) excludes(addr netip.Addr) bool {
	if addr.Is4() {
		lengths := f.lengths4.Load()
		if bits.OnesCount64(lengths) > maxFilterLengths {
			return false
		}
		raw := addr.As4()
		host := uint64(binary.BigEndian.Uint32(raw[:])) << 32
		for ; lengths != 0; lengths &= lengths - 1 {
			length := bits.TrailingZeros64(lengths)
			if f.has(host&^(1<<(64-length)-1), 0, length) {
				return false
			}
		}
		return true
	}
	raw := addr.As16()
	high, low := binary.BigEndian.Uint64(raw[:8]), binary.BigEndian.Uint64(raw[8:])
	left := maxFilterLengths
	for word := range f.lengths6 {
		lengths := f.lengths6[word].Load()
		for ; lengths != 0; lengths &= lengths - 1 {
			length := word*64 + bits.TrailingZeros64(lengths)
			if left--; left < 0 {
				return false
			}
			if f.has(mask6(high, low, length)) {
				return false
			}
		}
	}
	return true
}

func mask6(high, low uint64, length int) (uint64, uint64, int) {
	if length <= 64 {
		return high &^ (1<<(64-length) - 1), 0, length
	}
	return high, low &^ (1<<(128-length) - 1), length
}

func (f *filter) has(high, low uint64, length int) bool {
	word, want := f.place(high, low, length)
	return f.words[word].Load()&want == want
}

// place chooses a word and three bits of it.
func (f *filter) place(high, low uint64, length int) (word int, want uint64) {
	h := (high ^ f.seed) * 0x9e3779b97f4a7c15
	h = (h ^ h>>32 ^ low ^ uint64(length)) * 0xd6e8feb86659fd93
	h ^= h >> 32
	h *= 0xd6e8feb86659fd93
	want = 1<<(h>>58) | 1<<(h>>52&63) | 1<<(h>>46&63)
	return int(h & uint64(len(f.words)-1)), want
}

func (f *filter) add(r *record) {
	high, low := r.halves()
	word, want := f.place(high, low, int(r.bits))
	f.change(word, want, 1)
	f.countLength(r, 1)
}

func (f *filter) remove(r *record) {
	high, low := r.halves()
	f.countLength(r, -1)
	word, want := f.place(high, low, int(r.bits))
	f.change(word, want, -1)
}

func (f *filter) change(word int, want uint64, by int) {
	now := f.words[word].Load()
	for ; want != 0; want &= want - 1 {
		bit := bits.TrailingZeros64(want)
		count := &f.counts[word*64+bit]
		if *count < 255 {
			*count = uint8(int(*count) + by)
		}
		if *count > 0 {
			now |= 1 << bit
		} else {
			now &^= 1 << bit
		}
	}
	f.words[word].Store(now)
}

func (f *filter) countLength(r *record, by int32) {
	count, lengths := &f.count6[r.bits], &f.lengths6[r.bits/64]
	if r.is4 {
		count, lengths = &f.count4[r.bits], &f.lengths4
	}
	*count += by
	if bit := uint64(1) << (r.bits % 64); *count > 0 {
		lengths.Store(lengths.Load() | bit)
	} else {
		lengths.Store(lengths.Load() &^ bit)
	}
}

// halves is the network's address in two words, an IPv4 address at the top of the first.
func (r *record) halves() (high, low uint64) {
	if r.is4 {
		return uint64(binary.BigEndian.Uint32(r.addr[:4])) << 32, 0
	}
	return binary.BigEndian.Uint64(r.addr[:8]), binary.BigEndian.Uint64(r.addr[8:])
}
