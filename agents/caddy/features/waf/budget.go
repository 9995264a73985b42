package waf

import (
	"fmt"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"edge.svc/caddy/core"
)

// patternTime is how long one inspection may compute, in milliseconds: patterns are most of it, and counted as they run;
// what decodes and scans beside them is counted between the rounds of a body.
var patternTime = core.NewOption("waf_pattern_ms", 1000, func(ms int) error {
	if ms < 1 || ms > maxPatternTime {
		return fmt.Errorf("is %d and must be from 1 to %d", ms, maxPatternTime)
	}
	return nil
})

const maxPatternTime = 60_000

const (
	// Values of so many bytes are measured each, of shorter ones one in sampledCalls stands for all.
	measuredBytes = 512
	sampledCalls  = 16
	// No pattern takes as long for a value that is not measured: what did was kept from running, and stands for itself alone.
	interrupted = 2 * time.Millisecond
)

// budget is the time that an inspection has left. Half of it is counted by the clock, which costs nothing to read; on a busy
// machine most of that is others', so that the other half is what the thread computes from then on. Operators know their
// transaction by its id alone, so ids are those of budgets.
type budget struct {
	id    string
	half  time.Duration
	left  time.Duration
	began time.Time
	// The inspection stays on its thread, which had computed so much when the second half began.
	bound bool
	begun time.Duration
	calls uint
	over  bool
	// Parts of the request as rules with exceptions look for them; nil until one asks.
	raws map[string][]string
	// Is told of matches that exceptions suppress; nil outside of tests.
	suppressed func(rule int, value, rest, raw string)
	// The site wants no exceptions.
	exact bool
}

// maxBudgets is how many inspections of a process run at once; components have fewer permits.
const maxBudgets = 256

var budgets, freeBudgets = func() (*[maxBudgets]budget, chan *budget) {
	all, free := new([maxBudgets]budget), make(chan *budget, maxBudgets)
	for i := range all {
		all[i].id = string([]byte{'A' + byte(i>>4), 'A' + byte(i&15)})
		free <- &all[i]
	}
	return all, free
}()

// takeBudget begins the time of an inspection by the goroutine that asks, which gives it back.
func takeBudget(most time.Duration) *budget {
	b := <-freeBudgets
	*b = budget{id: b.id, half: most / 2, left: most / 2, began: time.Now()}
	return b
}

func (b *budget) giveBack() {
	if b.bound {
		runtime.UnlockOSThread()
	}
	freeBudgets <- b
}

// spend counts time in which patterns ran.
func (b *budget) spend(d time.Duration) {
	if b.left -= d; b.left < 0 {
		b.measure()
	}
}

// excuse does what the request is not to blame for: it counts as nothing.
func (b *budget) excuse(do func()) {
	begun, before := time.Now(), time.Duration(0)
	if b.bound {
		before = computed()
	}
	do()
	b.began = b.began.Add(time.Since(begun))
	if b.bound {
		b.begun += computed() - before
	}
}

// exceeded counts all that was done until now, whatever was spent.
func (b *budget) exceeded() bool {
	if b.bound || time.Since(b.began) > b.half {
		b.measure()
	}
	return b.over
}

// measure counts what the thread computed.
func (b *budget) measure() {
	if !b.bound {
		runtime.LockOSThread()
		b.bound, b.begun = true, computed()
	}
	b.left = b.half - (computed() - b.begun)
	b.over = b.over || b.left < 0
}

// computed is how long this thread has computed.
func computed() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		// Never on Linux: then the clock alone counts.
		return time.Duration(time.Now().UnixNano())
	}
	return time.Duration(t.Nano())
}

// budgetOf finds the budget of a transaction, nil for one that has none.
func budgetOf(id string) *budget {
	if len(id) != 2 {
		return nil
	}
	if at := int(id[0]-'A')<<4 | int(id[1]-'A'); at >= 0 && at < maxBudgets {
		return &budgets[at]
	}
	return nil
}
