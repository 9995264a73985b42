package svccore

import (
	"fmt"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	configv1 "edge.svc/caddy/gen/svc/config/v1"
	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
	nodev1 "edge.svc/caddy/gen/svc/node/v1"
	"edge.svc/caddy/internal/edgetest"
)

func writeSites(t testing.TB, path string, count int) {
	records := []*edgev1.JournalRecord{edgetest.Header("node")}
	var batch []*configv1.Entry
	for i := range count {
		site := edgetest.Site(0, fmt.Sprintf("site-%d.example.com", i), fmt.Sprintf("www.site-%d.example.com", i))
		site.Name = fmt.Sprintf("site-%d.example.com", i)
		site.CreatedAtMs = int64(1_700_000_000_000 + i)
		batch = append(batch, edgetest.Entry("site", fmt.Sprintf("01890a5d-ac96-774b-bcce-%012d", i), site))
		if len(batch) == 500 || i == count-1 {
			records = append(records, edgetest.Config(uint64(i+1), batch))
			batch = nil
		}
	}
	edgetest.WriteJournal(t, path, records...)
}

func BenchmarkLoad(b *testing.B) {
	const sites = 100_000
	dir := b.TempDir()
	writeSites(b, filepath.Join(dir, configJournal), sites)
	var core *Core
	for b.Loop() {
		core = New(Options{StateDir: dir, BanCapacity: 1000, BanMaxBytes: 1 << 20})
	}
	if got := core.Tables().Sites(); got != sites {
		b.Fatalf("%d sites", got)
	}
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	b.ReportMetric(float64(m.HeapAlloc)/(1<<20), "MiB-live")
	runtime.KeepAlive(core)
}

func BenchmarkApplyOne(b *testing.B) {
	for _, sites := range []int{100, 10_000, 100_000} {
		b.Run(fmt.Sprint(sites), func(b *testing.B) {
			dir := b.TempDir()
			writeSites(b, filepath.Join(dir, configJournal), sites)
			core := New(Options{StateDir: dir, BanCapacity: 1000, BanMaxBytes: 1 << 20})
			revision := uint64(sites)
			for b.Loop() {
				site := edgetest.Site(uint32(1+revision%60000), "site-7.example.com", "www.site-7.example.com")
				entry := edgetest.Entry("site", fmt.Sprintf("01890a5d-ac96-774b-bcce-%012d", 7), site)
				if _, _, err := core.Apply(edgetest.Position(revision), edgetest.Position(revision+1), []*configv1.Entry{entry}, nil); err != nil {
					b.Fatal(err)
				}
				revision++
			}
		})
	}
}

func BenchmarkSiteOfHost(b *testing.B) {
	dir := b.TempDir()
	writeSites(b, filepath.Join(dir, configJournal), 100_000)
	tables := New(Options{StateDir: dir, BanCapacity: 1000, BanMaxBytes: 1 << 20}).Tables()
	for _, host := range []string{"www.site-99999.example.com", "unknown.example.org"} {
		b.Run(host, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				name, _ := NormalizeHost(host)
				tables.SiteOfHost(name)
			}
		})
	}
}

func BenchmarkLoadBans(b *testing.B) {
	const count = 100_000
	dir := b.TempDir()
	bans := make([]*nodev1.Ban, count)
	for i := range bans {
		bans[i] = &nodev1.Ban{
			Id: fmt.Sprintf("01890a5d-ac96-774b-bcce-%012d", i), Cidr: fmt.Sprintf("10.%d.%d.%d/32", i>>16, i>>8&255, i&255),
			Source: nodev1.BanSource_BAN_SOURCE_MANUAL, ExpiresAtMs: time.Now().Add(24 * time.Hour).UnixMilli(), Reason: "abuse",
		}
	}
	edgetest.WriteJournal(b, filepath.Join(dir, bansJournal), edgetest.Header("node"), edgetest.Bans(1, bans))
	core := New(Options{StateDir: dir, BanCapacity: 2 * count, BanMaxBytes: 64 << 20})
	for b.Loop() {
		if state := core.ReloadBans(); state.GetEntries() != count {
			b.Fatal(state)
		}
	}
}
