package bans

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	nodev1 "edge.svc/caddy/gen/svc/node/v1"
)

// naive is the list the table is compared with.
type naive struct {
	id, site string
	prefix   netip.Prefix
	source   Source
	expires  time.Time
}

func covers(list []naive, now time.Time, site string, addr netip.Addr) bool {
	return slices.ContainsFunc(list, func(b naive) bool {
		return (b.site == "" || b.site == site) && b.expires.After(now) && b.prefix.Contains(addr.Unmap())
	})
}

func randomAddr(r *rand.Rand) netip.Addr {
	// Few distinct bits, so that networks nest and meet.
	if r.IntN(2) == 0 {
		return netip.AddrFrom4([4]byte{10, byte(r.IntN(2)), byte(r.IntN(3)), byte(r.IntN(4))})
	}
	return netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, 0, byte(r.IntN(2)), byte(r.IntN(2)), byte(r.IntN(2)), 15: byte(r.IntN(3))})
}

func randomPrefix(r *rand.Rand) netip.Prefix {
	a := randomAddr(r)
	bits := []int{16, 20, 24, 28, 30, 31, 32}[r.IntN(7)]
	if a.Is6() {
		bits = []int{48, 52, 56, 60, 64, 112, 127, 128}[r.IntN(8)]
	}
	p, _ := a.Prefix(bits)
	return p
}

func spell(r *rand.Rand, p netip.Prefix) string {
	if p.Addr().Is4() && r.IntN(4) == 0 {
		return fmt.Sprintf("::ffff:%s/%d", p.Addr(), p.Bits()+96)
	}
	return p.String()
}

// With little room: never more than capacity, no live manual ban lost, each either holding or waiting.
func TestNoManualBanIsLostForRoom(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 2))
		c := newClock()
		table := New(8, 1<<20, c.now)
		manual := map[string]naive{}
		for step := range 80 {
			var upserts []*nodev1.Ban
			var removed []string
			for range r.IntN(4) {
				ban := c.manual(fmt.Sprint("b", r.IntN(24)), []string{"", "s1"}[r.IntN(2)], randomPrefix(r).String(), time.Duration(1+r.IntN(300))*time.Second)
				ban.Source = nodev1.BanSource(1 + r.IntN(2))
				upserts = append(upserts, ban)
			}
			for range r.IntN(3) {
				id := fmt.Sprint("b", r.IntN(24))
				removed = append(removed, id)
				delete(manual, id)
			}
			state := change(t, table, upserts, removed...)
			for _, ban := range upserts {
				delete(manual, ban.GetId())
				if ban.GetSource() == nodev1.BanSource_BAN_SOURCE_MANUAL {
					manual[ban.GetId()] = naive{id: ban.GetId(), site: ban.GetSiteId(), prefix: netip.MustParsePrefix(ban.GetCidr()), expires: time.UnixMilli(ban.GetExpiresAtMs())}
				}
			}
			c.advance(time.Duration(r.IntN(30)) * time.Second)
			if r.IntN(2) == 0 {
				state = table.Retry()
			} else {
				state = table.State()
			}
			live := 0
			for _, b := range manual {
				if !b.expires.After(c.at) {
					continue
				}
				live++
				_, hit := table.Lookup(b.site, b.prefix.Addr())
				if !hit && !slices.Contains(state.GetUnappliedIds(), b.id) {
					t.Fatalf("seed %d step %d: %+v neither holds nor waits: %v", seed, step, b, state)
				}
			}
			if state.GetEntries() > 8 || int(state.GetUnapplied()) > live || (live <= 8 && r.IntN(2) == 0 && table.Retry().GetUnapplied() != 0) {
				t.Fatalf("seed %d step %d: %v with %d live manual bans", seed, step, state, live)
			}
		}
	}
}

// Readers run beside changes, replacements and reclaiming; a ban that stays must never flicker.
func TestReadersNeverMissALastingBan(t *testing.T) {
	table := New(20_000, 1<<30, nil)
	now := time.Now()
	ban := func(id, site, cidr string, d time.Duration) *nodev1.Ban {
		return &nodev1.Ban{Id: id, SiteId: site, Cidr: cidr, Source: 1, ExpiresAtMs: now.Add(d).UnixMilli()}
	}
	lasting := []*nodev1.Ban{ban("g", "", "10.9.0.0/24", time.Hour), ban("s", "s1", "10.8.0.1/32", time.Hour)}
	table.Replace(at(0), lasting)
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if _, ok := table.Lookup("s2", netip.MustParseAddr("10.9.0.5")); !ok {
					t.Error("global ban missed")
					return
				}
				if _, ok := table.Lookup("s1", netip.MustParseAddr("10.8.0.1")); !ok {
					t.Error("site ban missed")
					return
				}
				table.Lookup("s1", netip.MustParseAddr("10.9.0.77"))
				table.State()
			}
		})
	}
	r := rand.New(rand.NewPCG(3, 3))
	for i := range uint64(150) {
		many := slices.Clone(lasting)
		n := 20
		if i%10 == 0 {
			n = 2 * bulkChange
		}
		for j := range n {
			many = append(many, ban(fmt.Sprint("x", r.IntN(4000)), []string{"", "s1", "s2"}[j%3], fmt.Sprintf("10.9.%d.%d/32", r.IntN(2), r.IntN(256)), time.Duration(r.IntN(20))*time.Millisecond))
		}
		if i%7 == 0 {
			table.Replace(at(i+1), many)
		} else if _, err := table.Apply(at(i), at(i+1), many, []string{fmt.Sprint("x", i)}, nil); err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	readers.Wait()
}

func FuzzNetwork(f *testing.F) {
	for _, s := range []string{"192.0.2.0/24", "::ffff:192.0.2.1/128", "2001:db8::/48", "fe80::1%x/64", "10.0.0.1/016", "1.2.3.4/-1", "::ffff:0:0/96"} {
		f.Add(s, "192.0.2.1")
	}
	f.Fuzz(func(t *testing.T, cidr, address string) {
		c := newClock()
		table := New(10, 1<<20, c.now)
		p, err := parseNetwork(cidr)
		state := table.Replace(at(1), []*nodev1.Ban{c.manual("m", "", cidr, time.Hour)})
		if (err == nil) != (state.GetEntries() == 1) || (err != nil) != (state.GetUnapplied() == 1) {
			t.Fatalf("%q: %v, %v", cidr, err, state)
		}
		if err == nil && (p.Masked() != p || p.Addr().Is4In6() || p.Addr().Zone() != "") {
			t.Fatalf("%q: %s is not canonical", cidr, p)
		}
		addr, addrErr := netip.ParseAddr(address)
		if addrErr != nil {
			return
		}
		want := err == nil && p.Contains(addr.Unmap().WithZone(""))
		if _, ok := table.Lookup("s", addr); ok != want {
			t.Fatalf("%q against %q: got %v", address, cidr, ok)
		}
		change(t, table, nil, "m")
		if _, ok := table.Lookup("s", addr); ok || table.index.bytes != 0 {
			t.Fatalf("%q stayed", cidr)
		}
	})
}
