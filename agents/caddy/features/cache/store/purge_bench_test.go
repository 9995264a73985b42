package store_test

import (
	"fmt"
	"net/http"
	"os"
	"strconv"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"edge.svc/caddy/features/cache/purge"
	"edge.svc/caddy/features/cache/store"
	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
	nodev1 "edge.svc/caddy/gen/svc/node/v1"
)

// taggedObjects names how many objects the index has.
const taggedObjects = "SVC_CACHE_TAGGED_OBJECTS"

// BenchmarkPurgeOfATag purges a tag of all objects, until it is on disk, and looks at one of them after each purge.
func BenchmarkPurgeOfATag(b *testing.B) {
	n, _ := strconv.Atoi(os.Getenv(taggedObjects))
	if n == 0 {
		n = 1000
	}
	const files = 100
	dir := b.TempDir()
	marks := purge.New()
	file, err := purge.Open(dir, marks)
	if err == nil {
		err = file.Apply("cluster", nil, &edgev1.PurgePlace{Epoch: 1, Sequence: 1})
	}
	if err != nil {
		b.Fatal(err)
	}
	s := store.Open(b, dir)
	s.Fill(1<<32, n-files)
	for i := range files {
		s.Put(b, &store.Meta{Key: fmt.Sprint("k", i), Site: "s", Host: "a.com", Path: "/x", Position: marks.Position(), Status: 200,
			Lifetime: time.Hour, Header: http.Header{}, Received: time.Now(), Tags: []string{"all"}})
	}
	var purging, looking, used time.Duration
	sequence := uint64(1)
	for b.Loop() {
		sequence++
		batch, err := proto.Marshal(&nodev1.PurgeBatch{Purges: []*nodev1.Purge{{Epoch: 1, Sequence: sequence, SiteIds: []string{"s"}, Tags: []string{"all"}}}})
		if err != nil {
			b.Fatal(err)
		}
		begun, before := time.Now(), store.CPUTime()
		if err := file.Apply("cluster", [][]byte{batch}, &edgev1.PurgePlace{Epoch: 1, Sequence: sequence}); err != nil {
			b.Fatal(err)
		}
		purged := time.Now()
		key := store.KeyOf(fmt.Sprint("k", sequence%files), "")
		o := s.Find(key.URL, fmt.Sprint("k", sequence%files), func([]string) uint64 { return key.Variant })
		if o == nil || !marks.Absent(&purge.Stored{Position: o.Position, Site: o.Site, Host: o.Host, Path: o.Path, Tags: o.Tags}) {
			b.Fatal("what was purged is there")
		}
		used += store.CPUTime() - before
		purging += purged.Sub(begun)
		looking += time.Since(purged)
	}
	b.ReportMetric(float64(purging.Nanoseconds())/1000/float64(b.N), "purge-µs")
	b.ReportMetric(float64(used.Nanoseconds())/1000/float64(b.N), "cpu-µs")
	b.ReportMetric(float64(looking.Nanoseconds())/1000/float64(b.N), "look-µs")
}
