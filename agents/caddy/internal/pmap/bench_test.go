package pmap

import (
	"fmt"
	"runtime"
	"testing"

	"edge.svc/caddy/exchange"
)

// The hosts of many sites in turn, as requests to them come: what one lookup reads is gone from the caches when it is
// read again.
func BenchmarkMapInTurn(b *testing.B) {
	for _, keys := range []int{1, 10_000, 100_000} {
		b.Run(fmt.Sprint(keys), func(b *testing.B) {
			m, names := mapOf(keys)
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				if _, ok := m.Get(names[i]); !ok {
					b.Fatal(names[i])
				}
				if i++; i == keys {
					i = 0
				}
			}
		})
	}
}

// What a collection has to do for a map of this size: it is done again each time requests have used up the room.
func BenchmarkCollectMap(b *testing.B) {
	for _, keys := range []int{1, 10_000, 100_000} {
		b.Run(fmt.Sprint(keys), func(b *testing.B) {
			m, names := mapOf(keys)
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			for b.Loop() {
				runtime.GC()
			}
			live := m.size
			runtime.KeepAlive(m)
			m = Map[*int]{}
			runtime.GC()
			runtime.ReadMemStats(&after)
			b.ReportMetric(float64(before.HeapObjects-after.HeapObjects)/float64(live), "objects/key")
			b.ReportMetric(float64(before.HeapAlloc-after.HeapAlloc)/float64(live), "bytes/key")
			runtime.KeepAlive(names)
		})
	}
}

// mapOf makes a map as a journal does, with one editor, and its keys in an order of their own.
func mapOf(keys int) (Map[*int], []string) {
	var m Map[*int]
	e, value := new(exchange.Owner), new(int)
	for i := range keys {
		m = m.Set(e, fmt.Sprintf("site-%d.bench.example", i), value)
	}
	names := make([]string, keys)
	for i := range names {
		names[i] = fmt.Sprintf("site-%d.bench.example", i*7919%keys)
	}
	return m, names
}
