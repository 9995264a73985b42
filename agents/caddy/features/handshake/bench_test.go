package handshake

import (
	"fmt"
	"runtime"
	"syscall"
	"testing"
	"time"

	"edge.svc/caddy/core"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
)

// What of a hello depends on how many sites there are.
func BenchmarkSiteOfAName(b *testing.B) {
	for _, sites := range []int{1, 100_000} {
		b.Run(fmt.Sprintf("%d sites", sites), func(b *testing.B) {
			n := newNode(b, b.TempDir())
			own := issue(b, ecdsaKey(b), "*.test")
			appendPack(b, n.dir, framesOf(b, own))
			n.read()
			entries := make([]*configv1.Entry, 0, 2*sites)
			names := make([]string, sites)
			for i := range sites {
				id := fmt.Sprintf("site-%d", i)
				names[i] = fmt.Sprintf("www-%d.test", i)
				entries = append(entries, siteEntry(id, fmt.Sprintf("www-%d.test", i)), httpsEntry(id, nil, own))
			}
			if failed := n.change(entries...); len(failed) > 0 {
				b.Fatal(failed[0])
			}
			// Sites that were asked for once.
			names = names[:min(sites, 1000)]
			find := func(i int) {
				host, _ := serverName(names[i%len(names)])
				if _, _, refusal := n.tls.find(host, core.HTTPSPort); refusal != nil {
					b.Fatal(refusal)
				}
			}
			for i := range names {
				find(i)
			}
			b.ReportAllocs()
			i := 0
			used := processorTime(b)
			for b.Loop() {
				find(i)
				i++
			}
			// On a busy machine the time by the clock says little.
			b.ReportMetric(float64((processorTime(b)-used).Nanoseconds())/float64(b.N), "cpu-ns/op")
		})
	}
}

func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// Memory of certificates of which only the pack knows.
func BenchmarkUnusedCertificates(b *testing.B) {
	const certificates = 100_000
	dir := b.TempDir()
	many(b, dir, certificates)
	var took uint64
	for b.Loop() {
		before := heap()
		p := newPack(dir + "/" + packName)
		if err := p.read(func(fingerprint) {}); err != nil || p.size() != certificates {
			b.Fatal(err)
		}
		took = heap() - before
		runtime.KeepAlive(p)
		_ = p.file.Close()
	}
	b.ReportMetric(float64(took)/certificates, "B/certificate")
}

func BenchmarkReadingThePack(b *testing.B) {
	const certificates = 20_000
	dir := b.TempDir()
	many(b, dir, certificates)
	b.ReportAllocs()
	for b.Loop() {
		p := newPack(dir + "/" + packName)
		if err := p.read(func(fingerprint) {}); err != nil || p.size() != certificates {
			b.Fatal(err)
		}
		_ = p.file.Close()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/certificates, "ns/certificate")
}

func BenchmarkParsing(b *testing.B) {
	for name, p := range map[string]*pair{"ECDSA": issue(b, ecdsaKey(b), "a.test"), "RSA": issue(b, rsaKey(), "a.test")} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := parse(p.ID, p.Material, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
