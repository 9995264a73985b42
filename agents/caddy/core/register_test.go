package core_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
	"edge.svc/caddy/internal/edgetest"
)

// A feature that exists in this file only: a setting, two parts of sites, a kind of its own, live state, a component
// with an option, a capability and a call. Nothing but its registration names it.
type (
	greeting struct{ text string }
	tally    struct{ n int }
	greeter  struct {
		volume   int
		restored bool
	}
)

var (
	motto   = exchange.NewSetting("test: motto", "none")
	greet   = core.PartOf("greeting", "test: greeting", compileGreeting)
	origins = core.PartOf("site", "test: origins", countOrigins)
	visits  = exchange.NewLive[tally]("test: visits")
	volume  = core.NewOption("test_volume", 3, func(n int) error {
		if n > 11 {
			return errors.New("goes to 11")
		}
		return nil
	})
	greeters = core.NewComponent("test: greeter", func(c *core.Core) *greeter { return &greeter{volume: volume.Of(c)} })
)

func init() {
	core.ConfigureKind("greeting", core.KindOptions{Features: []string{"greeting-v1"}, MaxBody: 200})
	core.SettingKind("motto", motto, func(m *configv1.ClientIp) (string, error) { return m.GetHeader(), nil })
	core.RegisterCall("/test.Greeter/Greet", func(context.Context, *core.Core, *edgev1.GetStatusRequest) (*edgev1.GetStatusResponse, error) {
		return nil, nil
	})
}

func compileGreeting(_ *core.Core, _ string, m *configv1.ClientIp) (*greeting, error) {
	switch m.GetHeader() {
	case "":
		return nil, nil
	case "rude":
		return nil, errors.New("not rude ones")
	case "panic":
		panic("greeting")
	}
	return &greeting{m.GetHeader()}, nil
}

func countOrigins(_ *core.Core, _ string, m *configv1.Site) (*tally, error) {
	return &tally{len(m.GetOrigins())}, nil
}

func (g *greeter) Restore()                               { g.restored = true }
func (g *greeter) FillStatus(s *edgev1.GetStatusResponse) { s.Warnings = append(s.Warnings, "greeted") }
func (g *greeter) Volume() int                            { return g.volume }

func hello(siteID, text string) *configv1.Entry {
	return edgetest.Entry("greeting", siteID, &configv1.ClientIp{Header: text})
}

func siteOfTest(id string, domains ...string) *configv1.Entry {
	return edgetest.Entry("site", id, edgetest.Site(0, domains...))
}

func newCore(t testing.TB) *core.Core {
	t.Helper()
	return core.New(core.Options{StateDir: t.TempDir()})
}

func planOf(t testing.TB, c *core.Core, id string) *exchange.Plan {
	t.Helper()
	plan := core.PlanOfSite(c.Tables(), id)
	if plan == nil {
		t.Fatalf("no site %q", id)
	}
	return plan
}

func textOf(p *exchange.Plan) string {
	if g := greet.Of(p); g != nil {
		return g.text
	}
	return ""
}

func TestFeatureIsAllThatNamesIt(t *testing.T) {
	c := core.New(core.Options{StateDir: t.TempDir(), Values: map[string]any{"test_volume": 5}})
	if !slices.Contains(core.Capabilities(), "greeting-v1") || !slices.Contains(c.Report().GetCapabilities(), "greeting-v1") {
		t.Error("its capability is not reported")
	}
	if !slices.Contains(c.Report().GetWarnings(), "greeted") {
		t.Error("its component was not asked for its status")
	}
	g := greeters.Of(c)
	if found := core.Find[interface{ Volume() int }](c); found == nil || found.Volume() != 5 || !g.restored || found != any(g) {
		t.Errorf("%v %v", found, g)
	}
	if core.Find[interface{ NobodyDoesThis() }](c) != nil {
		t.Error("somebody does what nobody does")
	}
	if !slices.ContainsFunc(core.Calls(), func(call core.Call) bool { return call.Procedure == "/test.Greeter/Greet" }) {
		t.Error("its call is not there")
	}
	edgetest.Change(t, c, []*configv1.Entry{
		edgetest.Entry("motto", "", &configv1.ClientIp{Header: "onwards"}), siteOfTest("a", "a.com"), hello("a", "hi"),
	})
	if motto.Of(c.Tables()) != "onwards" || textOf(planOf(t, c, "a")) != "hi" {
		t.Error("its entries are not there")
	}
	edgetest.Change(t, c, nil, edgetest.Key("motto", ""), edgetest.Key("greeting", "a"))
	if motto.Of(c.Tables()) != "none" || textOf(planOf(t, c, "a")) != "" {
		t.Error("its entries are still there")
	}
}

// What is said of a site may come before it and outlive it.
func TestPartsWaitForTheirSite(t *testing.T) {
	c := newCore(t)
	edgetest.Change(t, c, []*configv1.Entry{hello("a", "hi")})
	edgetest.Change(t, c, []*configv1.Entry{siteOfTest("a", "a.com")})
	if textOf(planOf(t, c, "a")) != "hi" {
		t.Error("what came before the site is lost")
	}
	edgetest.Change(t, c, nil, edgetest.Key("site", "a"))
	edgetest.Change(t, c, []*configv1.Entry{siteOfTest("a", "a.com")})
	if textOf(planOf(t, c, "a")) != "hi" {
		t.Error("what outlived the site is lost")
	}
	edgetest.Change(t, c, nil, edgetest.Key("site", "a"))
	edgetest.Change(t, c, nil, edgetest.Key("greeting", "a"))
	edgetest.Change(t, c, []*configv1.Entry{siteOfTest("a", "a.com")})
	if textOf(planOf(t, c, "a")) != "" {
		t.Error("what was removed while it waited came back")
	}
	// One that waits and is replaced by something bad stays, and says which version runs.
	edgetest.Change(t, c, []*configv1.Entry{hello("b", "good")})
	failed := edgetest.Change(t, c, []*configv1.Entry{hello("b", "rude")})
	if len(failed) != 1 || len(failed[0].GetRunningHash()) != 32 || !strings.Contains(failed[0].GetReason(), "rude") {
		t.Errorf("%v", failed)
	}
}

// A change of one kind of a site leaves its other parts as they are, compiled or not, and other sites alone.
func TestChangeOfOneKindTouchesOneSlot(t *testing.T) {
	c := newCore(t)
	edgetest.Change(t, c, []*configv1.Entry{siteOfTest("a", "a.com"), siteOfTest("b", "b.com"), hello("a", "hi"), hello("b", "hi")})
	a, b := planOf(t, c, "a"), planOf(t, c, "b")
	kept, said := origins.Of(a), greet.Of(b)
	count := visits.Put(a, &tally{7})
	edgetest.Change(t, c, []*configv1.Entry{hello("a", "hello")})
	next := planOf(t, c, "a")
	if next == a || next.Number != a.Number || origins.Of(next) != kept || textOf(next) != "hello" || textOf(a) != "hi" {
		t.Error("more than one slot, or another version's, was touched")
	}
	if visits.Of(next) != count || planOf(t, c, "b") != b || greet.Of(planOf(t, c, "b")) != said {
		t.Error("live state, or another site, was touched")
	}
	edgetest.Change(t, c, []*configv1.Entry{siteOfTest("a", "a.com", "www.a.com")})
	if moved := planOf(t, c, "a"); origins.Of(moved) == kept || greet.Of(moved) != greet.Of(next) || visits.Of(moved) != count {
		t.Error("a change of the site itself keeps what is not of its entry, and nothing else")
	}
}

// Reading the journal again changes nothing of a site whose entries are unchanged, also where the journal has older
// versions of them.
func TestReloadKeepsWhatIsUnchanged(t *testing.T) {
	dir := t.TempDir()
	edgetest.WriteJournal(t, filepath.Join(dir, "config.journal"), edgetest.Header("node"),
		edgetest.Config(1, []*configv1.Entry{siteOfTest("a", "old.com"), hello("a", "old"), siteOfTest("gone", "gone.com")}),
		edgetest.Config(2, []*configv1.Entry{siteOfTest("a", "a.com"), hello("a", "hi"), siteOfTest("b", "b.com")}, edgetest.Key("site", "gone")))
	c := core.New(core.Options{StateDir: dir})
	a := planOf(t, c, "a")
	kept, count := origins.Of(a), visits.Put(a, &tally{7})
	c.ReloadConfig()
	if again := planOf(t, c, "a"); again != a || origins.Of(again) != kept || visits.Of(again) != count || textOf(again) != "hi" {
		t.Error("something else serves")
	}
	// Another site that takes a number over has nothing of the one before.
	edgetest.Change(t, c, nil, edgetest.Key("site", "a"))
	edgetest.Change(t, c, []*configv1.Entry{siteOfTest("c", "c.com"), siteOfTest("d", "d.com"), siteOfTest("e", "e.com")})
	numbers := map[uint32]string{}
	for _, id := range []string{"b", "c", "d", "e"} {
		plan := planOf(t, c, id)
		if other := numbers[plan.Number]; other != "" || visits.Of(plan) != nil || textOf(plan) != "" {
			t.Errorf("%s has the number of %q, %v, %q", id, other, visits.Of(plan), textOf(plan))
		}
		numbers[plan.Number] = id
	}
	if numbers[a.Number] == "" {
		t.Error("a number that nobody has is not given again")
	}
}

// Who loaded older tables sees the site that had a number then, whoever has it now.
func TestOlderTablesKeepTheirSites(t *testing.T) {
	c := newCore(t)
	edgetest.Change(t, c, []*configv1.Entry{siteOfTest("a", "a.com")})
	before := c.Tables()
	number := planOf(t, c, "a").Number
	edgetest.Change(t, c, nil, edgetest.Key("site", "a"))
	edgetest.Change(t, c, []*configv1.Entry{siteOfTest("b", "b.com")})
	if planOf(t, c, "b").Number != number {
		t.Fatal("the number was not given again")
	}
	if plan := core.PlanOfHost(before, "a.com"); plan == nil || plan.SiteID != "a" || core.PlanOfHost(before, "b.com") != nil {
		t.Errorf("%v", plan)
	}
}

func TestEntriesOfPartsThatFailAlone(t *testing.T) {
	c := newCore(t)
	failed := edgetest.Change(t, c, []*configv1.Entry{
		siteOfTest("a", "a.com"), siteOfTest("b", "b.com"), hello("a", "rude"), hello("b", "panic"), hello("", "hi"), hello("c", strings.Repeat("x", 200)), hello("d", "fine"),
	})
	reasons := map[string]string{}
	for _, f := range failed {
		reasons[f.GetId()] = f.GetReason()
	}
	for id, want := range map[string]string{"a": "rude", "b": "a panic", "": "id of its site", "c": "203 bytes"} {
		if !strings.Contains(reasons[id], want) {
			t.Errorf("%q: %q", id, reasons[id])
		}
	}
	if len(failed) != 4 {
		t.Errorf("%v", failed)
	}
}

// What the agent does by itself, entries may ask for; what neither of them does, they may not.
func TestCapabilitiesOfTheAgentAreNoFault(t *testing.T) {
	needing := func(features ...string) *configv1.Entry {
		entry := siteOfTest("a", "a.com")
		entry.Features = features
		return entry
	}
	told := core.New(core.Options{StateDir: t.TempDir(), AgentCapabilities: []string{"kernel-ban-v1", "metrics-v1"}})
	if failed := edgetest.Change(t, told, []*configv1.Entry{needing("kernel-ban-v1", "metrics-v1", "bans-v1", "domains-v2")}); len(failed) > 0 {
		t.Errorf("%v", failed)
	}
	if failed := edgetest.Change(t, told, []*configv1.Entry{needing("kernel-ban-v1", "waf-v9")}); len(failed) > 0 || told.Status().Lacking != 1 {
		t.Errorf("%v, %d lacking", failed, told.Status().Lacking)
	}
	if slices.Contains(told.Report().GetCapabilities(), "metrics-v1") {
		t.Error("what the agent does is reported as the data plane's")
	}
	untold := newCore(t)
	if edgetest.Change(t, untold, []*configv1.Entry{needing("metrics-v1")}); untold.Status().Lacking != 1 {
		t.Errorf("%d lacking", untold.Status().Lacking)
	}
}

func TestFieldsOfTheApp(t *testing.T) {
	for text, want := range map[string]string{
		`{"state_dir":"/s","socket":"/s/x","test_volume":11,"ban_capacity":5,"agent_capabilities":["a-v1"]}`: "",
		`{"test_volume":0}`:           "",
		`{"test_volume":12}`:          "test_volume goes to 11",
		`{"test_volume":"loud"}`:      "test_volume",
		`{"ban_capacity":-1}`:         "ban_capacity is -1 and must be positive",
		`{"ban_max_mib":-1}`:          "ban_max_mib",
		`{"challenge_replay_mib":-1}`: "challenge_replay_mib",
		`{"nobody":1}`:                `no field "nobody"`,
	} {
		err := new(core.App).UnmarshalJSON([]byte(text))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// Requests read plans while the configuration is read again and again; the race detector watches.
func TestSiteThatServesIsNeverWritten(t *testing.T) {
	dir := t.TempDir()
	edgetest.WriteJournal(t, filepath.Join(dir, "config.journal"), edgetest.Header("node"),
		edgetest.Config(1, []*configv1.Entry{siteOfTest("a", "old.com", "~old[0-9]"), hello("a", "old")}),
		edgetest.Config(2, []*configv1.Entry{siteOfTest("a", "a.com", "~a[0-9]"), hello("a", "hi")}))
	c := core.New(core.Options{StateDir: dir})
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				for _, host := range []string{"a.com", "a1"} {
					plan := core.PlanOfHost(c.Tables(), host)
					if plan == nil || plan.SiteID != "a" || !strings.HasPrefix(textOf(plan), "h") || origins.Of(plan).n != 1 {
						t.Error("another site")
						return
					}
					if visits.Of(plan) == nil {
						visits.Put(plan, new(tally))
					}
				}
			}
		})
	}
	for i := range 100 {
		c.ReloadConfig()
		edgetest.Change(t, c, []*configv1.Entry{hello("a", fmt.Sprint("h", i))})
	}
	close(stop)
	wg.Wait()
}

func TestComponentThatPanicsRunsAgain(t *testing.T) {
	runs := make(chan int, 2)
	stop := make(chan struct{})
	n := 0
	go core.KeepRunning(newCore(t), func(<-chan struct{}) {
		n++
		runs <- n
		if n == 1 {
			panic("once")
		}
		<-stop
	}, stop)
	defer close(stop)
	for want := 1; want <= 2; want++ {
		select {
		case got := <-runs:
			if got != want {
				t.Errorf("%d", got)
			}
		case <-time.After(20 * time.Second):
			t.Fatal("it does not run again")
		}
	}
}
