package origin

import (
	"fmt"
	"sync"
	"testing"
	"time"
)

// Requests do not wait for a lock that another origin's failure holds.
func TestHealthOfOriginsIsApart(t *testing.T) {
	s := NewState()
	key := func(i int) originKey { return originKey{site: "s", origin: fmt.Sprint(i)} }
	// Somebody holds the lock of another origin. Sweeping, which is rare, waits for all.
	s.swept.Store(time.Now().UnixNano())
	blocked := s.of(key(0))
	blocked.mu.Lock()
	var all sync.WaitGroup
	for i := 1; i <= 100; i++ {
		if s.of(key(i)) == blocked {
			continue
		}
		all.Go(func() {
			for range 100 {
				s.fail(key(i), reason{class: failConnect}, 1, time.Hour)
				if i%2 == 0 {
					s.succeed(key(i))
				}
				s.down(key(i), time.Now())
			}
		})
	}
	all.Wait()
	blocked.mu.Unlock()
	for i := 1; i <= 100; i++ {
		if s.of(key(i)) == blocked {
			continue
		}
		if down := s.down(key(i), time.Now()); down != (i%2 == 1) {
			t.Errorf("origin %d: down is %v", i, down)
		}
	}
	now := time.Now()
	s.now = func() time.Time { return now.Add(2 * forgetAfter) }
	s.fail(key(1000), reason{class: failConnect}, 1, time.Hour)
	if n := s.failed.Load(); n != 1 {
		t.Errorf("%d failures are remembered after %s", n, 2*forgetAfter)
	}
}

// Looking at health is of every request once any origin of any site has failed.
func BenchmarkHealthWhileAnotherOriginFails(b *testing.B) {
	s := NewState()
	s.fail(originKey{site: "other", origin: "o"}, reason{class: failConnect}, 3, time.Hour)
	key := originKey{site: "site", origin: "o"}
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			s.down(key, time.Time{})
			s.succeed(key)
		}
	})
}
