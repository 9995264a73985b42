package count

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
	nodev1 "edge.svc/caddy/gen/svc/node/v1"
	"edge.svc/caddy/internal/edgetest"
)

// fakeClock is a machine's clock that a test moves.
type fakeClock struct{ at time.Time }

func (c *fakeClock) now() time.Time { return c.at }

func (c *fakeClock) pass(d time.Duration) { c.at = c.at.Add(d) }

// start is within a minute, away from its ends.
var start = time.Unix(1_700_000_000, 0)

const startMinute = 1_699_999_980

func statsIn(t testing.TB, folder string, clock *fakeClock) *Stats {
	t.Helper()
	return newStats(folder, clock.now, func(doing string, err error) { t.Logf("%s: %v", doing, err) })
}

// request counts a request of so many bytes each way.
func (c *counter) request(sent, received uint64) {
	c.requests.Add(1)
	c.add(statusField(200))
	meter := &exchange.Meter{}
	meter.Init(&c.Account)
	meter.ReceivedBefore(int(received))
	meter.Begin(0, false)
	meter.Sent(make([]byte, sent))
	c.Touch()
}

func TestABatchIsHandedOutUntilItIsAcknowledged(t *testing.T) {
	clock := &fakeClock{start}
	c := core.New(core.Options{StateDir: t.TempDir(), Now: clock.now})
	stats := Of(c)
	edgetest.Change(t, c, []*configv1.Entry{edgetest.Entry("site", "a", edgetest.Site(0, "a.com"))})
	count := func(n int) {
		for range n {
			site := stats.counterOf(core.PlanOfHost(c.Tables(), "a.com"))
			site.requests.Add(1)
			site.Touch()
		}
	}
	if empty := stats.Drain(0); empty.GetSequence() != 0 || empty.GetMinutes() != nil {
		t.Fatalf("%v", empty)
	}
	count(3)
	first := stats.Drain(0)
	if first.GetSequence() == 0 || len(first.GetMinutes()) != 1 || first.GetMinutes()[0].GetRequests() != 3 || first.GetMinutes()[0].GetMinute() != startMinute {
		t.Fatalf("%v", first)
	}
	// A new version of the site counts on.
	edgetest.Change(t, c, []*configv1.Entry{edgetest.Entry("site", "a", edgetest.Site(0, "a.com", "b.com"))})
	count(2)
	if again := stats.Drain(0); again.GetSequence() != first.GetSequence() || total(again.GetMinutes()) != 3 {
		t.Errorf("an unacknowledged batch changed: %v", again)
	}
	next := stats.Drain(first.GetSequence())
	if next.GetSequence() <= first.GetSequence() || total(next.GetMinutes()) != 2 {
		t.Errorf("%v", next)
	}
	if empty := stats.Drain(next.GetSequence()); empty.GetSequence() != 0 {
		t.Errorf("nothing is left, but %v", empty)
	}
	// The count of a site that is deleted meanwhile is not lost, and minutes stay apart.
	count(1)
	stats.Settle()
	clock.pass(time.Minute)
	count(4)
	edgetest.Change(t, c, nil, edgetest.Key("site", "a"))
	minutes := stats.Drain(next.GetSequence()).GetMinutes()
	if len(minutes) != 2 || minutes[0].GetRequests() != 1 || minutes[1].GetRequests() != 4 || minutes[1].GetMinute() != minutes[0].GetMinute()+60 {
		t.Errorf("%v", minutes)
	}
}

func TestNothingIsLostUnderLoad(t *testing.T) {
	stats := newStats(t.TempDir(), time.Now, func(doing string, err error) { t.Errorf("%s: %v", doing, err) })
	counter := stats.counter("a")
	const workers, each = 4, 20_000
	var wg sync.WaitGroup
	for worker := range workers {
		wg.Go(func() {
			for i := range each {
				counter.requests.Add(1)
				counter.add(statusField(200 + (i+worker)%7))
				counter.Touch()
			}
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	var requests, statuses, acknowledged uint64
	drain := func() {
		batch := stats.Drain(acknowledged)
		for _, minute := range batch.GetMinutes() {
			requests += minute.GetRequests()
			for _, status := range minute.GetStatuses() {
				statuses += status.GetCount()
			}
		}
		acknowledged = batch.GetSequence()
	}
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		drain()
	}
	if drain(); requests != workers*each || statuses != workers*each {
		t.Errorf("%d requests and %d statuses of %d", requests, statuses, workers*each)
	}
}

// A site is counted while its configuration is read again and again, also from a journal that has an older version of
// it. Nothing is lost, and nothing that serves is written: the race detector watches.
func TestRequestsAreCountedThroughReloads(t *testing.T) {
	dir := t.TempDir()
	edgetest.WriteJournal(t, filepath.Join(dir, "config.journal"), edgetest.Header("node"),
		edgetest.Config(1, []*configv1.Entry{edgetest.Entry("site", "a", edgetest.Site(0, "old.com", "a.com"))}),
		edgetest.Config(2, []*configv1.Entry{edgetest.Entry("site", "a", edgetest.Site(0, "a.com"))}))
	c := core.New(core.Options{StateDir: dir})
	stats := Of(c)
	const workers, each = 2, 20_000
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for range each {
				site := stats.counterOf(core.PlanOfHost(c.Tables(), "a.com"))
				site.requests.Add(1)
				site.Touch()
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
	if minutes := stats.Drain(0).GetMinutes(); total(minutes) != workers*each {
		t.Errorf("%d of %d", total(minutes), workers*each)
	}
}

func total(minutes []*nodev1.SiteMinute) (sum uint64) {
	for _, minute := range minutes {
		sum += minute.GetRequests()
	}
	return sum
}

func TestAnOrderlyEndKeepsTheRunningMinuteAndLeavesNoGap(t *testing.T) {
	folder, clock := t.TempDir(), &fakeClock{start}
	first := statsIn(t, folder, clock)
	first.counter("a").request(10, 20)
	first.End()
	clock.pass(time.Hour)
	second := statsIn(t, folder, clock)
	second.counter("a").request(1, 2)
	batch := second.Drain(0)
	if minutes := batch.GetMinutes(); len(minutes) != 1 || minutes[0].GetBytesSent() != 10 || minutes[0].GetBytesReceived() != 20 || len(batch.GetGaps()) != 0 {
		t.Errorf("%v", batch)
	}
	next := second.Drain(batch.GetSequence())
	if minutes := next.GetMinutes(); next.GetSequence() <= batch.GetSequence() || len(minutes) != 1 || minutes[0].GetBytesSent() != 1 || len(next.GetGaps()) != 0 {
		t.Errorf("%v", next)
	}
}

func TestAKilledProcessLeavesItsCountsAndAGap(t *testing.T) {
	folder, clock := t.TempDir(), &fakeClock{start}
	first := statsIn(t, folder, clock)
	first.counter("a").request(10, 20)
	first.Settle()
	first.counter("a").request(1, 1)
	clock.pass(90 * time.Second)
	second := statsIn(t, folder, clock)
	batch := second.Drain(0)
	if minutes := batch.GetMinutes(); len(minutes) != 1 || minutes[0].GetRequests() != 1 || minutes[0].GetBytesSent() != 10 {
		t.Fatalf("%v", batch)
	}
	if gaps := batch.GetGaps(); len(gaps) != 1 || gaps[0].GetFrom() != start.Unix() || gaps[0].GetTo() != start.Unix()+91 {
		t.Errorf("%v", gaps)
	}
	// The batch is the same for a third process, and its sequence is not used again.
	third := statsIn(t, folder, clock)
	if again := third.Drain(0); again.String() != batch.String() {
		t.Errorf("%v, not %v", again, batch)
	}
	third.counter("a").request(1, 1)
	if next := third.Drain(batch.GetSequence()); next.GetSequence() <= batch.GetSequence() || total(next.GetMinutes()) != 1 || len(next.GetGaps()) != 1 {
		t.Errorf("the second process was killed, too: %v", next)
	}
}

func TestAKilledProcessThatCountedNothingLeavesItsGapWithTheNextBatch(t *testing.T) {
	folder, clock := t.TempDir(), &fakeClock{start}
	statsIn(t, folder, clock).Settle()
	clock.pass(time.Second)
	second := statsIn(t, folder, clock)
	if batch := second.Drain(0); batch.GetSequence() != 0 {
		t.Errorf("%v", batch)
	}
	second.counter("a").request(1, 1)
	if gaps := second.Drain(0).GetGaps(); len(gaps) != 1 || gaps[0].GetFrom() != start.Unix() {
		t.Errorf("%v", gaps)
	}
}

func TestNumbersRiseAlthoughTheFolderIsLost(t *testing.T) {
	folder, clock := t.TempDir(), &fakeClock{start}
	first := statsIn(t, folder, clock)
	first.counter("a").request(1, 1)
	before := first.Drain(0).GetSequence()
	clock.pass(time.Minute)
	second := statsIn(t, t.TempDir(), clock)
	second.counter("a").request(1, 1)
	if after := second.Drain(before); after.GetSequence() <= before || total(after.GetMinutes()) != 1 {
		t.Errorf("%v after %d", after, before)
	}
}

// A batch that was in memory alone is gone with its process. What the agent acknowledges of it says nothing of later ones.
func TestNumbersGivenOutFromMemoryAreNotGivenAgain(t *testing.T) {
	folder, clock := t.TempDir(), &fakeClock{start}
	first := statsIn(t, folder, clock)
	first.counter("a").request(1, 1)
	first.Settle()
	first.mu.Lock()
	first.spool.folder = filepath.Join(folder, "gone")
	first.mu.Unlock()
	acknowledged := uint64(0)
	for range 3 {
		first.counter("a").request(1, 1)
		acknowledged = first.Drain(acknowledged).GetSequence()
	}
	clock.pass(time.Minute)
	second := statsIn(t, folder, clock)
	for batch := second.Drain(acknowledged); batch.GetSequence() != 0; batch = second.Drain(acknowledged) {
		acknowledged = max(acknowledged, batch.GetSequence())
	}
	second.counter("b").request(1, 1)
	if batch := second.Drain(acknowledged); batch.GetSequence() <= acknowledged || total(batch.GetMinutes()) != 1 {
		t.Errorf("%v after %d", batch, acknowledged)
	}
}

func TestWhatTheAgentDoesNotTakeIsBoundedAndTheOldestIsToldAsAGap(t *testing.T) {
	clock := &fakeClock{start}
	stats := statsIn(t, t.TempDir(), clock)
	counter := stats.counter("a")
	const kept, minutes = 8, 12
	stats.Settle()
	stats.spool.maxWaiting = kept
	counter.request(1, 1)
	first := stats.Drain(0)
	for range minutes {
		clock.pass(time.Minute)
		counter.requests.Add(1)
		counter.Touch()
		stats.Settle()
		stats.mu.Lock()
		stats.spool.rotate()
		stats.mu.Unlock()
	}
	if again := stats.Drain(0); again.String() != first.String() {
		t.Errorf("the batch with the agent changed: %v", again)
	}
	// The gap of the last one that was given up is told with what comes after it.
	counter.requests.Add(1)
	counter.Touch()
	var counted uint64
	var gaps []*nodev1.StatsGap
	acknowledged := first.GetSequence()
	for range minutes + 2 {
		batch := stats.Drain(acknowledged)
		if batch.GetSequence() == 0 {
			break
		}
		acknowledged = batch.GetSequence()
		counted += total(batch.GetMinutes())
		gaps = append(gaps, batch.GetGaps()...)
	}
	var lost int64
	for _, gap := range gaps {
		lost += (gap.GetTo() - gap.GetFrom()) / 60
	}
	if lost == 0 || int64(counted)+lost != minutes+1 {
		t.Errorf("%d counted, %d lost of %d: %v", counted, lost, minutes, gaps)
	}
}

func TestAFolderThatCannotBeWrittenNeverStopsCounting(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "counts")
	// A file in the place of the folder: root may write everywhere else.
	if err := os.WriteFile(folder, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	clock, told := &fakeClock{start}, 0
	stats := newStats(folder, clock.now, func(string, error) { told++ })
	acknowledged := uint64(0)
	for n := range uint64(3) {
		stats.counter("a").request(n, n)
		batch := stats.Drain(acknowledged)
		if total(batch.GetMinutes()) != 1 || batch.GetMinutes()[0].GetBytesSent() != n {
			t.Errorf("%v", batch)
		}
		acknowledged = batch.GetSequence()
	}
	if told != 1 {
		t.Errorf("it was said %d times", told)
	}
	// There is room again.
	if err := os.Remove(folder); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	stats.counter("a").request(1, 1)
	stats.Drain(acknowledged)
	if stats.spool.mapped == nil || stats.spool.failing {
		t.Error("it does not go back to the file")
	}
}

func TestADamagedFileIsAGapAndStopsNothing(t *testing.T) {
	for name, damage := range map[string]func([]byte) []byte{
		"empty":            func([]byte) []byte { return nil },
		"another file":     func([]byte) []byte { return []byte(strings.Repeat("x", 4096)) },
		"a changed figure": func(data []byte) []byte { data[headerBytes+40]++; return data },
		"cut":              func(data []byte) []byte { return data[:len(data)-8] },
	} {
		folder, clock := t.TempDir(), &fakeClock{start}
		first := statsIn(t, folder, clock)
		first.counter("a").request(1, 1)
		first.End()
		files, _ := filepath.Glob(filepath.Join(folder, "*"+suffix))
		if len(files) != 1 {
			t.Fatal(files)
		}
		data, err := os.ReadFile(files[0])
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(files[0], damage(data), 0o600); err != nil {
			t.Fatal(err)
		}
		clock.pass(time.Minute)
		second := statsIn(t, folder, clock)
		second.counter("b").request(1, 1)
		batch := second.Drain(0)
		if total(batch.GetMinutes()) != 1 || batch.GetMinutes()[0].GetSiteId() != "b" || len(batch.GetGaps()) == 0 {
			t.Errorf("%s: %v", name, batch)
		}
	}
}

func TestNamesOfASiteAndMinuteAreBounded(t *testing.T) {
	stats := statsIn(t, t.TempDir(), &fakeClock{start})
	counter := stats.counter("a")
	const names = maxRowNames + 50
	for i := range names {
		counter.add(nameField(exchange.NewCount(fmt.Sprint("test.", i))))
	}
	counter.Touch()
	counts := stats.Drain(0).GetMinutes()[0].GetCounts()
	sum, other := uint64(0), uint64(0)
	for _, count := range counts {
		sum += count.GetCount()
		if count.GetName() == "other" {
			other = count.GetCount()
		}
	}
	if len(counts) != maxRowNames || sum != names || other != names-maxRowNames+1 {
		t.Errorf("%d names, %d counted, %d as other", len(counts), sum, other)
	}
}

// A clock that is 10 minutes fast or slow changes nothing, once the console's is known, and not for the next process.
func TestMinutesAreTheConsoles(t *testing.T) {
	for _, wrong := range []time.Duration{10 * time.Minute, -10 * time.Minute} {
		folder, clock := t.TempDir(), &fakeClock{start.Add(wrong)}
		first := statsIn(t, folder, clock)
		first.SetClock(-wrong)
		first.counter("a").request(1, 1)
		first.Settle()
		second := statsIn(t, folder, clock)
		second.counter("a").request(1, 1)
		batch := second.Drain(0)
		next := second.Drain(batch.GetSequence())
		if batch.GetMinutes()[0].GetMinute() != startMinute || next.GetMinutes()[0].GetMinute() != startMinute {
			t.Errorf("%v %v", batch, next)
		}
	}
}

func TestWhatIsCountedAroundTheEndOfAMinuteBelongsToItsSecond(t *testing.T) {
	clock := &fakeClock{time.Unix(startMinute+59, 0)}
	stats := statsIn(t, t.TempDir(), clock)
	stats.Settle()
	stats.counter("a").request(1, 1)
	clock.pass(time.Second + time.Millisecond)
	stats.Settle()
	if minute := stats.Drain(0).GetMinutes()[0].GetMinute(); minute != startMinute {
		t.Errorf("%d", minute-startMinute)
	}
}

// The console reads the same list.
func TestLatencyBoundsAreThoseOfTheContract(t *testing.T) {
	source, err := os.ReadFile("../../../../contract/latency-buckets.ts")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(source), "= [")
	list, _, _ = strings.Cut(list, "]")
	var bounds []int64
	for item := range strings.SplitSeq(strings.ReplaceAll(list, "_", ""), ",") {
		var bound int64
		if _, err := fmt.Sscan(item, &bound); err == nil {
			bounds = append(bounds, bound)
		}
	}
	if !slices.Equal(bounds, exchange.LatencyBounds[:]) || exchange.LatencyBuckets > 24 {
		t.Errorf("%v, not %v", exchange.LatencyBounds, bounds)
	}
	for took, want := range map[time.Duration]int{0: 0, time.Millisecond: 0, time.Millisecond + 1: 1, 32_768 * time.Millisecond: 22, time.Hour: 23} {
		if got := exchange.LatencyBucket(took); got != want {
			t.Errorf("%s is in %d, not in %d", took, got, want)
		}
	}
}

// Whatever a file holds, reading it ends and what it gives can be sent.
func FuzzSegment(f *testing.F) {
	s := newSegment(make([]byte, 4096), 7, start, time.Second)
	r := s.rowOf("site", startMinute)
	for _, field := range []field{fieldRequests, fieldSent, fieldReceived, fieldLatency + 3, statusField(404), nameField(exchange.NewCount("blocked.ban"))} {
		s.add(r, field, 5, nameOf)
	}
	s.addGap(gap{1, 2})
	f.Add(slices.Clone(s.data[:s.used]))
	s.seal(sealed)
	f.Add(slices.Clone(s.data[:s.used]))
	f.Add([]byte(segmentMagic))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := readSegment(data)
		if err != nil {
			return
		}
		if len(c.minutes) > maxRows || c.used > len(data) || c.used < headerBytes {
			t.Fatalf("%d rows, %d of %d bytes", len(c.minutes), c.used, len(data))
		}
		for _, minute := range c.minutes {
			if minute.GetMinute() < 0 || len(minute.GetLatency()) > 24 || len(minute.GetSiteId()) > maxText {
				t.Fatalf("%v", minute)
			}
		}
	})
}

// A disk that fails below the file takes what was in it, which is told, and nothing else.
func TestADiskThatFailsUnderTheFileStopsNothing(t *testing.T) {
	clock := &fakeClock{start}
	stats := statsIn(t, t.TempDir(), clock)
	site := stats.counter("a")
	site.request(1, 1)
	stats.Settle()
	// Memory beyond the end of its file fails as that of a broken disk does.
	if err := os.Truncate(stats.spool.path, 0); err != nil {
		t.Fatal(err)
	}
	clock.pass(time.Second)
	site.request(1, 1)
	stats.Settle()
	clock.pass(time.Second)
	site.request(2, 2)
	batch := stats.Drain(0)
	if gaps := batch.GetGaps(); len(gaps) != 1 || gaps[0].GetFrom() != start.Unix() || gaps[0].GetTo() < start.Unix()+1 {
		t.Errorf("%v", gaps)
	}
	if minutes := batch.GetMinutes(); len(minutes) != 1 || minutes[0].GetBytesSent() < 2 {
		t.Errorf("%v", minutes)
	}
}
