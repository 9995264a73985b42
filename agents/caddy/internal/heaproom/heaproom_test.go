package heaproom

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

func TestPercent(t *testing.T) {
	for live, want := range map[uint64]int{
		0: 300, 1 << 20: 300, 20 << 20: 300, 32 << 20: 200, 48 << 20: 133, 64 << 20: 100, 1 << 30: 100,
	} {
		if got := percent(live); got != want {
			t.Errorf("%d MiB live: %d %%, want %d", live>>20, got, want)
		}
	}
}

func TestEnvironmentWins(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(150))
	t.Setenv("GOGC", "150")
	Keep()
	for range 5 {
		runtime.GC()
	}
	if now := debug.SetGCPercent(150); now != 150 {
		t.Errorf("it is %d %%", now)
	}
}

var ballast []byte

// A heap that grows loses its room, one that shrinks gets it back.
func TestRoomFollowsTheHeap(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	t.Setenv("GOGC", "")
	Keep()
	// Asking is the same as setting, so what is found is set again.
	becomes := func(want func(int) bool) {
		t.Helper()
		for deadline := time.Now().Add(20 * time.Second); ; runtime.GC() {
			now := debug.SetGCPercent(100)
			debug.SetGCPercent(now)
			if want(now) {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("it is %d %%", now)
			}
		}
	}
	becomes(func(p int) bool { return p == most })
	ballast = make([]byte, 200<<20)
	becomes(func(p int) bool { return p == least })
	ballast = nil
	becomes(func(p int) bool { return p == most })
}
