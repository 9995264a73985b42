package core_test

import (
	"bytes"
	"crypto/sha256"
	"path/filepath"
	"testing"

	"edge.svc/caddy/core"
	"edge.svc/caddy/features/challenge"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
	"edge.svc/caddy/internal/edgetest"
)

const later = "later-v1"

func needingLater(entry *configv1.Entry) *configv1.Entry {
	entry.Features = append(entry.Features, later)
	return entry
}

func protectionOf(id string, p *configv1.SiteProtection) *configv1.Entry {
	return edgetest.Entry("protection", id, p)
}

// able is a core over a folder that can do what a new version of the program will.
func able(dir string) *core.Core {
	return core.New(core.Options{StateDir: dir, AgentCapabilities: []string{later}})
}

// apply is a change in which some keys came before the node served their site.
func apply(t *testing.T, c *core.Core, upserts []*configv1.Entry, unserved ...*configv1.EntryKey) {
	t.Helper()
	base := c.Position()
	if _, _, err := c.Apply(base, edgetest.Position(base.GetRevision()+1), upserts, nil, unserved...); err != nil {
		t.Fatal(err)
	}
}

// Lacking is not failed: the former version keeps serving, what comes beside it takes effect, and a new program takes over
// what was held.
func TestAnEntryThatNeedsWhatTheNodeLacksIsHeld(t *testing.T) {
	dir := t.TempDir()
	former, newer := edgetest.Entry("site", "a", edgetest.Site(0, "a.com")), needingLater(edgetest.Entry("site", "a", edgetest.Site(0, "new.com")))
	beside := edgetest.Entry("site", "b", edgetest.Site(0, "b.com"))
	holds := func(c *core.Core) {
		t.Helper()
		for host, want := range map[string]bool{"a.com": true, "new.com": false, "b.com": true} {
			if plan := core.PlanOfHost(c.Tables(), host); (plan != nil) != want || want && plan.Unserved {
				t.Errorf("%s: %v", host, plan)
			}
		}
		status := c.Report()
		if len(status.GetFailed()) != 0 || status.GetHeld() != 1 || status.GetConfig().GetRevision() != 2 {
			t.Errorf("%v failed, %d lacking at %v", status.GetFailed(), status.GetHeld(), status.GetConfig())
		}
		_, failing, _ := c.Failing(nil)
		if want := sha256.Sum256(former.GetBody()); len(failing) != 1 || !bytes.Equal(failing[0].GetRunningHash(), want[:]) {
			t.Errorf("what runs instead: %v", failing)
		}
	}
	c := core.New(core.Options{StateDir: dir})
	edgetest.Change(t, c, []*configv1.Entry{former})
	edgetest.Change(t, c, []*configv1.Entry{newer, beside})
	holds(c)

	journal := filepath.Join(dir, "config.journal")
	edgetest.WriteJournal(t, journal, edgetest.Header("n"), edgetest.Config(1, []*configv1.Entry{former}), edgetest.Config(2, []*configv1.Entry{newer, beside}))
	holds(core.New(core.Options{StateDir: dir}))
	// As a compaction writes it.
	edgetest.WriteJournal(t, journal, edgetest.Header("n"), edgetest.Config(2, []*configv1.Entry{former, newer, beside}))
	holds(core.New(core.Options{StateDir: dir}))
	if _, _, err := c.ReloadConfig(); err != nil {
		t.Fatal(err)
	}
	holds(c)

	upgraded := able(dir)
	if core.PlanOfHost(upgraded.Tables(), "new.com") == nil || core.PlanOfHost(upgraded.Tables(), "a.com") != nil || upgraded.Status().Lacking != 0 {
		t.Error("the new version was not applied")
	}
	// And a change back needs nothing.
	edgetest.Change(t, c, []*configv1.Entry{former})
	if c.Status().Lacking != 0 || core.PlanOfHost(c.Tables(), "a.com") == nil {
		t.Error("a version that needs nothing is lacking")
	}
	edgetest.Change(t, c, []*configv1.Entry{newer})
	edgetest.Change(t, c, nil, edgetest.Key("site", "a"))
	if c.Status().Lacking != 0 || core.PlanOfHost(c.Tables(), "a.com") != nil {
		t.Error("a deletion is lacking")
	}
}

// Without a former version a site that was served goes on, and one that never was answers nothing of its own.
func TestAHeldEntryWithoutAFormerVersion(t *testing.T) {
	site, held := edgetest.Entry("site", "a", edgetest.Site(0, "a.com")), needingLater(&configv1.Entry{Kind: "from-the-future", Id: "a"})
	unserved := func(c *core.Core, want bool) {
		t.Helper()
		if plan := core.PlanOfHost(c.Tables(), "a.com"); plan == nil || plan.Unserved != want {
			t.Errorf("%v, want unserved %v", plan, want)
		}
	}
	served := newCore(t)
	edgetest.Change(t, served, []*configv1.Entry{site})
	edgetest.Change(t, served, []*configv1.Entry{held})
	unserved(served, false)

	dir := t.TempDir()
	fresh := core.New(core.Options{StateDir: dir})
	apply(t, fresh, []*configv1.Entry{site, held}, edgetest.Key("from-the-future", "a"))
	unserved(fresh, true)
	apply(t, fresh, []*configv1.Entry{edgetest.Entry("site", "a", edgetest.Site(1, "a.com"))})
	unserved(fresh, true)
	record := edgetest.Config(1, []*configv1.Entry{site, held})
	record.GetConfig().Unserved = []*configv1.EntryKey{edgetest.Key("from-the-future", "a")}
	edgetest.WriteJournal(t, filepath.Join(dir, "config.journal"), edgetest.Header("n"), record)
	unserved(core.New(core.Options{StateDir: dir}), true)
	edgetest.Change(t, fresh, nil, edgetest.Key("from-the-future", "a"))
	unserved(fresh, false)
}

// The site's own entry is the one that is lacking: its names are known, and nothing else of it.
func TestASiteThatWasNeverServedIsAnnounced(t *testing.T) {
	c := newCore(t)
	held := func(domains ...string) *configv1.Entry {
		return needingLater(edgetest.Entry("site", "a", edgetest.Site(0, domains...)))
	}
	edgetest.Change(t, c, []*configv1.Entry{held("a.com", "~bad(")})
	if plan := core.PlanOfHost(c.Tables(), "a.com"); plan == nil || !plan.Unserved {
		t.Fatalf("%v", plan)
	}
	edgetest.Change(t, c, []*configv1.Entry{held("other.com")})
	if core.PlanOfHost(c.Tables(), "a.com") != nil || core.PlanOfHost(c.Tables(), "other.com") == nil {
		t.Error("the names are those of the version before")
	}
	edgetest.Change(t, c, []*configv1.Entry{edgetest.Entry("site", "a", edgetest.Site(0, "a.com"))})
	if plan := core.PlanOfHost(c.Tables(), "a.com"); plan == nil || plan.Unserved || core.PlanOfHost(c.Tables(), "other.com") != nil {
		t.Errorf("%v", plan)
	}
	edgetest.Change(t, c, nil, edgetest.Key("site", "a"))
	edgetest.Change(t, c, []*configv1.Entry{held("a.com")})
	edgetest.Change(t, c, nil, edgetest.Key("site", "a"))
	if core.PlanOfHost(c.Tables(), "a.com") != nil || core.SiteCount(c.Tables()) != 0 {
		t.Error("a site that is announced cannot be deleted")
	}
}

// Nothing holds the switches: they are taken from a version that is held, across a restart, and the rest of it is not.
func TestEmergencySwitchesAreNeverHeld(t *testing.T) {
	dir := t.TempDir()
	on := edgetest.Entry("site", "a", edgetest.Site(0, "a.com"))
	message := edgetest.Site(0, "new.com")
	message.Disabled = true
	off := needingLater(edgetest.Entry("site", "a", message))
	calm := protectionOf("a", &configv1.SiteProtection{PowDifficulty: 12})
	attacked := needingLater(protectionOf("a", &configv1.SiteProtection{PowDifficulty: 20, UnderAttack: true, UnderAttackChallenge: configv1.ChallengeType_CHALLENGE_TYPE_POW, LogJa4: true}))
	switched := func(c *core.Core) {
		t.Helper()
		plan := core.PlanOfHost(c.Tables(), "a.com")
		if plan == nil || !plan.Disabled || plan.Unserved || core.PlanOfHost(c.Tables(), "new.com") != nil {
			t.Fatalf("%v", plan)
		}
		if p := challenge.ProtectionOf(plan); !p.UnderAttack || p.Challenge != challenge.Pow || p.PowDifficulty != 12 || p.LogJA4 {
			t.Errorf("%+v", p)
		}
		_, failing, _ := c.Failing(nil)
		for i, body := range [][]byte{calm.GetBody(), on.GetBody()} {
			if want := sha256.Sum256(body); len(failing) != 2 || !bytes.Equal(failing[i].GetRunningHash(), want[:]) {
				t.Errorf("what runs instead: %v", failing)
			}
		}
	}
	c := core.New(core.Options{StateDir: dir})
	edgetest.Change(t, c, []*configv1.Entry{on, calm})
	edgetest.Change(t, c, []*configv1.Entry{off, attacked})
	switched(c)
	edgetest.WriteJournal(t, filepath.Join(dir, "config.journal"), edgetest.Header("n"),
		&edgev1.JournalRecord{Record: edgetest.Config(0, []*configv1.Entry{on, off, calm, attacked}).Record}, edgetest.Config(2, nil))
	switched(core.New(core.Options{StateDir: dir}))

	// On again, still with something the node lacks: what it served before.
	edgetest.Change(t, c, []*configv1.Entry{needingLater(edgetest.Entry("site", "a", edgetest.Site(0, "new.com")))})
	if plan := planOf(t, c, "a"); plan.Disabled || plan.Unserved {
		t.Errorf("%v", plan)
	}
	// The first version comes once more: nothing of the switches is left in it.
	edgetest.Change(t, c, []*configv1.Entry{on, calm})
	if plan := planOf(t, c, "a"); plan.Disabled || challenge.ProtectionOf(plan).UnderAttack || c.Status().Lacking != 0 {
		t.Errorf("%v", plan)
	}
}

func TestSwitchesWithoutAFormerVersion(t *testing.T) {
	c := newCore(t)
	edgetest.Change(t, c, []*configv1.Entry{edgetest.Entry("site", "a", edgetest.Site(0, "a.com"))})
	held := func(on bool) *configv1.Entry {
		return needingLater(protectionOf("a", &configv1.SiteProtection{UnderAttack: on, LogJa4: true}))
	}
	for _, on := range []bool{false, true, false, true} {
		edgetest.Change(t, c, []*configv1.Entry{held(on)})
		plan := planOf(t, c, "a")
		if p := challenge.ProtectionOf(plan); p.UnderAttack != on || p.LogJA4 || plan.Unserved {
			t.Errorf("%v: %+v", on, p)
		}
		if _, failing, _ := c.Failing(nil); len(failing) != 1 || len(failing[0].GetRunningHash()) != 0 {
			t.Errorf("%v: %v", on, failing)
		}
	}

	// Switched off before it needed anything, then on: there is nothing that the node could serve.
	off := edgetest.Site(0, "b.com")
	off.Disabled = true
	edgetest.Change(t, c, []*configv1.Entry{edgetest.Entry("site", "b", off)})
	edgetest.Change(t, c, []*configv1.Entry{needingLater(edgetest.Entry("site", "b", edgetest.Site(0, "b.com")))})
	if plan := planOf(t, c, "b"); plan.Disabled || !plan.Unserved {
		t.Errorf("%v", plan)
	}
}
