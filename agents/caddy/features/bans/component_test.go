package bans

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"edge.svc/caddy/core"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
	nodev1 "edge.svc/caddy/gen/svc/node/v1"
	"edge.svc/caddy/internal/edgetest"
)

func loadWith(t *testing.T, config, bans []byte) *core.Core {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string][]byte{"config.journal": config, bansJournal: bans} {
		if content == nil {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return core.New(core.Options{StateDir: dir, Values: map[string]any{"ban_capacity": 100, "ban_max_mib": 1}})
}

func TestBanJournalIsReplayedInOrder(t *testing.T) {
	ban := func(id, cidr string, left time.Duration) *nodev1.Ban {
		return &nodev1.Ban{Id: id, Cidr: cidr, Source: nodev1.BanSource_BAN_SOURCE_MANUAL, ExpiresAtMs: time.Now().Add(left).UnixMilli()}
	}
	c := loadWith(t, nil, edgetest.Encode(edgetest.Header("node"),
		edgetest.Bans(1, []*nodev1.Ban{ban("a", "192.0.2.1/32", time.Hour), ban("b", "192.0.2.2/32", time.Hour)}),
		edgetest.Bans(2, []*nodev1.Ban{ban("c", "192.0.2.3/32", -time.Hour)}, "a"),
		edgetest.Bans(3, []*nodev1.Ban{ban("a", "192.0.2.4/32", time.Hour)}),
	))
	state := Of(c).State()
	if state.GetEntries() != 2 || state.GetPosition().GetSequence() != 3 {
		t.Fatalf("%v", state)
	}
	for address, want := range map[string]bool{"192.0.2.1": false, "192.0.2.2": true, "192.0.2.3": false, "192.0.2.4": true} {
		if _, got := Of(c).Lookup("", netip.MustParseAddr(address)); got != want {
			t.Errorf("%s is banned: %v", address, got)
		}
	}
}

func TestBanPositionsKeepTheirMarks(t *testing.T) {
	b := Of(loadWith(t, nil, edgetest.Encode(edgetest.Header("node"), edgetest.Bans(3, nil))))
	if got := b.State().GetPosition(); !proto.Equal(got, edgetest.BanPosition(3)) {
		t.Errorf("read: %v", got)
	}
	state, err := b.ApplyBans(edgetest.BanPosition(3), edgetest.BanPosition(4), nil, nil, nil)
	if err != nil || !proto.Equal(state.GetPosition(), edgetest.BanPosition(4)) {
		t.Errorf("applied: %v %v", state, err)
	}
}

func TestAgentThatGoesOnSettlesATornJournal(t *testing.T) {
	whole := edgetest.Encode(edgetest.Header("node"),
		edgetest.Config(1, []*configv1.Entry{edgetest.Entry("site", "a", edgetest.Site(0, "a.com"))}),
		edgetest.Config(2, []*configv1.Entry{edgetest.Entry("site", "b", edgetest.Site(0, "b.com"))}, edgetest.Key("site", "a")))
	c := loadWith(t, whole[:len(whole)-1], edgetest.Encode(edgetest.Header("node"), edgetest.Bans(1, nil))[:20])
	if n := len(c.Status().Warnings); n != 2 {
		t.Fatalf("%d warnings", n)
	}
	edgetest.Change(t, c, nil)
	if _, err := Of(c).ApplyBans(nil, &nodev1.BanPosition{Epoch: 1, Sequence: 1}, nil, nil, nil); err != nil {
		t.Fatal(err)
	}
	if warnings := c.Status().Warnings; len(warnings) != 0 {
		t.Errorf("%q", warnings)
	}
	whole[len(whole)/2] ^= 0xff
	c = loadWith(t, whole, nil)
	edgetest.Change(t, c, nil)
	if warnings := c.Status().Warnings; len(warnings) != 1 {
		t.Errorf("a corrupt journal is settled: %q", warnings)
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
	c := core.New(core.Options{StateDir: dir, Values: map[string]any{"ban_capacity": 2 * count, "ban_max_mib": 64}})
	held := Of(c)
	for b.Loop() {
		if state, _ := held.ReloadBans(); state.GetEntries() != count {
			b.Fatal(state)
		}
	}
}
