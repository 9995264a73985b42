package encode

import (
	"io"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"sync"
	"testing"
	"time"

	"edge.svc/caddy/exchange"
)

// until waits for a condition.
func until(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !condition(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}

// gate is a client that takes nothing until it opens.
type gate struct {
	collector
	open <-chan struct{}
}

func (g *gate) Write(p []byte) error {
	<-g.open
	return g.collector.Write(p)
}

func netOf(i int) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{192, 0, byte(i), 0}), 24)
}

// Clients that read slowly keep no encoder at work. Those of one network hold half of the memory for encoders at most, so
// that another network gets the same coding, and everything ends well once they read.
func TestSlowReadersHoldNoPlace(t *testing.T) {
	const level, readers = 4, 200
	size := bytesOf(exchange.Brotli, level)
	e := newEncoders(2, 20*size)
	l := &e.lines[exchange.Brotli]
	all := text(rand.New(rand.NewPCG(7, 7)), 400_000)
	source := func() *pieces {
		p := &pieces{}
		for at := 0; at < len(all); at += 16 << 10 {
			p.list = append(p.list, all[at:min(at+16<<10, len(all))])
		}
		return p
	}
	open := make(chan struct{})
	var reading sync.WaitGroup
	var clients []*gate
	refused := 0
	for range readers {
		// Places come back as readers turn out to be slow.
		until(t, "a place is free", func() bool { return l.active.Load() < l.most/2 })
		if !e.take(exchange.Brotli, level, netOf(1)) {
			refused++
			continue
		}
		client := &gate{open: open}
		clients = append(clients, client)
		b := e.encode(exchangeOf(1), source(), exchange.Brotli, level)
		b.(*body).place.network = netOf(1)
		reading.Go(func() {
			if err := b.CopyTo(client); err != nil {
				t.Error(err)
			}
			b.Close()
		})
	}
	if len(clients) != 10 || refused != readers-10 || l.open.Load() != 10 {
		t.Errorf("%d have an encoder, %d have none, %d exist", len(clients), refused, l.open.Load())
	}
	until(t, "none is at work", func() bool { return l.active.Load() == 0 })
	for range 20 {
		if !e.take(exchange.Brotli, level, netOf(2)) {
			t.Fatal("another network gets none")
		}
		client := &collector{}
		b := e.encode(exchangeOf(1), source(), exchange.Brotli, level)
		b.(*body).place.network = netOf(2)
		if err := b.CopyTo(client); err != nil {
			t.Fatal(err)
		}
		b.Close()
		if got := decoded(t, exchange.Brotli, client.Bytes()); len(got) != len(all) {
			t.Errorf("%d bytes", len(got))
		}
	}
	close(open)
	reading.Wait()
	for _, client := range clients {
		if got := decoded(t, exchange.Brotli, client.Bytes()); string(got) != string(all) {
			t.Errorf("a slow reader has %d bytes", len(got))
		}
	}
	if l.active.Load() != 0 || l.open.Load() != 0 || e.held != 0 || len(e.holds)+len(l.networks)+len(l.queue) != 0 {
		t.Errorf("%d at work, %d exist, %d bytes, %v", l.active.Load(), l.open.Load(), e.held, l.queue)
	}
}

// However many go on at once after a wait, no more work than may, and of one network half of them.
func TestWhoGoesOnWaitsForAPlace(t *testing.T) {
	e := newEncoders(2, maxRoom)
	l := &e.lines[exchange.Zstd]
	var all sync.WaitGroup
	for i := range 24 {
		network := netOf(i % 3)
		all.Go(func() {
			for range 200 {
				e.goOn(l, network)
				e.mu.Lock()
				if l.active.Load() > l.most || l.networks[network] > l.most/2 {
					t.Errorf("%d at work, %v", l.active.Load(), l.networks)
				}
				e.mu.Unlock()
				runtime.Gosched()
				e.rest(l, network)
			}
		})
	}
	all.Wait()
	if l.active.Load() != 0 || len(l.queue) != 0 || len(l.networks) != 0 {
		t.Errorf("%d at work, %d wait", l.active.Load(), len(l.queue))
	}
}

// Encoders hold no more memory than is counted for them.
func TestEncodersHoldWhatIsCounted(t *testing.T) {
	all := text(rand.New(rand.NewPCG(1, 2)), 700_000)
	e := newEncoders(1, maxRoom)
	for c, levels := range map[exchange.Coding][]int{exchange.Gzip: {1, 9}, exchange.Brotli: {1, 4, 6, 9}, exchange.Zstd: {1, 3, 8, 12}} {
		for _, level := range levels {
			var kept [2]encoder
			before := heap()
			for i := range kept {
				var err error
				if kept[i], err = e.lines[c].make(level); err != nil {
					t.Fatal(err)
				}
				kept[i].Reset(io.Discard)
				for at := 0; at < len(all); at += pieceBytes {
					if _, err = kept[i].Write(all[at:min(at+pieceBytes, len(all))]); err != nil {
						t.Fatal(err)
					}
				}
			}
			held := (heap() - before) / int64(len(kept))
			runtime.KeepAlive(kept)
			if counted := bytesOf(c, level); held > counted+counted/4 || held < counted/4 {
				t.Errorf("%s %d: %d KiB, counted are %d", names[c][0], level, held>>10, counted>>10)
			}
		}
	}
}

// heap is what is alive.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
