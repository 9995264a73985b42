package core_test

import (
	"fmt"
	"path/filepath"
	"runtime"
	"testing"

	"edge.svc/caddy/core"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
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
	writeSites(b, filepath.Join(dir, "config.journal"), sites)
	var c *core.Core
	for b.Loop() {
		c = core.New(core.Options{StateDir: dir, Values: map[string]any{"ban_capacity": 1000, "ban_max_mib": 1}})
	}
	if got := core.SiteCount(c.Tables()); got != sites {
		b.Fatalf("%d sites", got)
	}
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	b.ReportMetric(float64(m.HeapAlloc)/(1<<20), "MiB-live")
	runtime.KeepAlive(c)
}

func BenchmarkApplyOne(b *testing.B) {
	for _, sites := range []int{100, 10_000, 100_000} {
		b.Run(fmt.Sprint(sites), func(b *testing.B) {
			dir := b.TempDir()
			writeSites(b, filepath.Join(dir, "config.journal"), sites)
			c := core.New(core.Options{StateDir: dir, Values: map[string]any{"ban_capacity": 1000, "ban_max_mib": 1}})
			revision := uint64(sites)
			for b.Loop() {
				site := edgetest.Site(uint32(1+revision%60000), "site-7.example.com", "www.site-7.example.com")
				entry := edgetest.Entry("site", fmt.Sprintf("01890a5d-ac96-774b-bcce-%012d", 7), site)
				if _, _, err := c.Apply(edgetest.Position(revision), edgetest.Position(revision+1), []*configv1.Entry{entry}, nil); err != nil {
					b.Fatal(err)
				}
				revision++
			}
		})
	}
}

func BenchmarkSiteOfHost(b *testing.B) {
	dir := b.TempDir()
	writeSites(b, filepath.Join(dir, "config.journal"), 100_000)
	tables := core.New(core.Options{StateDir: dir, Values: map[string]any{"ban_capacity": 1000, "ban_max_mib": 1}}).Tables()
	for _, host := range []string{"www.site-99999.example.com", "unknown.example.org"} {
		b.Run(host, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				name, _ := core.NormalizeHost(host)
				core.PlanOfHost(tables, name)
			}
		})
	}
}
