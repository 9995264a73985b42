package heaproom

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

const (
	// room is what a heap may grow by before the next collection, however small it is.
	room = 64 << 20
	// A tiny heap stays in the caches of the processor, which a large percentage would take away.
	least, most = 100, 300
)

// Keep keeps the room from now on, unless the environment says how the heap is to be collected. Go lets a heap double:
// one of 20 MiB, which is ten thousand sites, was marked several times a second, and each time what requests need was
// pushed out of the caches: 2 µs of processor time for each proxied request. A large heap doubles as it ever did.
func Keep() {
	if os.Getenv("GOGC") == "" {
		follow(least)
	}
}

// follow sets the percentage after the next collection, and after each one from then on; set is the present one.
func follow(set int) {
	// What is not used any more is noticed by the next collection.
	mark := new([16]byte)
	runtime.AddCleanup(mark, func(set int) {
		live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		metrics.Read(live)
		// Setting it stops everything for a moment, so small changes do not count.
		if next := percent(live[0].Value.Uint64()); next*10 < set*9 || next*10 > set*11 {
			debug.SetGCPercent(next)
			set = next
		}
		follow(set)
	}, set)
}

// percent is how much of the live heap is allocated before the next collection.
func percent(live uint64) int {
	return int(min(max(room*100/max(live, 1), least), most))
}
