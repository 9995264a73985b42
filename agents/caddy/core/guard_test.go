package core_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
	"edge.svc/caddy/internal/edgetest"
)

// Two guards that exist in this file only: of a site, and of the cluster. The word "broken" does not compile.
var (
	door  = core.PartOf("test: door", "test: door", func(_ *core.Core, _ string, m *configv1.ClientIp) (*string, error) { return openOrNot(m) })
	gates = exchange.NewSetting("test: gates", "open")
)

func init() {
	core.ConfigureKind("test: door", core.KindOptions{Guards: true})
	core.ConfigureKind("test: gates", core.KindOptions{Guards: true})
	core.SettingKind("test: gates", gates, func(m *configv1.ClientIp) (string, error) {
		text, err := openOrNot(m)
		if err != nil {
			return "", err
		}
		return *text, nil
	})
}

func openOrNot(m *configv1.ClientIp) (*string, error) {
	text := m.GetHeader()
	if text == "broken" {
		return nil, errors.New("lock 7 does not turn")
	}
	return &text, nil
}

func doorOf(id, text string) *configv1.Entry {
	return edgetest.Entry("test: door", id, &configv1.ClientIp{Header: text})
}

func gatesOf(text string) *configv1.Entry {
	return edgetest.Entry("test: gates", "", &configv1.ClientIp{Header: text})
}

// A guard that does not compile leaves the former one in its place. Where there is none nothing is let in, and a new process
// comes to the same from any journal.
func TestAGuardThatFailsOpensNothing(t *testing.T) {
	siteA, siteB := edgetest.Entry("site", "a", edgetest.Site(0, "a.com")), edgetest.Entry("site", "b", edgetest.Site(0, "b.com"))
	held := doorOf("a", "shut")
	held.Features = []string{"later-v1"}
	type step struct {
		upserts []*configv1.Entry
		deletes []*configv1.EntryKey
	}
	for _, c := range []struct {
		name  string
		steps []step
		// What guards a.com and the cluster at the end; whether a.com and b.com answer.
		door, gates string
		a, b        bool
		fails       int
	}{
		{"no guard at all", []step{{[]*configv1.Entry{siteA, siteB}, nil}}, "", "open", true, true, 0},
		{"a former one", []step{{[]*configv1.Entry{siteA, siteB, doorOf("a", "shut")}, nil}, {[]*configv1.Entry{doorOf("a", "broken")}, nil}}, "shut", "open", true, true, 1},
		{"none before", []step{{[]*configv1.Entry{siteA, siteB}, nil}, {[]*configv1.Entry{doorOf("a", "broken")}, nil}}, "", "open", false, true, 1},
		{"before its site comes", []step{{[]*configv1.Entry{siteB, doorOf("a", "broken")}, nil}, {[]*configv1.Entry{siteA}, nil}}, "", "open", false, true, 1},
		{"with its site, which changes after", []step{
			{[]*configv1.Entry{siteA, siteB, doorOf("a", "broken")}, nil}, {[]*configv1.Entry{edgetest.Entry("site", "a", edgetest.Site(1, "a.com"))}, nil},
			{[]*configv1.Entry{edgetest.Entry("protection", "a", &configv1.SiteProtection{PowDifficulty: 9})}, nil},
		}, "", "open", false, true, 1},
		{"whose site was deleted and comes back", []step{
			{[]*configv1.Entry{siteA, siteB, doorOf("a", "shut")}, nil}, {[]*configv1.Entry{doorOf("a", "broken")}, []*configv1.EntryKey{edgetest.Key("site", "a")}},
			{[]*configv1.Entry{siteA}, nil},
		}, "shut", "open", true, true, 1},
		{"then a good one", []step{{[]*configv1.Entry{siteA, siteB, doorOf("a", "broken")}, nil}, {[]*configv1.Entry{doorOf("a", "shut")}, nil}}, "shut", "open", true, true, 0},
		{"then none", []step{{[]*configv1.Entry{siteA, siteB, doorOf("a", "broken")}, nil}, {nil, []*configv1.EntryKey{edgetest.Key("test: door", "a")}}}, "", "open", true, true, 0},
		{"a good one, none, a bad one", []step{
			{[]*configv1.Entry{siteA, siteB, doorOf("a", "shut")}, nil}, {nil, []*configv1.EntryKey{edgetest.Key("test: door", "a")}},
			{[]*configv1.Entry{doorOf("a", "broken")}, nil},
		}, "", "open", false, true, 1},
		{"lacking, which is no failure", []step{{[]*configv1.Entry{siteA, siteB}, nil}, {[]*configv1.Entry{held}, nil}}, "", "open", true, true, 0},
		{"of the cluster, a former one", []step{{[]*configv1.Entry{siteA, siteB, gatesOf("shut")}, nil}, {[]*configv1.Entry{gatesOf("broken")}, nil}}, "", "shut", true, true, 1},
		{"of the cluster, none before", []step{{[]*configv1.Entry{siteA, siteB, doorOf("a", "shut"), gatesOf("broken")}, nil}}, "shut", "open", false, false, 1},
		{"of the cluster, then a good one", []step{{[]*configv1.Entry{siteA, siteB, gatesOf("broken")}, nil}, {[]*configv1.Entry{gatesOf("shut")}, nil}}, "", "shut", true, true, 0},
		{"of the cluster, then none", []step{
			{[]*configv1.Entry{siteA, siteB, gatesOf("broken")}, nil}, {nil, []*configv1.EntryKey{edgetest.Key("test: gates", "")}},
		}, "", "open", true, true, 0},
	} {
		check := func(when string, node *core.Core) {
			t.Helper()
			tables := node.Tables()
			for host, want := range map[string]bool{"a.com": c.a, "b.com": c.b} {
				plan := core.PlanOfHost(tables, host)
				if plan == nil {
					t.Errorf("%s, %s: %s is gone", c.name, when, host)
				} else if got := core.Guarded(tables, plan); got != want {
					t.Errorf("%s, %s: %s guarded: %v", c.name, when, host, got)
				}
			}
			if plan := core.PlanOfHost(tables, "a.com"); plan != nil {
				text := ""
				if d := door.Of(plan); d != nil {
					text = *d
				}
				if text != c.door || gates.Of(tables) != c.gates {
					t.Errorf("%s, %s: door %q, gates %q", c.name, when, text, gates.Of(tables))
				}
			}
			failed := node.Status().Failed
			if len(failed) != c.fails || c.fails > 0 && !strings.Contains(failed[0].GetReason(), "lock 7") {
				t.Errorf("%s, %s: reported are %v", c.name, when, failed)
			}
		}
		dir := t.TempDir()
		running := core.New(core.Options{StateDir: dir})
		records := []*edgev1.JournalRecord{edgetest.Header("n")}
		for i, step := range c.steps {
			edgetest.Change(t, running, step.upserts, step.deletes...)
			records = append(records, edgetest.Config(uint64(i+1), step.upserts, step.deletes...))
		}
		check("as it came", running)
		edgetest.WriteJournal(t, filepath.Join(dir, "config.journal"), records...)
		check("after a restart", core.New(core.Options{StateDir: dir}))
		if _, _, err := running.ReloadConfig(); err != nil {
			t.Fatal(err)
		}
		check("read again", running)
		// The journal that a snapshot made says nothing of it any more.
		edgetest.WriteJournal(t, filepath.Join(dir, "config.journal"), edgetest.Header("n"), edgetest.Config(9, []*configv1.Entry{siteA, siteB}))
		if _, _, err := running.ReloadConfig(); err != nil {
			t.Fatal(err)
		}
		for _, host := range []string{"a.com", "b.com"} {
			if !core.Guarded(running.Tables(), core.PlanOfHost(running.Tables(), host)) {
				t.Errorf("%s: %s waits for a guard that nobody asks for", c.name, host)
			}
		}
	}
}
