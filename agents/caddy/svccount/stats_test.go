package svccount

import (
	"path/filepath"
	"sync"
	"testing"
	"time"

	configv1 "edge.svc/caddy/gen/svc/config/v1"
	nodev1 "edge.svc/caddy/gen/svc/node/v1"
	"edge.svc/caddy/internal/edgetest"
	"edge.svc/caddy/svccore"
)

func TestStatsAreHandedOutUntilAcknowledged(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	c := svccore.New(svccore.Options{StateDir: t.TempDir(), Now: func() time.Time { return now }})
	stats := Of(c)
	edgetest.Change(t, c, []*configv1.Entry{edgetest.Entry("site", "a", edgetest.Site(0, "a.com"))})
	count := func(n int) {
		for range n {
			stats.Count(svccore.PlanOfHost(c.Tables(), "a.com"))
		}
	}
	if sequence, minutes := stats.Drain(0); sequence != 0 || minutes != nil {
		t.Fatalf("%d %v", sequence, minutes)
	}
	count(3)
	first, minutes := stats.Drain(0)
	if first == 0 || len(minutes) != 1 || minutes[0].GetRequests() != 3 || minutes[0].GetMinute() != 1_699_999_980 {
		t.Fatalf("%d %v", first, minutes)
	}
	// A new version of the site counts on.
	edgetest.Change(t, c, []*configv1.Entry{edgetest.Entry("site", "a", edgetest.Site(0, "a.com", "b.com"))})
	count(2)
	if again, minutes := stats.Drain(0); again != first || minutes[0].GetRequests() != 3 {
		t.Errorf("an unacknowledged batch changed: %d %v", again, minutes)
	}
	next, minutes := stats.Drain(first)
	if next <= first || len(minutes) != 1 || minutes[0].GetRequests() != 2 {
		t.Errorf("%d %v", next, minutes)
	}
	if sequence, _ := stats.Drain(next); sequence != 0 {
		t.Errorf("nothing is left, but batch %d", sequence)
	}
	// The count of a site that is deleted meanwhile is not lost, and minutes stay apart.
	count(1)
	stats.mu.Lock()
	stats.roll(now)
	stats.mu.Unlock()
	now = now.Add(time.Minute)
	count(4)
	edgetest.Change(t, c, nil, edgetest.Key("site", "a"))
	if _, minutes = stats.Drain(next); len(minutes) != 2 || minutes[0].GetRequests() != 1 || minutes[1].GetRequests() != 4 ||
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
				counter.add()
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

// A site is counted while its configuration is read again and again, also from a journal that has an older version of
// it. Nothing is lost, and nothing that serves is written: the race detector watches.
func TestRequestsAreCountedThroughReloads(t *testing.T) {
	dir := t.TempDir()
	edgetest.WriteJournal(t, filepath.Join(dir, "config.journal"), edgetest.Header("node"),
		edgetest.Config(1, []*configv1.Entry{edgetest.Entry("site", "a", edgetest.Site(0, "old.com", "a.com"))}),
		edgetest.Config(2, []*configv1.Entry{edgetest.Entry("site", "a", edgetest.Site(0, "a.com"))}))
	c := svccore.New(svccore.Options{StateDir: dir})
	stats := Of(c)
	const workers, each = 2, 20_000
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for range each {
				stats.Count(svccore.PlanOfHost(c.Tables(), "a.com"))
			}
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		c.ReloadConfig()
	}
	if _, minutes := stats.Drain(0); total(minutes) != workers*each {
		t.Errorf("%d of %d", total(minutes), workers*each)
	}
}

func total(minutes []*nodev1.SiteMinute) (sum uint64) {
	for _, minute := range minutes {
		sum += minute.GetRequests()
	}
	return sum
}
