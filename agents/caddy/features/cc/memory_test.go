//go:build !race

// The race detector has nothing to see in one goroutine, and takes ten times as long.

package cc

import (
	"fmt"
	"net/netip"
	"runtime"
	"strings"
	"testing"
)

// A million addresses, each with a path of its own, in a bounded memory; those who ask too much are found all the same.
func TestMemoryIsBoundedForAMillionAddressesAndPaths(t *testing.T) {
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	r := newRig(t)
	r.policy["a"] = strict(func(t *Thresholds) { t.SiteQPS, t.URLQPS, t.IPQPS = 0, 1, 50 })
	before := heap()
	abuser := netip.MustParseAddr("203.0.113.1")
	filler := strings.Repeat("x", 400)
	found := -1
	const addresses = 1_000_000
	for i := range addresses {
		path := fmt.Sprintf("/%s/%d", filler, i)
		addr := netip.AddrFrom16([16]byte{0x20, 0x01, byte(i >> 24), byte(i >> 16), byte(i >> 8), byte(i), 0, 1, 15: 1})
		r.Count("a", r.policy["a"], addr, false, path)
		if i%100 == 0 && found < 0 && r.Count("a", r.policy["a"], abuser, false, "/").Ban != nil {
			found = i
		}
		if i%25_000 == 0 {
			r.tick()
		}
	}
	grown := int64(heap()) - int64(before)
	s, _ := r.sites.Load("a")
	t.Logf("%d addresses and paths: %.1f MiB more, %d places for clients, %d evictions, %d paths followed, the abuser found after %d",
		addresses, float64(grown)/(1<<20), r.clients.size(), r.clients.evicted.Load(), len(s.(*Site).state.paths), found)
	if grown > 32<<20 {
		t.Errorf("%d bytes", grown)
	}
	if r.clients.size() > maxClients {
		t.Errorf("%d places", r.clients.size())
	}
	if found < 0 {
		t.Error("who asks a hundred times as much as others was not found")
	}
	runtime.KeepAlive(r)
}
