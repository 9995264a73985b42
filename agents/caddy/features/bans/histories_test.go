//go:build !race

// The race detector has nothing to see in one goroutine, and takes ten times as long.

package bans

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	nodev1 "edge.svc/caddy/gen/svc/node/v1"
)

// Random histories of changes, replacements, own bans and time, with room enough and with little room, against a
// list that is searched from end to end.
func TestTableEqualsListOverRandomHistories(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		c := newClock()
		table := New(10_000, 1<<30, c.now)
		var list []naive
		sites := []string{"", "", "s1", "s2", "s3"}
		var sequence uint64
		without := func(drop func(naive) bool) { list = slices.DeleteFunc(list, drop) }
		for step := range 60 {
			var upserts []*nodev1.Ban
			var removed []string
			for range r.IntN(6) {
				lifetime := time.Duration(r.IntN(300)) * time.Second
				ban := c.manual(fmt.Sprint("b", r.IntN(40)), sites[r.IntN(len(sites))], "", lifetime)
				ban.Source = nodev1.BanSource(1 + r.IntN(2))
				p := randomPrefix(r)
				ban.Cidr = spell(r, p)
				upserts = append(upserts, ban)
			}
			switch r.IntN(10) {
			case 0:
				table.Replace(at(sequence+1), upserts)
				sequence++
				without(func(b naive) bool { return b.source != SourceOwn })
				slices.SortStableFunc(upserts, func(a, b *nodev1.Ban) int {
					return cmp.Or(cmp.Compare(a.GetSource(), b.GetSource()), cmp.Compare(a.GetCreatedAtMs(), b.GetCreatedAtMs()))
				})
			case 1:
				p, site, lifetime := randomPrefix(r), sites[r.IntN(len(sites))], time.Duration(r.IntN(300))*time.Second
				table.AddOwn(site, p, lifetime)
				list = append(list, naive{"", site, p, SourceOwn, c.at.Add(lifetime)})
				upserts = nil
			default:
				for range r.IntN(4) {
					removed = append(removed, fmt.Sprint("b", r.IntN(40)))
				}
				base := at(sequence)
				if sequence == 0 {
					base = nil
				}
				if _, err := table.Apply(base, at(sequence+1), upserts, removed, nil); err != nil {
					t.Fatal(err)
				}
				sequence++
			}
			without(func(b naive) bool { return b.source != SourceOwn && slices.Contains(removed, b.id) })
			for _, ban := range upserts {
				without(func(b naive) bool { return b.source != SourceOwn && b.id == ban.GetId() })
				p, err := parseNetwork(ban.GetCidr())
				if err != nil {
					t.Fatal(err)
				}
				list = append(list, naive{ban.GetId(), ban.GetSiteId(), p, sourceOf(ban.GetSource()), time.UnixMilli(ban.GetExpiresAtMs())})
			}
			if r.IntN(3) == 0 {
				c.advance(time.Duration(r.IntN(90)) * time.Second)
			}
			for range 40 {
				site, addr := sites[r.IntN(len(sites))], randomAddr(r)
				hit, ok := table.Lookup(site, addr)
				if want := covers(list, c.at, site, addr); ok != want {
					t.Fatalf("seed %d step %d: %s at %q: got %v %+v, want %v", seed, step, addr, site, ok, hit, want)
				}
				if ok && !slices.ContainsFunc(list, func(b naive) bool {
					return b.id == hit.ID && b.site == hit.SiteID && b.prefix == hit.Prefix && b.source == hit.Source && b.expires.Equal(c.at.Add(hit.Remaining))
				}) {
					t.Fatalf("seed %d step %d: hit %+v is not in the list", seed, step, hit)
				}
			}
			if r.IntN(4) == 0 {
				live := map[string]bool{}
				for _, b := range list {
					if b.expires.After(c.at) {
						live[fmt.Sprint(b.source == SourceOwn, b.id, map[bool]string{true: b.site + b.prefix.String()}[b.source == SourceOwn])] = true
					}
				}
				if got := table.State().GetEntries(); int(got) != len(live) {
					t.Fatalf("seed %d step %d: %d entries, want %d", seed, step, got, len(live))
				}
			}
		}
	}
}
