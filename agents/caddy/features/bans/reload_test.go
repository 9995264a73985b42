package bans

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"edge.svc/caddy/core"
	nodev1 "edge.svc/caddy/gen/svc/node/v1"
	"edge.svc/caddy/internal/edgetest"
)

// Each of these once lifted every ban of the console.
func TestReloadOfAnUnreadableJournalKeepsTheBans(t *testing.T) {
	ban := func(id, cidr string) *nodev1.Ban {
		return &nodev1.Ban{Id: id, Cidr: cidr, Source: nodev1.BanSource_BAN_SOURCE_MANUAL, ExpiresAtMs: time.Now().Add(time.Hour).UnixMilli()}
	}
	header := edgetest.Encode(edgetest.Header("node"))
	whole := edgetest.Encode(edgetest.Header("node"),
		edgetest.Bans(1, []*nodev1.Ban{ban("a", "192.0.2.1/32")}), edgetest.Bans(2, []*nodev1.Ban{ban("b", "192.0.2.2/32")}))
	corrupt := append([]byte(nil), whole...)
	corrupt[len(header)+10] ^= 0xff
	for name, content := range map[string][]byte{
		"missing": nil, "empty": {}, "corrupt": corrupt, "no header": whole[1:], "new": header, "torn": whole[:len(header)+12],
	} {
		c := loadWith(t, nil, whole)
		path := filepath.Join(c.StateDir(), bansJournal)
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if content != nil {
			if err := os.WriteFile(path, content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := Of(c).ReloadBans(); !errors.Is(err, core.ErrJournal) {
			t.Errorf("%s: %v", name, err)
		}
		if state := Of(c).State(); state.GetEntries() != 2 || state.GetPosition().GetSequence() != 2 || len(c.Status().Warnings) != 1 {
			t.Errorf("%s: %v %q", name, state, c.Status().Warnings)
		}
		edgetest.WriteJournal(t, path, edgetest.Header("node"), edgetest.Bans(3, nil))
		if state, err := Of(c).ReloadBans(); err != nil || state.GetEntries() != 0 || len(c.Status().Warnings) != 0 {
			t.Errorf("%s: a journal that says it is empty: %v %v %q", name, err, state, c.Status().Warnings)
		}
	}
}
