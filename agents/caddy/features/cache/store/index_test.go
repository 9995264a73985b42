package store

import (
	"fmt"
	"runtime"
	"testing"
	"time"
)

// mostIndexBytes is what an object may cost in memory.
const mostIndexBytes = 96

func heap() uint64 {
	// The second one empties pools.
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func filled(n int) *index {
	x := &index{}
	for i := range n {
		k := KeyOf(fmt.Sprint("https://a.com/", i), "")
		x.put(entry{url: k.URL, variant: k.Variant, id: uint64(i + 1), size: 1000}, nil)
	}
	return x
}

func TestAnObjectCostsAtMost96BytesOfTheIndex(t *testing.T) {
	for _, n := range []int{100_000, 140_000} {
		before := heap()
		x := filled(n)
		bytes := float64(heap()-before) / float64(n)
		if bytes > mostIndexBytes || x.len() != n {
			t.Errorf("%.1f bytes an object with %d objects", bytes, x.len())
		}
		t.Logf("%.1f bytes an object, %d objects", bytes, n)
		runtime.KeepAlive(x)
	}
}

func TestTheIndexFollowsAModel(t *testing.T) {
	x := &index{}
	model := map[Key]uint64{}
	state := uint64(1)
	for i := range 200_000 {
		state = state*6364136223846793005 + 1442695040888963407
		k := Key{state >> 33 % 700, state >> 50 % 3}
		switch state >> 60 {
		case 0:
			e, ok := x.change(k.URL, model[k], func(*entry) bool { return false })
			if _, had := model[k]; had != ok || ok && e.variant != k.Variant {
				t.Fatal("remove", k)
			}
			delete(model, k)
		case 1:
			x.removeURL(k.URL)
			for v := range uint64(3) {
				delete(model, Key{k.URL, v})
			}
		default:
			x.put(entry{url: k.URL, variant: k.Variant, id: uint64(i + 1)}, nil)
			model[k] = uint64(i + 1)
		}
		if e, ok := x.find(k.URL, 1, func(uint16) uint64 { return k.Variant }); e.id != model[k] || ok != (model[k] != 0) {
			t.Fatal("find", k, e, model[k])
		}
	}
	if x.len() != len(model) {
		t.Error(x.len(), len(model))
	}
}

func BenchmarkIndexFind(b *testing.B) {
	x := filled(1_000_000)
	b.ReportMetric(float64(x.len()), "objects")
	k := make([]Key, 1024)
	for i := range k {
		k[i] = KeyOf(fmt.Sprint("https://a.com/", i*900), "")
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		at := k[i%len(k)]
		if _, ok := x.find(at.URL, 1, func(uint16) uint64 { return at.Variant }); !ok {
			b.Fatal("not found")
		}
	}
}

// The index of a million objects is read while requests wait for nothing.
func BenchmarkRestart(b *testing.B) {
	j := &journal{dir: b.TempDir()}
	x := filled(1_000_000)
	if err := j.checkpoint(x); err != nil {
		b.Fatal(err)
	}
	j.close()
	for b.Loop() {
		x := &index{}
		begun := time.Now()
		j.replay(func(_ uint8, e entry) { x.put(e, nil) })
		b.ReportMetric(time.Since(begun).Seconds()/float64(x.len())*1e6, "s/million")
	}
}

func BenchmarkStore(b *testing.B) {
	z := open(b, b.TempDir())
	body := pattern(1 << 10)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		w := z.Create()
		_ = w.Write(body)
		m := metaOf(fmt.Sprint("k", i%1000))
		if _, err := w.Commit(KeyOf(m.Key, ""), m, nil); err != nil {
			b.Fatal(err)
		}
		w.Release()
	}
}
