package svccore

import (
	"errors"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	configv1 "edge.svc/caddy/gen/svc/config/v1"
	"edge.svc/caddy/internal/edgetest"
)

func mustAddr(s string) netip.Addr { return netip.MustParseAddr(s) }

func list(kind configv1.IpListKind) *configv1.IpList { return &configv1.IpList{ListKind: kind} }

func chunk(listID string, cidrs ...string) *configv1.IpListChunk {
	return &configv1.IpListChunk{ListId: listID, Cidrs: cidrs}
}

func TestChangeFromAnotherBaseChangesNothing(t *testing.T) {
	c := newCore(t)
	change(t, c, []*configv1.Entry{siteEntry("a", 1, "a.com")})
	held := c.Status().Position
	wrongHash := proto.CloneOf(held)
	wrongHash.SetHash = []byte("x")
	wrongEpoch := proto.CloneOf(held)
	wrongEpoch.Epoch++
	for _, attempt := range []struct {
		name string
		err  error
	}{
		{"hash", second(c.Apply(wrongHash, edgetest.Position(9), nil, []*configv1.EntryKey{edgetest.Key("site", "a")}))},
		{"epoch", second(c.Apply(wrongEpoch, edgetest.Position(9), nil, []*configv1.EntryKey{edgetest.Key("site", "a")}))},
		{"nothing", second(c.Apply(nil, edgetest.Position(9), nil, []*configv1.EntryKey{edgetest.Key("site", "a")}))},
	} {
		if !errors.Is(attempt.err, ErrBase) {
			t.Errorf("%s: %v", attempt.name, attempt.err)
		}
	}
	if hostOwner(c, "a.com") != "a" || !proto.Equal(c.Status().Position, held) {
		t.Error("something changed")
	}
}

func second[A, B any](_ A, _ B, err error) error { return err }

func TestEntriesThatCannotBeUsed(t *testing.T) {
	c := newCore(t)
	needy := siteEntry("needy", 1, "needy.com")
	needy.Features = []string{"domains-v2", "waf-v9"}
	change(t, c, []*configv1.Entry{
		needy,
		{Kind: "from-the-future", Id: "x"},
		{Kind: "site", Id: "garbage", Body: []byte{0xff, 0xff}},
		{Kind: "site", Id: ""},
		edgetest.Entry("client-ip", "second", &configv1.ClientIp{}),
		edgetest.Entry("unknown-hosts", "", &configv1.UnknownHosts{UnknownHost: 99}),
		edgetest.Entry("origin-policy", "", &configv1.OriginPolicy{AllowedCidrs: []string{"nonsense"}}),
		edgetest.Entry("ip-list", "l", list(99)),
		edgetest.Entry("ip-list-chunk", "l/0", chunk("other")),
		edgetest.Entry("ip-list-chunk", "l/1", chunk("l", "1.2.3.4/99")),
		siteEntry("good", 1, "good.com"),
	})
	failed := c.Status().Failed
	if len(failed) != 10 {
		t.Errorf("%d entries failed: %v", len(failed), failed)
	}
	for _, f := range failed {
		if f.GetReason() == "" || len(f.GetReason()) > 500 || len(f.GetReceivedHash()) != 32 {
			t.Errorf("%v", f)
		}
		if (f.GetKind() == "from-the-future" || f.GetId() == "needy") && !strings.Contains(f.GetReason(), "capability") {
			t.Errorf("%v", f)
		}
	}
	if hostOwner(c, "good.com") != "good" || hostOwner(c, "needy.com") != "" {
		t.Error("the entries did not fail alone")
	}
}

func TestReasonIsBoundedText(t *testing.T) {
	for _, text := range []string{strings.Repeat("é", 400), "a\xffb", strings.Repeat("\xff", 600)} {
		reason := reasonText(errors.New(text))
		if len(reason) > maxReasonBytes || strings.ToValidUTF8(reason, "") != reason {
			t.Errorf("%d bytes: %q", len(reason), reason)
		}
	}
}

func TestIPListsByKindAndChunk(t *testing.T) {
	c := newCore(t)
	check := func(step string, address string, blocked, allowed bool) {
		t.Helper()
		tables := c.Tables()
		if tables.Blocked(mustAddr(address)) != blocked || tables.Allowed(mustAddr(address)) != allowed {
			t.Errorf("%s: %s blocked %v, allowed %v", step, address, !blocked, !allowed)
		}
	}
	change(t, c, []*configv1.Entry{edgetest.Entry("ip-list-chunk", "b/0", chunk("b", "192.0.2.0/24", "2001:db8::/32"))})
	check("a chunk without its list", "192.0.2.1", false, false)
	change(t, c, []*configv1.Entry{edgetest.Entry("ip-list", "b", list(configv1.IpListKind_IP_LIST_KIND_BLOCK))})
	check("a block list", "192.0.2.1", true, false)
	check("a block list", "2001:db8::1", true, false)
	change(t, c, []*configv1.Entry{
		edgetest.Entry("ip-list", "a", list(configv1.IpListKind_IP_LIST_KIND_ALLOW)),
		edgetest.Entry("ip-list-chunk", "a/7", chunk("a", "192.0.2.5/32", "::ffff:198.51.100.0/120")),
		edgetest.Entry("ip-list", "b2", list(configv1.IpListKind_IP_LIST_KIND_BLOCK)),
		edgetest.Entry("ip-list-chunk", "b2/0", chunk("b2", "192.0.2.0/24", "198.51.100.0/24")),
	})
	check("allow wins over block", "192.0.2.5", false, true)
	check("a mapped network is IPv4", "198.51.100.9", false, true)
	check("the rest stays blocked", "192.0.2.6", true, false)
	change(t, c, nil, edgetest.Key("ip-list", "b2"), edgetest.Key("ip-list-chunk", "b2/0"))
	check("another list has the network too", "192.0.2.6", true, false)
	change(t, c, []*configv1.Entry{edgetest.Entry("ip-list-chunk", "b/0", chunk("b", "2001:db8::/32"))})
	check("a network left the chunk", "192.0.2.6", false, false)
	check("another stayed", "2001:db8::1", true, false)
	change(t, c, []*configv1.Entry{edgetest.Entry("ip-list", "b", list(configv1.IpListKind_IP_LIST_KIND_COLLECTION))})
	check("a collection blocks nothing", "2001:db8::1", false, false)
	change(t, c, nil, edgetest.Key("ip-list-chunk", "b/0"), edgetest.Key("ip-list", "b"), edgetest.Key("ip-list", "a"), edgetest.Key("ip-list-chunk", "a/7"))
	if len(c.state.lists) != 0 || c.Tables().allow.Size() != 0 || c.Tables().block.Size() != 0 {
		t.Errorf("%d lists, %d and %d networks are left", len(c.state.lists), c.Tables().allow.Size(), c.Tables().block.Size())
	}
}

// Published tables never change: readers beside a writer see each change whole or not at all.
func TestReadersSeeWholeChanges(t *testing.T) {
	c := newCore(t)
	on := []*configv1.Entry{
		siteEntry("a", 1, "a.com", "~a[0-9]\\.com"), edgetest.Entry("ip-list", "b", list(configv1.IpListKind_IP_LIST_KIND_BLOCK)),
		edgetest.Entry("ip-list-chunk", "b/0", chunk("b", "192.0.2.0/24")),
	}
	off := []*configv1.EntryKey{edgetest.Key("site", "a"), edgetest.Key("ip-list-chunk", "b/0")}
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
				exact, pattern := tables.SiteOfHost("a.com") != nil, tables.SiteOfHost("a1.com") != nil
				if blocked := tables.Blocked(mustAddr("192.0.2.1")); exact != pattern || exact != blocked {
					t.Errorf("half a change: %v %v %v", exact, pattern, blocked)
					return
				}
			}
		})
	}
	for range 300 {
		change(t, c, on)
		change(t, c, nil, off...)
	}
	close(stop)
	wg.Wait()
}

func TestStatsAreHandedOutUntilAcknowledged(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	c := New(Options{StateDir: t.TempDir(), BanCapacity: 1, BanMaxBytes: 1 << 20, Now: func() time.Time { return now }})
	change(t, c, []*configv1.Entry{siteEntry("a", 1, "a.com")})
	count := func(n int) {
		for range n {
			c.Tables().SiteOfHost("a.com").Counter.Add()
		}
	}
	if sequence, minutes := c.Stats.Drain(0); sequence != 0 || minutes != nil {
		t.Fatalf("%d %v", sequence, minutes)
	}
	count(3)
	first, minutes := c.Stats.Drain(0)
	if first == 0 || len(minutes) != 1 || minutes[0].GetRequests() != 3 || minutes[0].GetMinute() != 1_699_999_980 {
		t.Fatalf("%d %v", first, minutes)
	}
	// A new version of the site counts on.
	change(t, c, []*configv1.Entry{siteEntry("a", 1, "a.com", "b.com")})
	count(2)
	if again, minutes := c.Stats.Drain(0); again != first || minutes[0].GetRequests() != 3 {
		t.Errorf("an unacknowledged batch changed: %d %v", again, minutes)
	}
	next, minutes := c.Stats.Drain(first)
	if next <= first || len(minutes) != 1 || minutes[0].GetRequests() != 2 {
		t.Errorf("%d %v", next, minutes)
	}
	if sequence, _ := c.Stats.Drain(next); sequence != 0 {
		t.Errorf("nothing is left, but batch %d", sequence)
	}
	// The count of a site that is deleted meanwhile is not lost, and minutes stay apart.
	count(1)
	c.Stats.mu.Lock()
	c.Stats.roll(now)
	c.Stats.mu.Unlock()
	now = now.Add(time.Minute)
	count(4)
	change(t, c, nil, edgetest.Key("site", "a"))
	if _, minutes = c.Stats.Drain(next); len(minutes) != 2 || minutes[0].GetRequests() != 1 || minutes[1].GetRequests() != 4 ||
		minutes[1].GetMinute() != minutes[0].GetMinute()+60 {
		t.Errorf("%v", minutes)
	}
}

func TestStatsLoseNothingUnderLoad(t *testing.T) {
	stats := newStats(time.Now)
	counter := stats.counter("a")
	const workers, each = 4, 20_000
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for range each {
				counter.Add()
			}
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	var total, acknowledged uint64
	drain := func() {
		sequence, minutes := stats.Drain(acknowledged)
		for _, minute := range minutes {
			total += minute.GetRequests()
		}
		acknowledged = sequence
	}
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		drain()
	}
	if drain(); total != workers*each {
		t.Errorf("%d of %d", total, workers*each)
	}
}
