package challenge

import (
	"encoding/binary"
	"sync"
	"sync/atomic"
	"testing"
)

func numbered(n uint64) []byte { return binary.BigEndian.AppendUint64([]byte("nonce-of"), n) }

// fill gives a store as many marks as it has room for.
func fill(s *replayStore, expires int64) {
	for n, refused := uint64(1<<63), 0; refused < 64*replayShards; n++ {
		if s.spend(numbered(n), expires, expires-tokenSeconds) == spentUnknown {
			refused++
		}
	}
}

func TestAMarkLastsUntilItsTokenExpires(t *testing.T) {
	s := newReplayStore(DefaultReplayBytes)
	const now, expires = vectorTime, vectorTime + 300
	if s.spend(numbered(1), expires, now) != spentNow {
		t.Error("the first is not the first")
	}
	for _, at := range []int64{now, now + 120, now + 299} {
		if s.spend(numbered(1), expires, at) != spentBefore {
			t.Errorf("forgotten after %d s", at-now)
		}
		if s.spend(numbered(uint64(at)), at+300, at) != spentNow {
			t.Errorf("another was taken for it after %d s", at-now)
		}
	}
}

func TestAFullStoreForgetsNothing(t *testing.T) {
	s := newReplayStore(1)
	taken := map[uint64]bool{}
	unknown := 0
	for n := range uint64(3 * replayShards * replayBucket) {
		switch s.spend(numbered(n), vectorTime+300, vectorTime) {
		case spentNow:
			taken[n] = true
		case spentUnknown:
			unknown++
		}
	}
	if unknown == 0 || len(taken) > replayShards*replayBucket {
		t.Fatalf("%d taken, %d not", len(taken), unknown)
	}
	for n := range taken {
		if s.spend(numbered(n), vectorTime+300, vectorTime) != spentBefore {
			t.Fatalf("mark %d is lost", n)
		}
	}
}

func TestOfManyAtOnceOneIsFirst(t *testing.T) {
	s := newReplayStore(DefaultReplayBytes)
	for n := range uint64(200) {
		var first atomic.Int32
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				if s.spend(numbered(n), vectorTime+300, vectorTime) == spentNow {
					first.Add(1)
				}
			})
		}
		all.Wait()
		if first.Load() != 1 {
			t.Fatalf("%d were first", first.Load())
		}
	}
}

func BenchmarkSpend(b *testing.B) {
	s := newReplayStore(DefaultReplayBytes)
	for n := range uint64(2_400_000) {
		s.spend(numbered(n), vectorTime+300, vectorTime)
	}
	var next atomic.Uint64
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			s.spend(numbered(next.Add(1)%2_400_000), vectorTime+300, vectorTime)
		}
	})
}
