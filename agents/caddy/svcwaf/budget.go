package svcwaf

import (
	"fmt"
	"time"

	"edge.svc/caddy/svccore"
)

// patternTime is how long one inspection may spend in patterns, in milliseconds.
var patternTime = svccore.NewOption("waf_pattern_ms", 1000, func(ms int) error {
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
)

// budget is the time that an inspection has left. Operators know their transaction by its id alone, so ids are those of
// budgets.
type budget struct {
	id    string
	left  time.Duration
	calls uint
	over  bool
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

// takeBudget begins the time of an inspection.
func takeBudget(most time.Duration) *budget {
	b := <-freeBudgets
	b.left, b.calls, b.over = most, 0, false
	return b
}

func (b *budget) giveBack() { freeBudgets <- b }

func (b *budget) spend(d time.Duration) {
	if b.left -= d; b.left < 0 {
		b.over = true
	}
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
