package bans

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
	nodev1 "edge.svc/caddy/gen/svc/node/v1"
)

func (c *clock) own(site, cidr string, lifetime time.Duration) *nodev1.OwnBan {
	return &nodev1.OwnBan{SiteId: site, Cidr: cidr, ExpiresAtMs: c.at.Add(lifetime).UnixMilli()}
}

func (c *clock) lifted(site, cidr string, lifetime time.Duration) *nodev1.OwnBanLift {
	return &nodev1.OwnBanLift{SiteId: site, Cidr: cidr, ExpiresNoLaterThanMs: c.at.Add(lifetime).UnixMilli()}
}

func batch(bans ...*nodev1.OwnBan) *edgev1.JournalRecord {
	return &edgev1.JournalRecord{Record: &edgev1.JournalRecord_Security{Security: &edgev1.SecurityBatch{Bans: bans}}}
}

func mark(lifted ...*nodev1.OwnBanLift) *edgev1.JournalRecord {
	return &edgev1.JournalRecord{Record: &edgev1.JournalRecord_SecurityMark{SecurityMark: &edgev1.SecurityMark{Lifted: lifted, ReportedBans: 1}}}
}

func load(c *clock, capacity int, records ...*edgev1.JournalRecord) *Table {
	table, former := New(capacity, 1<<20, c.now), Former{}
	for _, record := range records {
		former.Take(record)
	}
	table.Load(&former)
	return table
}

func wantOwn(t *testing.T, table *Table, site, addr string, remaining time.Duration) {
	t.Helper()
	hit, ok := table.Lookup(site, netip.MustParseAddr(addr))
	if ok != (remaining > 0) || hit.Remaining != remaining || ok && hit.Source != SourceOwn {
		t.Errorf("%s at %q: %+v, want %s", addr, site, hit, remaining)
	}
}

// Of the bans in the journal those come back that are neither over nor lifted, with what is left of their time.
func TestOwnBansOfTheJournalComeBackUnlessOverOrLifted(t *testing.T) {
	c := newClock()
	records := []*edgev1.JournalRecord{
		batch(c.own("", "192.0.2.1/32", time.Hour), c.own("s1", "192.0.2.2/32", time.Hour), c.own("", "192.0.2.3/32", time.Minute), c.own("", "nonsense", time.Hour)),
		batch(c.own("", "192.0.2.4/32", time.Hour), c.own("", "192.0.2.5/32", 2*time.Hour), c.own("", "192.0.2.6/32", time.Hour), c.own("", "2001:db8::1/64", time.Hour)),
		mark(c.lifted("", "192.0.2.4/32", time.Hour), c.lifted("", "192.0.2.5/32", time.Hour), c.lifted("", "nonsense", time.Hour), c.lifted("s2", "192.0.2.2/32", time.Hour)),
		batch(c.own("", "192.0.2.6/32", 30*time.Minute)),
		// Lifted, and banned again.
		mark(c.lifted("s1", "192.0.2.2/32", time.Hour)),
		batch(c.own("s1", "192.0.2.2/32", 3*time.Hour)),
	}
	c.advance(10 * time.Minute)
	table := load(c, 100, records...)
	wantOwn(t, table, "", "192.0.2.1", 50*time.Minute)
	wantOwn(t, table, "s1", "192.0.2.2", 170*time.Minute)
	wantOwn(t, table, "s2", "192.0.2.2", 0)
	wantOwn(t, table, "", "192.0.2.3", 0)
	wantOwn(t, table, "", "192.0.2.4", 0)
	wantOwn(t, table, "", "192.0.2.5", 110*time.Minute)
	wantOwn(t, table, "", "192.0.2.6", 50*time.Minute)
	wantOwn(t, table, "", "2001:db8::2", 50*time.Minute)
	c.advance(50 * time.Minute)
	wantOwn(t, table, "", "192.0.2.1", 0)
}

// The agent may know better than its file, which a full disk can leave behind: what it restores replaces what was loaded.
// What the process decided itself stays.
func TestTheAgentsWordReplacesWhatWasLoaded(t *testing.T) {
	c := newClock()
	table := load(c, 100, batch(c.own("", "192.0.2.1/32", time.Hour), c.own("", "192.0.2.2/32", time.Hour), c.own("s1", "192.0.2.3/32", time.Hour), c.own("", "192.0.2.4/32", time.Hour)))
	// A replacement of the console's bans changes nothing about it.
	table.Replace(at(1), nil)
	table.AddOwn("", netip.MustParsePrefix("192.0.2.4/32"), time.Minute)
	table.AddOwn("", netip.MustParsePrefix("192.0.2.5/32"), time.Minute)
	table.RestoreOwn([]*nodev1.OwnBan{c.own("", "192.0.2.2/32", time.Minute), c.own("", "192.0.2.6/32", time.Minute)})
	wantOwn(t, table, "", "192.0.2.1", 0)
	wantOwn(t, table, "", "192.0.2.2", time.Minute)
	wantOwn(t, table, "s1", "192.0.2.3", 0)
	wantOwn(t, table, "", "192.0.2.4", time.Hour)
	wantOwn(t, table, "", "192.0.2.5", time.Minute)
	wantOwn(t, table, "", "192.0.2.6", time.Minute)
	table.RestoreOwn(nil)
	wantOwn(t, table, "", "192.0.2.2", time.Minute)
}

// What does not fit is what was written first.
func TestTheOldestOfTheJournalGiveWay(t *testing.T) {
	c := newClock()
	var bans []*nodev1.OwnBan
	for i := range 20 {
		bans = append(bans, c.own("", fmt.Sprintf("192.0.2.%d/32", i), time.Hour))
	}
	table := load(c, 10, batch(bans...))
	wantOwn(t, table, "", "192.0.2.9", 0)
	wantOwn(t, table, "", "192.0.2.10", time.Hour)
	wantOwn(t, table, "", "192.0.2.19", time.Hour)
}
