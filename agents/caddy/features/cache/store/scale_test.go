package store

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// scaleObjects names how many objects the index has.
const scaleObjects = "SVC_CACHE_SCALE_OBJECTS"

func cpuTime() time.Duration {
	var usage syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// BenchmarkScale restarts a zone of many objects, whose files it does not need, and evicts objects with files of 1 KiB.
func BenchmarkScale(b *testing.B) {
	n, _ := strconv.Atoi(os.Getenv(scaleObjects))
	if n == 0 {
		n = 10_000
	}
	for range b.N {
		restart(b, n)
		evictFiles(b, n/20)
	}
	b.ReportMetric(0, "ns/op")
}

func restart(b *testing.B, n int) {
	dir := b.TempDir()
	z := open(b, dir)
	kept := z.put(b, metaOf("kept"), pattern(1<<10))
	half := n / 2
	add := func(i int) {
		k := KeyOf(fmt.Sprint("https://a.com/", i), "")
		e := entry{url: k.URL, variant: k.Variant, id: uint64(i + 1), size: 2000, used: z.seconds()}
		z.place(e, nil)
		if i >= half {
			z.log.append(opPut, &e)
		}
	}
	// One half is in the checkpoint, the other in the log behind it.
	for i := range half {
		add(i)
	}
	if err := z.log.checkpoint(&z.index); err != nil {
		b.Fatal(err)
	}
	for i := half; i < n; i++ {
		if add(i); i%100_000 == 0 {
			if err := z.log.flush(); err != nil {
				b.Fatal(err)
			}
		}
	}
	// As a process that is killed: the log is written, and nothing is ended.
	if err := z.log.flush(); err != nil {
		b.Fatal(err)
	}
	again := b.TempDir()
	for _, kind := range []string{"index", "log"} {
		for _, number := range z.log.numbers(kind) {
			file := &journal{dir: again}
			if err := os.Link(z.log.name(kind, number), file.name(kind, number)); err != nil {
				b.Fatal(err)
			}
		}
	}
	for _, name := range []string{"zone", "vary"} {
		_ = os.Link(dir+"/"+name, again+"/"+name)
	}
	runtime.KeepAlive(kept)
	z.end()
	before := heap()
	begun, used := time.Now(), cpuTime()
	next := open(b, again)
	b.ReportMetric(time.Since(begun).Seconds(), "restart-s")
	b.ReportMetric((cpuTime() - used).Seconds(), "restart-cpu-s")
	if _, _, has := next.Usage(); has < n {
		b.Fatalf("%d objects of %d are back", has, n)
	}
	until(b, "the files are swept", next.Swept)
	b.ReportMetric(float64(heap()-before)/float64(n), "bytes/object")
	next.end()
}

func evictFiles(b *testing.B, n int) {
	z := open(b, b.TempDir())
	body := pattern(1 << 10)
	used := cpuTime()
	for i := range n {
		z.put(b, metaOf(fmt.Sprint("k", i)), body)
	}
	b.ReportMetric(float64((cpuTime()-used).Microseconds())/float64(n), "store-cpu-µs")
	held, _, _ := z.Usage()
	begun, used := time.Now(), cpuTime()
	z.SetLimits(held/10, 0)
	until(b, "the zone is small", func() bool { now, _, _ := z.Usage(); return now <= held/10 })
	gone := float64(z.counts.Evicted.Load())
	b.ReportMetric(gone/time.Since(begun).Seconds(), "evictions/s")
	b.ReportMetric(float64((cpuTime()-used).Microseconds())/gone, "evict-cpu-µs")
}
