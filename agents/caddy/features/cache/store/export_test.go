package store

import (
	"fmt"
	"testing"
)

// CPUTime is the processor time of this process.
var CPUTime = cpuTime

// Open runs a store in a folder, for benchmarks that need other packages.
func Open(t testing.TB, dir string) *Store { return open(t, dir).Store }

// Fill gives the index so many objects whose files are not needed.
func (s *Store) Fill(from, n int) {
	for i := range n {
		k := KeyOf(fmt.Sprint("https://a.com/", from+i), "")
		s.place(entry{url: k.URL, variant: k.Variant, id: uint64(from + i + 1), size: 2000, used: s.seconds()}, nil)
	}
}

// Put stores a body of 1 KiB.
func (s *Store) Put(t testing.TB, m *Meta) { (&zone{Store: s}).put(t, m, pattern(1<<10)) }
