package bans

import (
	"fmt"
	"testing"
	"time"

	nodev1 "edge.svc/caddy/gen/svc/node/v1"
)

func host(i int) string { return fmt.Sprintf("10.%d.%d.%d/32", i>>16&255, i>>8&255, i&255) }

func TestOldestAutomaticBansMakeRoomAndManualOnesStay(t *testing.T) {
	c := newClock()
	table := New(4, 1<<20, c.now)
	change(t, table, []*nodev1.Ban{
		c.auto("a1", "", host(1), time.Hour), c.auto("a2", "", host(2), time.Hour),
		c.manual("m1", "", host(3), time.Hour), c.auto("a3", "", host(4), time.Hour),
	})
	state := change(t, table, []*nodev1.Ban{c.auto("a4", "", host(5), time.Hour)})
	if state.GetAutoEvicted() != 1 || state.GetEntries() != 4 {
		t.Fatalf("got %v", state)
	}
	wantHit(t, table, "", "10.0.0.1", "")
	state = change(t, table, []*nodev1.Ban{
		c.manual("m2", "", host(6), time.Hour), c.manual("m3", "", host(7), time.Hour),
		c.manual("m4", "", host(8), time.Hour), c.manual("m5", "", host(9), time.Hour), c.manual("m6", "", host(10), time.Hour),
	})
	if state.GetAutoEvicted() != 4 || state.GetEntries() != 4 || state.GetUnapplied() != 2 || fmt.Sprint(state.GetUnappliedIds()) != "[m5 m6]" {
		t.Fatalf("got %v", state)
	}
	state = change(t, table, []*nodev1.Ban{c.auto("a5", "", host(11), time.Hour)})
	if state.GetAutoEvicted() != 5 || state.GetEntries() != 4 {
		t.Fatalf("an automatic ban must not push out manual ones: %v", state)
	}
	// A renewal needs no room of its own.
	state = change(t, table, []*nodev1.Ban{c.manual("m1", "", host(3), 2*time.Hour)})
	if state.GetUnapplied() != 2 {
		t.Fatalf("got %v", state)
	}
	state = change(t, table, nil, "m2")
	wantHit(t, table, "", "10.0.0.9", "m5")
	if fmt.Sprint(state.GetUnappliedIds()) != "[m6]" {
		t.Fatalf("got %v", state)
	}
	if state = change(t, table, nil, "m6"); state.GetUnapplied() != 0 {
		t.Fatalf("a removed ban must not wait any more: %v", state)
	}
}

func TestBansThatWaitTakeEffectAtRetryWhenOthersEnded(t *testing.T) {
	c := newClock()
	table := New(2, 1<<20, c.now)
	state := change(t, table, []*nodev1.Ban{
		c.manual("m1", "s1", host(1), time.Minute), c.manual("m2", "s1", host(2), 2*time.Minute),
		c.manual("m3", "s1", host(3), time.Hour), c.manual("m4", "s1", host(4), time.Minute), c.manual("m5", "s2", host(5), time.Hour),
	})
	if state.GetUnapplied() != 3 {
		t.Fatalf("got %v", state)
	}
	c.advance(time.Minute)
	state = table.Retry()
	if fmt.Sprint(state.GetUnappliedIds()) != "[m5]" {
		t.Fatalf("got %v", state)
	}
	wantHit(t, table, "s1", "10.0.0.3", "m3")
	c.advance(time.Minute)
	if state = table.Retry(); state.GetUnapplied() != 0 || state.GetEntries() != 2 {
		t.Fatalf("got %v", state)
	}
	wantHit(t, table, "s2", "10.0.0.5", "m5")
}

func TestMemoryLimitCountsToo(t *testing.T) {
	c := newClock()
	table := New(1000, 10*(recordBytes+4), c.now)
	var bans []*nodev1.Ban
	for i := range 20 {
		bans = append(bans, c.manual(fmt.Sprintf("m%03d", i), "", host(i), time.Hour))
	}
	state := table.Replace(at(1), bans)
	if state.GetEntries() != 10 || state.GetUnapplied() != 10 {
		t.Fatalf("got %v", state)
	}
}

func TestAtMostHundredIDsAreReported(t *testing.T) {
	c := newClock()
	table := New(1, 1<<20, c.now)
	var bans []*nodev1.Ban
	for i := range 250 {
		bans = append(bans, c.manual(fmt.Sprint(i), "", host(i), time.Hour))
	}
	state := table.Replace(at(1), bans)
	if state.GetUnapplied() != 249 || len(state.GetUnappliedIds()) != 100 || state.GetUnappliedIds()[0] != "1" {
		t.Fatalf("got %d, %d ids", state.GetUnapplied(), len(state.GetUnappliedIds()))
	}
}

func TestReplacementPrefersManualThenYoungAutomaticBans(t *testing.T) {
	c := newClock()
	table := New(3, 1<<20, c.now)
	var bans []*nodev1.Ban
	for i := range 6 {
		ban := c.auto(fmt.Sprint("a", i), "", host(i), time.Hour)
		ban.CreatedAtMs += int64(i)
		bans = append(bans, ban)
	}
	state := table.Replace(at(1), append(bans, c.manual("m", "", host(9), time.Hour)))
	if state.GetAutoEvicted() != 4 {
		t.Fatalf("got %v", state)
	}
	wantHit(t, table, "", "10.0.0.9", "m")
	wantHit(t, table, "", "10.0.0.5", "a5")
	wantHit(t, table, "", "10.0.0.4", "a4")
	wantHit(t, table, "", "10.0.0.3", "")
}

// The timer is the only thing that reclaims when nobody calls.
func TestExpiredBansAreReclaimedWithoutCalls(t *testing.T) {
	table := New(10, 1<<20, nil)
	now := time.Now()
	table.Replace(at(1), []*nodev1.Ban{{Id: "m", Cidr: "192.0.2.1/32", ExpiresAtMs: now.Add(50 * time.Millisecond).UnixMilli()}})
	for deadline := now.Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		table.mu.Lock()
		left := len(table.index.expiry)
		table.mu.Unlock()
		if left == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the ban was not reclaimed")
		}
	}
	if table.view.Load().global.trie.Load() != nil {
		t.Fatal("the trie was kept")
	}
}
