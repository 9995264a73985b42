package lists

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
	"edge.svc/caddy/internal/edgetest"
)

const (
	collection = configv1.IpListKind_IP_LIST_KIND_COLLECTION
	allowing   = configv1.IpListKind_IP_LIST_KIND_ALLOW
	blocking   = configv1.IpListKind_IP_LIST_KIND_BLOCK
)

// on says who is on a list: "in", "out", or "unknown" where no whole version of it ever came.
func on(t *testing.T, c *core.Core, list, address string) string {
	t.Helper()
	lists := core.Find[exchange.IPLists](c)
	if lists == nil {
		t.Fatal("nobody knows lists")
	}
	addr, _ := netip.ParseAddr(address)
	switch in, whole := lists.Contains(c.Tables(), list, addr); {
	case !whole && !in:
		return "unknown"
	case whole && in:
		return "in"
	case whole:
		return "out"
	}
	return "in a list that is not whole"
}

func header(id string, kind configv1.IpListKind, entries uint32) *configv1.Entry {
	return edgetest.Entry("ip-list", id, list(kind, entries))
}

func part(id string, number int, cidrs ...string) *configv1.Entry {
	return edgetest.Entry("ip-list-chunk", fmt.Sprintf("%s/%d", id, number), chunk(id, cidrs...))
}

func TestEveryListHasMembersOfItsOwn(t *testing.T) {
	c := core.New(core.Options{StateDir: t.TempDir()})
	edgetest.Change(t, c, []*configv1.Entry{
		header("office", collection, 3), part("office", 0, "192.0.2.0/24", "2001:db8::/32"), part("office", 9, "198.51.100.7/32"),
		header("friends", allowing, 1), part("friends", 3, "203.0.113.1/32"),
		header("foes", blocking, 1), part("foes", 3, "203.0.113.2/32"),
		header("nobody", collection, 0),
	})
	for _, row := range []struct{ list, address, want string }{
		{"office", "192.0.2.200", "in"}, {"office", "2001:db8::7", "in"}, {"office", "198.51.100.7", "in"},
		{"office", "198.51.100.8", "out"}, {"office", "203.0.113.1", "out"}, {"office", "", "out"},
		{"friends", "203.0.113.1", "in"}, {"friends", "203.0.113.2", "out"},
		{"foes", "203.0.113.2", "in"}, {"foes", "203.0.113.1", "out"},
		{"nobody", "192.0.2.1", "out"}, {"none", "192.0.2.1", "unknown"}, {"", "192.0.2.1", "unknown"},
	} {
		if got := on(t, c, row.list, row.address); got != row.want {
			t.Errorf("%q is %s %s, should be %s", row.address, got, row.list, row.want)
		}
	}
	// Two spellings of one network, in two chunks: either is enough.
	edgetest.Change(t, c, []*configv1.Entry{header("office", collection, 2), part("office", 0, "192.0.2.0/24"), part("office", 9, "::ffff:192.0.2.0/120")})
	edgetest.Change(t, c, []*configv1.Entry{header("office", collection, 1)}, edgetest.Key("ip-list-chunk", "office/9"))
	if got := on(t, c, "office", "192.0.2.1"); got != "in" {
		t.Error(got)
	}
}

// While a part of a list is missing the version before counts, for rules and for everybody.
func TestHalfAListCountsForNothing(t *testing.T) {
	steps := []struct {
		name    string
		upserts []*configv1.Entry
		deletes []*configv1.EntryKey
		// Who is on the list: .1 is in chunk 0, .2 in chunk 1, .3 comes later.
		members string
		warned  bool
	}{
		{"the header alone", []*configv1.Entry{header("l", blocking, 2)}, nil, "???", true},
		{"one of two chunks", []*configv1.Entry{part("l", 0, "192.0.2.1")}, nil, "???", true},
		{"both", []*configv1.Entry{part("l", 1, "192.0.2.2")}, nil, "12-", false},
		{"a header for more than there is", []*configv1.Entry{header("l", blocking, 3)}, nil, "12-", true},
		{"a chunk that does not compile", []*configv1.Entry{part("l", 1, "192.0.2.2", "no address")}, nil, "12-", true},
		{"a chunk too few", nil, []*configv1.EntryKey{edgetest.Key("ip-list-chunk", "l/0")}, "12-", true},
		{"all that the header says", []*configv1.Entry{part("l", 1, "192.0.2.2", "192.0.2.3"), part("l", 0, "198.51.100.1")}, nil, "-23", false},
		{"a chunk too many", []*configv1.Entry{part("l", 5, "192.0.2.1")}, nil, "-23", true},
		{"the header for it, another kind with it", []*configv1.Entry{header("l", collection, 4)}, nil, "123", false},
		{"the list is deleted, a chunk is left", nil, []*configv1.EntryKey{edgetest.Key("ip-list", "l")}, "???", false},
		{"nothing is left", nil, []*configv1.EntryKey{edgetest.Key("ip-list-chunk", "l/0"), edgetest.Key("ip-list-chunk", "l/1"),
			edgetest.Key("ip-list-chunk", "l/5")}, "???", false},
	}
	c := core.New(core.Options{StateDir: t.TempDir()})
	kind := configv1.IpListKind_IP_LIST_KIND_UNSPECIFIED
	for _, step := range steps {
		edgetest.Change(t, c, step.upserts, step.deletes...)
		for i, want := range step.members {
			address := fmt.Sprintf("192.0.2.%d", i+1)
			if got := on(t, c, "l", address); got != map[rune]string{'?': "unknown", '-': "out"}[want] && (got != "in" || want == '?' || want == '-') {
				t.Errorf("%s: %s is %s, members are %s", step.name, address, got, step.members)
			}
			if v := versionOf(c.Tables(), "l"); v != nil {
				kind = v.kind
			} else {
				kind = configv1.IpListKind_IP_LIST_KIND_UNSPECIFIED
			}
			if blocked := blocks(c.Tables(), address); blocked != (kind == blocking && want != '-' && want != '?') {
				t.Errorf("%s: %s blocked: %v", step.name, address, blocked)
			}
		}
		if warned := strings.Contains(strings.Join(warnings(c), " "), `the first is "l"`); warned != step.warned {
			t.Errorf("%s: warnings %v", step.name, warnings(c))
		}
	}
}

func warnings(c *core.Core) []string {
	return c.Report().GetWarnings()
}

// A process that starts goes back to the last whole version that its journal tells of. One that runs keeps what it has when
// the journal, written anew, lacks a part.
func TestHalfAListInAJournal(t *testing.T) {
	whole := []*edgev1.JournalRecord{
		edgetest.Config(1, []*configv1.Entry{header("l", blocking, 2), part("l", 0, "192.0.2.1"), part("l", 1, "192.0.2.2")}),
	}
	broken := edgetest.Config(2, []*configv1.Entry{header("l", blocking, 3), part("l", 0, "192.0.2.3"), part("l", 1, "192.0.2.2", "no address")})
	for _, row := range []struct {
		name            string
		records         []*edgev1.JournalRecord
		started, reread string
	}{
		{"a chunk of the newest version fails", append(whole[:1:1], broken), "12-", "12-"},
		{"a snapshot cut short", []*edgev1.JournalRecord{
			{Record: &edgev1.JournalRecord_Config{Config: &edgev1.ConfigChange{Upserts: []*configv1.Entry{header("l", blocking, 2)}}}},
			edgetest.Config(2, []*configv1.Entry{part("l", 0, "192.0.2.1")}),
		}, "???", "12-"},
		{"the header is missing", []*edgev1.JournalRecord{edgetest.Config(2, []*configv1.Entry{part("l", 0, "192.0.2.1")})}, "???", "12-"},
		{"a list that shrank", []*edgev1.JournalRecord{edgetest.Config(2, []*configv1.Entry{header("l", blocking, 1), part("l", 1, "192.0.2.2")})}, "-2-", "-2-"},
		{"a list that is gone", []*edgev1.JournalRecord{edgetest.Config(2, nil)}, "???", "???"},
	} {
		t.Run(row.name, func(t *testing.T) {
			dir := t.TempDir()
			write := func(records []*edgev1.JournalRecord) {
				t.Helper()
				edgetest.WriteJournal(t, filepath.Join(dir, "config.journal"), append([]*edgev1.JournalRecord{edgetest.Header("node")}, records...)...)
			}
			check := func(c *core.Core, members string) {
				t.Helper()
				for i, want := range members {
					address := fmt.Sprintf("192.0.2.%d", i+1)
					got := on(t, c, "l", address)
					if expected := map[rune]string{'?': "unknown", '-': "out"}[want]; got != expected && (expected != "" || got != "in") {
						t.Errorf("%s is %s, members are %s", address, got, members)
					}
					if blocked := blocks(c.Tables(), address); blocked != (got == "in") {
						t.Errorf("%s, which is %s, blocked: %v", address, got, blocked)
					}
				}
			}
			write(whole)
			running := core.New(core.Options{StateDir: dir})
			check(running, "12-")
			write(row.records)
			if _, _, err := running.ReloadConfig(); err != nil {
				t.Fatal(err)
			}
			check(running, row.reread)
			check(core.New(core.Options{StateDir: dir}), row.started)
		})
	}
}

// fill brings as many lists and entries as there may be.
func fill(c testing.TB, node *core.Core) {
	var entries []*configv1.Entry
	for l := range 50 {
		id := fmt.Sprintf("11111111-1111-4111-8111-%012d", l)
		entries = append(entries, header(id, []configv1.IpListKind{collection, allowing, blocking}[l%3], 1000))
		for n := range 50 {
			var cidrs []string
			for i := range 20 {
				cidrs = append(cidrs, fmt.Sprintf("%d.%d.%d.0/%d", 1+l, n, i*7, 24+i%9))
			}
			entries = append(entries, part(id, n, cidrs...))
		}
	}
	if failed := edgetest.Change(c, node, entries); len(failed) > 0 {
		c.Fatal(failed)
	}
}

func TestContainsAllocatesNothing(t *testing.T) {
	c := core.New(core.Options{StateDir: t.TempDir()})
	fill(t, c)
	lists, tables := core.Find[exchange.IPLists](c), c.Tables()
	const id = "11111111-1111-4111-8111-000000000021"
	for _, address := range []string{"22.3.7.1", "22.3.8.1", "2001:db8::1"} {
		addr := mustAddr(address)
		if n := testing.AllocsPerRun(100, func() { lists.Contains(tables, id, addr) }); n != 0 {
			t.Errorf("%v allocations for %s", n, address)
		}
	}
	if in, whole := lists.Contains(tables, id, mustAddr("22.3.7.1")); !in || !whole {
		t.Error("it is on the list")
	}
}

func BenchmarkContains(b *testing.B) {
	c := core.New(core.Options{StateDir: b.TempDir()})
	fill(b, c)
	lists, tables, addr := core.Find[exchange.IPLists](c), c.Tables(), mustAddr("22.3.7.1")
	b.ReportAllocs()
	for b.Loop() {
		lists.Contains(tables, "11111111-1111-4111-8111-000000000021", addr)
	}
}
