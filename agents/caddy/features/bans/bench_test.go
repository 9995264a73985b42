package bans

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/gaissmai/bart"

	nodev1 "edge.svc/caddy/gen/svc/node/v1"
)

// mixed makes n bans: 60 % IPv4 hosts, 30 % IPv6 /64, 10 % IPv4 /24, one in ten of a site; ids as long as UUIDs.
func mixed(n int, r *rand.Rand, expires time.Time) []*nodev1.Ban {
	bans := make([]*nodev1.Ban, n)
	for i := range bans {
		var p netip.Prefix
		a4 := netip.AddrFrom4([4]byte{byte(1 + r.IntN(223)), byte(r.IntN(256)), byte(r.IntN(256)), byte(r.IntN(256))})
		switch k := i % 10; {
		case k < 6:
			p = netip.PrefixFrom(a4, 32)
		case k < 9:
			p, _ = netip.AddrFrom16([16]byte{0x20, 1, byte(r.IntN(256)), byte(r.IntN(256)), byte(r.IntN(256)), byte(r.IntN(256)), byte(r.IntN(256)), byte(r.IntN(256))}).Prefix(64)
		default:
			p, _ = a4.Prefix(24)
		}
		site := ""
		if i%10 == 3 {
			site = fmt.Sprint("site", i%50)
		}
		bans[i] = &nodev1.Ban{Id: fmt.Sprintf("%08x-%04x-7000-8000-%012x", r.Uint32(), i&0xffff, r.Uint64()>>16), SiteId: site, Cidr: p.String(),
			Source: nodev1.BanSource(1 + i%2), ExpiresAtMs: expires.UnixMilli()}
	}
	return bans
}

func heapInUse() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// Lookups among 100,000 bans by 1,024 clients that keep asking, one in ten of them banned.
func BenchmarkLookup100k(b *testing.B) { benchmarkLookup(b, 1<<10, 10) }

// The same when every lookup is of a banned client.
func BenchmarkLookup100kBanned(b *testing.B) { benchmarkLookup(b, 1<<10, 1) }

// 65,536 clients in turn: hardly anything is in the processor's caches, so this measures memory.
func BenchmarkLookup100kCold(b *testing.B) { benchmarkLookup(b, 1<<16, 10) }

// What the table stands on: the same clients looked up in one trie of the library, without a filter, sites, expiry and
// what a hit tells.
func BenchmarkLookup100kPlain(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	bans := mixed(100_000, r, time.Now().Add(time.Hour))
	trie := &bart.Table[*record]{}
	for i := range bans {
		trie.Insert(netip.MustParsePrefix(bans[i].Cidr), &record{})
	}
	addrs := clientsOf(bans, 1<<10, 10, r)
	measureLookups(b, func() (hits int) {
		for i := range b.N {
			if _, ok := trie.Lookup(addrs[i&(len(addrs)-1)]); ok {
				hits++
			}
		}
		return hits
	})
	runtime.KeepAlive(trie)
}

func benchmarkLookup(b *testing.B, clients, bannedEvery int) {
	r := rand.New(rand.NewPCG(1, 1))
	before := heapInUse()
	bans := mixed(100_000, r, time.Now().Add(time.Hour))
	table := New(100_000, 32<<20, nil)
	state := table.Replace(at(1), bans)
	if state.GetUnapplied() != 0 || state.GetAutoEvicted() != 0 {
		b.Fatalf("100,000 bans do not fit: %v", state)
	}
	addrs := clientsOf(bans, clients, bannedEvery, r)
	bans = nil
	mib := float64(heapInUse()-before) / (1 << 20)
	measureLookups(b, func() (hits int) {
		for i := range b.N {
			if _, ok := table.Lookup("site3", addrs[i&(clients-1)]); ok {
				hits++
			}
		}
		return hits
	})
	b.ReportMetric(mib, "MiB")
	b.ReportMetric(float64(table.index.bytes)/(1<<20), "accountedMiB")
	runtime.KeepAlive(table)
}

// clientsOf returns addresses, a power of two of them, of which one in bannedEvery is banned.
func clientsOf(bans []*nodev1.Ban, clients, bannedEvery int, r *rand.Rand) []netip.Addr {
	addrs := make([]netip.Addr, clients)
	for i := range addrs {
		p := netip.MustParsePrefix(bans[r.IntN(len(bans))].Cidr)
		addrs[i] = p.Addr()
		if i%bannedEvery == 0 {
			continue
		}
		// A neighbour of a banned network, so that the search goes deep.
		bytes := addrs[i].AsSlice()
		for at := p.Bits()/8 - 1; at < len(bytes); at++ {
			bytes[at] = byte(r.IntN(256))
		}
		addrs[i], _ = netip.AddrFromSlice(bytes)
	}
	return addrs
}

// measureLookups has b.N lookups made by a function that answers how many of them hit.
func measureLookups(b *testing.B, lookUp func() (hits int)) {
	b.ReportAllocs()
	b.ResetTimer()
	used := processorTime()
	hits := lookUp()
	// On a busy machine the time by the clock says little.
	b.ReportMetric(float64((processorTime()-used).Nanoseconds())/float64(b.N), "cpu-ns/op")
	b.ReportMetric(float64(hits)/float64(b.N), "hitshare")
}

func BenchmarkApplyOneOf100k(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	table := New(200_000, 128<<20, nil)
	expires := time.Now().Add(time.Hour)
	table.Replace(at(0), mixed(100_000, r, expires))
	one := mixed(1, r, expires)
	b.ResetTimer()
	for i := range uint64(b.N) {
		one[0].Cidr = fmt.Sprintf("192.%d.%d.%d/32", i>>16&255, i>>8&255, i&255)
		if _, err := table.Apply(at(i), at(i+1), one, nil, nil); err != nil {
			b.Fatal(err)
		}
	}
}

// What a start from disk costs.
func BenchmarkReplace100k(b *testing.B) {
	bans := mixed(100_000, rand.New(rand.NewPCG(1, 1)), time.Now().Add(time.Hour))
	for i := range uint64(b.N) {
		New(100_000, 32<<20, nil).Replace(at(i), bans)
	}
}
