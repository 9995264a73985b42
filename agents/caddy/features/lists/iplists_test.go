package lists

import (
	"net/http/httptest"
	"net/netip"
	"sync"
	"testing"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
	"edge.svc/caddy/internal/edgetest"
	"edge.svc/caddy/internal/exchangetest"
)

func mustAddr(s string) netip.Addr { return netip.MustParseAddr(s) }

func list(kind configv1.IpListKind, entries uint32) *configv1.IpList {
	return &configv1.IpList{ListKind: kind, EntryCount: entries}
}

func chunk(listID string, cidrs ...string) *configv1.IpListChunk {
	return &configv1.IpListChunk{ListId: listID, Cidrs: cidrs}
}

// seen is what the writer knows after the last change.
var seen map[string]*ipList

func init() {
	core.RegisterKind(core.Kind{
		Name: "test: look at the lists",
		Compile: func(*core.Core, string, []byte) (core.Change, error) {
			return func(e *core.Edit) { seen = arrived.Of(e).lists }, nil
		},
		Remove: func(*core.Edit, string) {},
	})
}

func writerLists(c *core.Core) map[string]*ipList {
	base := c.Position()
	_, _, _ = c.Apply(base, base, []*configv1.Entry{{Kind: "test: look at the lists"}}, nil)
	return seen
}

func TestIPListsByKindAndChunk(t *testing.T) {
	c := core.New(core.Options{StateDir: t.TempDir()})
	check := func(step string, address string, blocked, allowed bool) {
		t.Helper()
		tables := c.Tables()
		if blocks(tables, address) != blocked || Allowed(tables, mustAddr(address)) != allowed {
			t.Errorf("%s: %s blocked %v, allowed %v", step, address, !blocked, !allowed)
		}
	}
	edgetest.Change(t, c, []*configv1.Entry{edgetest.Entry("ip-list-chunk", "b/0", chunk("b", "192.0.2.0/24", "2001:db8::/32"))})
	check("a chunk without its list", "192.0.2.1", false, false)
	edgetest.Change(t, c, []*configv1.Entry{edgetest.Entry("ip-list", "b", list(configv1.IpListKind_IP_LIST_KIND_BLOCK, 2))})
	check("a block list", "192.0.2.1", true, false)
	check("a block list", "2001:db8::1", true, false)
	edgetest.Change(t, c, []*configv1.Entry{
		edgetest.Entry("ip-list", "a", list(configv1.IpListKind_IP_LIST_KIND_ALLOW, 2)),
		edgetest.Entry("ip-list-chunk", "a/7", chunk("a", "192.0.2.5/32", "::ffff:198.51.100.0/120")),
		edgetest.Entry("ip-list", "b2", list(configv1.IpListKind_IP_LIST_KIND_BLOCK, 2)),
		edgetest.Entry("ip-list-chunk", "b2/0", chunk("b2", "192.0.2.0/24", "198.51.100.0/24")),
	})
	check("allow wins over block", "192.0.2.5", false, true)
	check("a mapped network is IPv4", "198.51.100.9", false, true)
	check("the rest stays blocked", "192.0.2.6", true, false)
	edgetest.Change(t, c, nil, edgetest.Key("ip-list", "b2"), edgetest.Key("ip-list-chunk", "b2/0"))
	check("another list has the network too", "192.0.2.6", true, false)
	edgetest.Change(t, c, []*configv1.Entry{
		edgetest.Entry("ip-list", "b", list(configv1.IpListKind_IP_LIST_KIND_BLOCK, 1)), edgetest.Entry("ip-list-chunk", "b/0", chunk("b", "2001:db8::/32")),
	})
	check("a network left the chunk", "192.0.2.6", false, false)
	check("another stayed", "2001:db8::1", true, false)
	edgetest.Change(t, c, []*configv1.Entry{edgetest.Entry("ip-list", "b", list(configv1.IpListKind_IP_LIST_KIND_COLLECTION, 1))})
	check("a collection blocks nothing", "2001:db8::1", false, false)
	edgetest.Change(t, c, nil, edgetest.Key("ip-list-chunk", "b/0"), edgetest.Key("ip-list", "b"), edgetest.Key("ip-list", "a"), edgetest.Key("ip-list-chunk", "a/7"))
	if n := len(writerLists(c)); n != 0 || allow.Of(c.Tables()).Size() != 0 || block.Of(c.Tables()).Size() != 0 {
		t.Errorf("%d lists, %d and %d networks are left", n, allow.Of(c.Tables()).Size(), block.Of(c.Tables()).Size())
	}
}

// Published tables never change: readers beside a writer see each change whole or not at all.
func TestReadersSeeWholeChanges(t *testing.T) {
	c := core.New(core.Options{StateDir: t.TempDir()})
	on := []*configv1.Entry{
		edgetest.Entry("site", "a", edgetest.Site(0, "a.com", "~a[0-9]\\.com")), edgetest.Entry("ip-list", "b", list(configv1.IpListKind_IP_LIST_KIND_BLOCK, 1)),
		edgetest.Entry("ip-list-chunk", "b/0", chunk("b", "192.0.2.0/24")),
	}
	off := []*configv1.EntryKey{edgetest.Key("site", "a"), edgetest.Key("ip-list", "b"), edgetest.Key("ip-list-chunk", "b/0")}
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
				tables := c.Tables()
				exact, pattern := core.PlanOfHost(tables, "a.com") != nil, core.PlanOfHost(tables, "a1.com") != nil
				if blocked := blocks(tables, "192.0.2.1"); exact != pattern || exact != blocked {
					t.Errorf("half a change: %v %v %v", exact, pattern, blocked)
					return
				}
			}
		})
	}
	for range 300 {
		edgetest.Change(t, c, on)
		edgetest.Change(t, c, nil, off...)
	}
	close(stop)
	wg.Wait()
}

// blocks reports whether the stage denies a client.
func blocks(tables *exchange.Tables, address string) bool {
	x := exchangetest.New(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
	x.Tables, x.In.Client = tables, mustAddr(address)
	Stage(nil)(x)
	return x.Deferred() != nil
}

// An address that is merely claimed is spared by no list, and denied by one all the same.
func TestClaimedAddress(t *testing.T) {
	c := core.New(core.Options{StateDir: t.TempDir()})
	edgetest.Change(t, c, []*configv1.Entry{edgetest.Entry("ip-list", "a", &configv1.IpList{ListKind: configv1.IpListKind_IP_LIST_KIND_ALLOW, EntryCount: 1}),
		edgetest.Entry("ip-list-chunk", "a/0", &configv1.IpListChunk{ListId: "a", Cidrs: []string{"192.0.2.0/24"}}),
		edgetest.Entry("ip-list", "b", &configv1.IpList{ListKind: configv1.IpListKind_IP_LIST_KIND_BLOCK, EntryCount: 1}),
		edgetest.Entry("ip-list-chunk", "b/0", &configv1.IpListChunk{ListId: "b", Cidrs: []string{"192.0.2.1/32"}})})
	for _, claimed := range []bool{false, true} {
		x := exchangetest.New(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
		x.Tables, x.In.Client, x.In.Claimed = c.Tables(), mustAddr("192.0.2.1"), claimed
		Stage(c)(x)
		if listed, _ := exchange.AllowListed.Known(x); listed == claimed || (x.Deferred() != nil) != claimed {
			t.Errorf("claimed %v: listed %v", claimed, listed)
		}
	}
}
