package svcbans

import "time"

// One timer serves all bans; expired ones cost only memory until it fires, so it need not be exact.
const sweepEvery = time.Second

// expire reclaims the bans that ended.
func (t *Table) expire(e *edit) {
	clock := t.clock()
	for len(t.index.expiry) > 0 && t.index.expiry[0].expires <= clock {
		e.drop(t.index.expiry[0])
	}
}

// schedule sees to it that the ban that ends next is reclaimed soon after its end.
func (t *Table) schedule() {
	if len(t.index.expiry) == 0 {
		return
	}
	next := t.index.expiry[0].expires
	delay := max(time.Duration(next-t.clock()), sweepEvery)
	switch {
	case t.sweep == nil:
		t.sweep = time.AfterFunc(delay, t.sweepExpired)
	case t.sweepAt == 0 || next < t.sweepAt:
		t.sweep.Reset(delay)
	default:
		return
	}
	t.sweepAt = next
}

func (t *Table) sweepExpired() {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.index.edit(0)
	t.expire(e)
	e.publish()
	t.sweepAt = 0
	t.schedule()
}
