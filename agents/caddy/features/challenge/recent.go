package challenge

import (
	"hash/maphash"
	"net/netip"
	"sync"
	"sync/atomic"
)

const recentSlots = 1 << 16

// recent counts how often something happened within some seconds, for very many things in a fixed room: a thing has one
// slot, which the last one to need it takes over. So it forgets early under a flood, and never grows.
type recent struct {
	window int64
	seed   maphash.Seed
	once   sync.Once
	slots  atomic.Pointer[[recentSlots]atomic.Uint64]
}

func newRecent(seconds int64) *recent { return &recent{window: seconds, seed: maphash.MakeSeed()} }

// A tally is 32 bits of the thing's hash, 24 bits of the second in which its count began, and the count.
type tally uint64

func (s tally) tag() uint32  { return uint32(s >> 32) }
func (s tally) count() uint8 { return uint8(s) }

// since is the seconds from the start of the count to now.
func (s tally) since(now int64) int64 { return (now - int64(s>>8)) & (1<<24 - 1) }

func newTally(tag uint32, now int64, count uint8) tally {
	return tally(uint64(tag)<<32 | uint64(now&(1<<24-1))<<8 | uint64(count))
}

// key names a visitor at an address, or at a target, each of which may be missing.
func (r *recent) key(b *binding, client netip.Addr, target string) uint64 {
	var h maphash.Hash
	h.SetSeed(r.seed)
	_, _ = h.WriteString(b.site)
	_, _ = h.Write(b.networkText())
	_, _ = h.Write(b.agent[:])
	address := client.As16()
	_, _ = h.Write(address[:])
	_, _ = h.WriteString(target)
	return h.Sum64()
}

// add counts one more and returns the count within the window.
func (r *recent) add(key uint64, now int64) int {
	at, tag := r.slot(key)
	for {
		old := tally(at.Load())
		next := newTally(tag, now, 1)
		if old.tag() == tag && old.count() > 0 && old.since(now) < r.window {
			// The count saturates; the window is not prolonged.
			next = old
			if old.count() < 255 {
				next++
			}
		}
		if at.CompareAndSwap(uint64(old), uint64(next)) {
			return int(next.count())
		}
	}
}

// take reports whether something was counted within the window, and forgets it.
func (r *recent) take(key uint64, now int64) bool {
	if r.slots.Load() == nil {
		return false
	}
	at, tag := r.slot(key)
	old := tally(at.Load())
	return old.tag() == tag && old.count() > 0 && old.since(now) < r.window && at.CompareAndSwap(uint64(old), 0)
}

func (r *recent) slot(key uint64) (at *atomic.Uint64, tag uint32) {
	slots := r.slots.Load()
	if slots == nil {
		r.once.Do(func() { r.slots.Store(new([recentSlots]atomic.Uint64)) })
		slots = r.slots.Load()
	}
	return &slots[key%recentSlots], uint32(key >> 32)
}
