package bans

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
	nodev1 "edge.svc/caddy/gen/svc/node/v1"
)

// clock is a clock the test moves.
type clock struct{ at time.Time }

func (c *clock) now() time.Time          { return c.at }
func (c *clock) advance(d time.Duration) { c.at = c.at.Add(d) }

func newClock() *clock { return &clock{time.UnixMilli(1_700_000_000_000)} }

func at(sequence uint64) *nodev1.BanPosition {
	return &nodev1.BanPosition{Epoch: 7, Sequence: sequence}
}

func (c *clock) manual(id, site, cidr string, lifetime time.Duration) *nodev1.Ban {
	return &nodev1.Ban{Id: id, SiteId: site, Cidr: cidr, Source: nodev1.BanSource_BAN_SOURCE_MANUAL,
		CreatedAtMs: c.at.UnixMilli(), ExpiresAtMs: c.at.Add(lifetime).UnixMilli()}
}

func (c *clock) auto(id, site, cidr string, lifetime time.Duration) *nodev1.Ban {
	ban := c.manual(id, site, cidr, lifetime)
	ban.Source = nodev1.BanSource_BAN_SOURCE_AUTO
	return ban
}

// change applies to a table whose position the test does not care about.
func change(t *testing.T, table *Table, upserts []*nodev1.Ban, removed ...string) *edgev1.BanState {
	t.Helper()
	base := table.State().GetPosition()
	state, err := table.Apply(base, &nodev1.BanPosition{Epoch: base.GetEpoch(), Sequence: base.GetSequence() + 1}, upserts, removed, nil)
	if err != nil {
		t.Fatal(err)
	}
	return state
}

func wantHit(t *testing.T, table *Table, site, addr, id string) {
	t.Helper()
	hit, ok := table.Lookup(site, netip.MustParseAddr(addr))
	if ok != (id != "") || hit.ID != id {
		t.Fatalf("lookup of %s at %q: got %+v %v, want %q", addr, site, hit, ok, id)
	}
}

func TestGlobalBansHoldEverywhereAndSiteBansOnlyThere(t *testing.T) {
	c := newClock()
	table := New(100, 1<<20, c.now)
	wantHit(t, table, "s1", "192.0.2.1", "")
	change(t, table, []*nodev1.Ban{
		c.manual("g", "", "192.0.2.0/24", time.Hour),
		c.manual("s", "s1", "198.51.100.7/32", time.Hour),
		c.manual("both", "s1", "192.0.2.1/32", time.Hour),
		c.manual("six", "s2", "2001:db8:1::/48", time.Hour),
	})
	wantHit(t, table, "s1", "192.0.2.1", "g")
	wantHit(t, table, "", "192.0.2.255", "g")
	wantHit(t, table, "s1", "198.51.100.7", "s")
	wantHit(t, table, "s2", "198.51.100.7", "")
	wantHit(t, table, "s2", "2001:db8:1:ffff::1", "six")
	wantHit(t, table, "s2", "2001:db8:2::1", "")
	wantHit(t, table, "s1", "::ffff:198.51.100.7", "s")
	state := change(t, table, nil, "g", "s", "both", "six", "unknown")
	if state.GetEntries() != 0 || table.index.bytes != 0 || table.view.Load().siteCount.Load() != 0 {
		t.Fatalf("removing everything left %v, %d bytes", state, table.index.bytes)
	}
	wantHit(t, table, "s1", "192.0.2.1", "")
}

func TestZonedAddressIsLookedUpWithoutItsZone(t *testing.T) {
	c := newClock()
	table := New(100, 1<<20, c.now)
	change(t, table, []*nodev1.Ban{c.manual("a", "", "fe80::1/128", time.Minute), c.manual("b", "", "fe80::/64", time.Hour)})
	wantHit(t, table, "", "fe80::1%eth0", "a")
	c.advance(time.Minute)
	wantHit(t, table, "", "fe80::1%eth0", "b")
}

func TestExpiredHostDoesNotHideLiveNetwork(t *testing.T) {
	c := newClock()
	table := New(100, 1<<20, c.now)
	change(t, table, []*nodev1.Ban{
		c.manual("host", "", "192.0.2.1/32", time.Minute),
		c.auto("mid", "", "192.0.2.0/28", 2*time.Minute),
		c.manual("net", "", "192.0.2.0/24", time.Hour),
	})
	wantHit(t, table, "", "192.0.2.1", "host")
	c.advance(time.Minute)
	wantHit(t, table, "", "192.0.2.1", "mid")
	c.advance(time.Minute)
	wantHit(t, table, "", "192.0.2.1", "net")
	c.advance(time.Hour)
	wantHit(t, table, "", "192.0.2.1", "")
	if got := table.State().GetEntries(); got != 0 {
		t.Fatalf("%d expired bans were kept", got)
	}
}

func TestExpiredGlobalBanDoesNotHideSiteBan(t *testing.T) {
	c := newClock()
	table := New(100, 1<<20, c.now)
	change(t, table, []*nodev1.Ban{c.manual("g", "", "192.0.2.1/32", time.Minute), c.manual("s", "s1", "192.0.2.1/32", time.Hour)})
	c.advance(time.Minute)
	wantHit(t, table, "s1", "192.0.2.1", "s")
}

func TestBansOfOneNetworkLiveAndEndOnTheirOwn(t *testing.T) {
	c := newClock()
	table := New(100, 1<<20, c.now)
	change(t, table, []*nodev1.Ban{c.manual("m", "", "192.0.2.1/32", time.Hour), c.auto("a", "", "192.0.2.1/32", time.Minute)})
	table.AddOwn("", netip.MustParsePrefix("192.0.2.1/32"), 2*time.Hour)
	hit, _ := table.Lookup("", netip.MustParseAddr("192.0.2.1"))
	if hit.Source != SourceOwn || hit.Remaining != 2*time.Hour {
		t.Fatalf("the ban that ends last must answer, got %+v", hit)
	}
	if got := table.State().GetEntries(); got != 3 {
		t.Fatalf("got %d entries", got)
	}
	change(t, table, nil, "m")
	c.advance(time.Minute)
	if got := table.State().GetEntries(); got != 1 {
		t.Fatalf("got %d entries", got)
	}
	c.advance(2 * time.Hour)
	wantHit(t, table, "", "192.0.2.1", "")
}

func TestKnownIDIsReplaced(t *testing.T) {
	c := newClock()
	table := New(100, 1<<20, c.now)
	change(t, table, []*nodev1.Ban{c.manual("m", "", "192.0.2.1/32", time.Hour)})
	change(t, table, []*nodev1.Ban{c.manual("m", "s1", "192.0.2.2/32", time.Minute)})
	wantHit(t, table, "s1", "192.0.2.1", "")
	wantHit(t, table, "s1", "192.0.2.2", "m")
	expired := c.manual("m", "s1", "192.0.2.2/32", 0)
	if state := change(t, table, []*nodev1.Ban{expired}); state.GetEntries() != 0 {
		t.Fatal("a ban that came expired must only replace")
	}
}

func TestChangeFromAnotherBaseIsRefusedWhole(t *testing.T) {
	c := newClock()
	table := New(100, 1<<20, c.now)
	state := table.Replace(at(5), []*nodev1.Ban{c.manual("m", "", "192.0.2.1/32", time.Hour)})
	if state.GetPosition().GetSequence() != 5 || state.GetPosition().GetEpoch() != 7 {
		t.Fatalf("got %v", state)
	}
	for _, base := range []*nodev1.BanPosition{nil, at(4), at(6), {Epoch: 8, Sequence: 5}} {
		if _, err := table.Apply(base, at(9), []*nodev1.Ban{c.manual("n", "", "192.0.2.2/32", time.Hour)}, []string{"m"}, nil); !errors.Is(err, ErrBase) {
			t.Fatalf("base %v: %v", base, err)
		}
	}
	wantHit(t, table, "", "192.0.2.1", "m")
	wantHit(t, table, "", "192.0.2.2", "")
	if state, err := table.Apply(at(5), at(9), nil, []string{"m"}, nil); err != nil || state.GetPosition().GetSequence() != 9 {
		t.Fatalf("got %v %v", state, err)
	}
}

func TestReplaceKeepsOwnBansAndDropsTheRest(t *testing.T) {
	c := newClock()
	table := New(100, 1<<20, c.now)
	table.Replace(at(1), []*nodev1.Ban{c.manual("m", "", "192.0.2.1/32", time.Hour), c.manual("n", "s1", "192.0.2.2/32", time.Hour)})
	table.AddOwn("s1", netip.MustParsePrefix("192.0.2.3/32"), time.Hour)
	table.Replace(at(2), []*nodev1.Ban{c.manual("n", "s1", "192.0.2.2/32", time.Hour)})
	wantHit(t, table, "s1", "192.0.2.1", "")
	wantHit(t, table, "s1", "192.0.2.2", "n")
	if hit, ok := table.Lookup("s1", netip.MustParseAddr("192.0.2.3")); !ok || hit.Source != SourceOwn {
		t.Fatal("own ban lost")
	}
}

func TestLiftEndsOwnBansThatEndNoLater(t *testing.T) {
	c := newClock()
	table := New(100, 1<<20, c.now)
	p := netip.MustParsePrefix("2001:db8::/64")
	table.AddOwn("", p, time.Hour)
	lift := func(d time.Duration) {
		if _, err := table.Apply(table.State().GetPosition(), at(table.State().GetPosition().GetSequence()+1), nil, nil,
			[]*nodev1.OwnBanLift{{Cidr: "2001:db8::/64", ExpiresNoLaterThanMs: c.at.Add(d).UnixMilli()}, {Cidr: "bad"}, {SiteId: "s9", Cidr: "192.0.2.1/32"}}); err != nil {
			t.Fatal(err)
		}
	}
	table.position = at(1)
	lift(time.Hour - 2*time.Second)
	if table.State().GetEntries() != 1 {
		t.Fatal("a later ban must stay")
	}
	lift(time.Hour - time.Second)
	if table.State().GetEntries() != 0 {
		t.Fatal("the ban must end")
	}
}

func TestUnreadableManualBansAreReported(t *testing.T) {
	c := newClock()
	table := New(100, 1<<20, c.now)
	bad := []string{"", "x", "192.0.2.1", "192.0.2.0/15", "2001:db8::/47", "::ffff:0:0/95", "::ffff:192.0.0.0/111", "fe80::1%eth0/64", "192.0.2.1/33"}
	var bans []*nodev1.Ban
	for i, cidr := range bad {
		bans = append(bans, c.manual(fmt.Sprint("bad", i), "", cidr, time.Hour), c.auto(fmt.Sprint("auto", i), "", cidr, time.Hour))
	}
	state := change(t, table, append(bans, c.manual("good", "", "::ffff:192.0.2.9/120", time.Hour)))
	if state.GetUnapplied() != uint64(len(bad)) || len(state.GetUnappliedIds()) != len(bad) || state.GetAutoEvicted() != uint64(len(bad)) {
		t.Fatalf("got %v", state)
	}
	wantHit(t, table, "", "192.0.2.200", "good")
	if state = table.Retry(); state.GetUnapplied() != uint64(len(bad)) {
		t.Fatalf("got %v", state)
	}
	if state = change(t, table, nil, "bad0", "bad1"); state.GetUnapplied() != uint64(len(bad))-2 {
		t.Fatalf("got %v", state)
	}
}

func TestLifetimeIsAtMostSevenDays(t *testing.T) {
	c := newClock()
	table := New(100, 1<<20, c.now)
	forever := c.manual("m", "", "192.0.2.1/32", 0)
	forever.ExpiresAtMs = 1<<63 - 1
	past := c.manual("p", "", "192.0.2.2/32", 0)
	past.ExpiresAtMs = -1 << 63
	change(t, table, []*nodev1.Ban{forever, past})
	wantHit(t, table, "", "192.0.2.2", "")
	c.advance(maxLifetime - time.Millisecond)
	wantHit(t, table, "", "192.0.2.1", "m")
	c.advance(time.Millisecond)
	wantHit(t, table, "", "192.0.2.1", "")
}

func TestObserverHearsBansThatTookEffect(t *testing.T) {
	c := newClock()
	table := New(2, 1<<20, c.now)
	var heard []string
	table.OnBan(func(site string, p netip.Prefix) {
		if _, ok := table.Lookup(site, p.Addr()); !ok {
			t.Errorf("%s was announced before it held", p)
		}
		heard = append(heard, site+" "+p.String())
	})
	change(t, table, []*nodev1.Ban{c.manual("a", "", "::ffff:192.0.2.77/120", time.Hour), c.manual("b", "s1", "192.0.2.1/32", time.Hour), c.manual("c", "", "192.0.3.1/32", time.Hour)})
	table.Replace(at(9), []*nodev1.Ban{c.manual("a", "", "192.0.2.0/24", time.Hour), c.manual("d", "", "192.0.3.1/32", time.Hour)})
	want := "[ 192.0.2.0/24 s1 192.0.2.1/32  192.0.3.1/32]"
	if got := fmt.Sprint(heard); got != want {
		t.Fatalf("got %s, want %s", got, want)
	}
}
