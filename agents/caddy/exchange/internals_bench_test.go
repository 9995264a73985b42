package exchange

import (
	"sync/atomic"
	"testing"
	"unsafe"
)

// Plans keep their parts as unsafe pointers: the README has what that wins.
func BenchmarkInternals(b *testing.B) {
	type settings struct{ on bool }
	var part unsafe.Pointer
	atomic.StorePointer(&part, unsafe.Pointer(&settings{true}))
	parts, on := []unsafe.Pointer{nil, part}, 0
	b.Run("part of a plan/with", func(b *testing.B) {
		for i := range b.N {
			if p := (*settings)(atomic.LoadPointer(&parts[i&1|1])); p.on {
				on++
			}
		}
	})
	// The safe way: a slot of any type that can be loaded and stored at once.
	slots := make([]atomic.Value, 2)
	slots[1].Store(&settings{true})
	b.Run("part of a plan/without", func(b *testing.B) {
		for i := range b.N {
			if p, ok := slots[i&1|1].Load().(*settings); ok && p.on {
				on++
			}
		}
	})
}
