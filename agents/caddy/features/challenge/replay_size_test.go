//go:build !race

// The race detector has nothing to see in one goroutine, and takes ten times as long.

package challenge

import (
	"runtime"
	"testing"
)

func TestMarksOfTheSizeItIsMadeFor(t *testing.T) {
	const entries = 2_400_000
	s := newReplayStore(DefaultReplayBytes)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for n := range uint64(entries) {
		// Over five minutes, as they come.
		now := int64(vectorTime) + int64(n*300/entries)
		if s.spend(numbered(n), now+tokenSeconds, now) != spentNow {
			t.Fatalf("mark %d was not taken", n)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if used := after.HeapAlloc - before.HeapAlloc; used > DefaultReplayBytes {
		t.Errorf("%d bytes", used)
	} else {
		t.Logf("%d marks in %.1f MiB", entries, float64(used)/(1<<20))
	}
	for n := uint64(0); n < entries; n += 13 {
		now := int64(vectorTime) + int64(n*300/entries)
		if s.spend(numbered(n), now+tokenSeconds, vectorTime+299) != spentBefore {
			t.Fatalf("mark %d is lost", n)
		}
	}
	// Room comes back with time, without a sweep.
	for n := range uint64(entries / 10) {
		if s.spend(numbered(entries+n), vectorTime+1200, vectorTime+900) != spentNow {
			t.Fatalf("no room for mark %d afterwards", n)
		}
	}
	runtime.KeepAlive(s)
}
