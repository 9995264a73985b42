package cache

import (
	"path/filepath"
	"testing"

	"edge.svc/caddy/core"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
	"edge.svc/caddy/internal/edgetest"
)

func TestANodeMayHaveASizeOfItsOwn(t *testing.T) {
	dir := t.TempDir()
	edgetest.WriteJournal(t, filepath.Join(dir, "config.journal"), edgetest.Header("node-1"), edgetest.Config(1, []*configv1.Entry{
		edgetest.Entry("cache-zone", "", &configv1.CacheZone{MaxSizeGb: 5, InactiveDays: 2}),
		edgetest.Entry("node-cache", "node-1", &configv1.NodeCache{MaxSizeGb: 3}),
		edgetest.Entry("node-cache", "node-2", &configv1.NodeCache{MaxSizeGb: 4}),
	}))
	c := core.New(core.Options{StateDir: dir, Values: map[string]any{"ban_capacity": 10, "ban_max_mib": 1}})
	size := func() int64 { _, most, _ := Of(c).store.Usage(); return most >> 30 }
	if size() != 3 {
		t.Errorf("%d GiB at the start", size())
	}
	apply := func(revision uint64, upserts []*configv1.Entry, deletes ...*configv1.EntryKey) int {
		_, failed, err := c.Apply(edgetest.Position(revision-1), edgetest.Position(revision), upserts, deletes)
		if err != nil {
			t.Fatal(err)
		}
		return len(failed)
	}
	apply(2, []*configv1.Entry{edgetest.Entry("node-cache", "node-1", &configv1.NodeCache{MaxSizeGb: 7})})
	if size() != 7 {
		t.Errorf("%d GiB after a change", size())
	}
	apply(3, nil, &configv1.EntryKey{Kind: "node-cache", Id: "node-1"})
	if size() != 5 {
		t.Errorf("%d GiB without one of its own", size())
	}
	if apply(4, []*configv1.Entry{edgetest.Entry("node-cache", "node-1", &configv1.NodeCache{MaxSizeGb: 65537})}) != 1 || size() != 5 {
		t.Error("a size that is not allowed was taken")
	}
	if _, err := applyPurges(t.Context(), c, &edgev1.ApplyPurgesRequest{}); err == nil {
		t.Error("purges of no cluster were taken")
	}
}
