package bans

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

// expiryHeap orders records by their end, soonest first.
type expiryHeap []*record

func (h expiryHeap) Len() int           { return len(h) }
func (h expiryHeap) Less(i, j int) bool { return h[i].expires < h[j].expires }
func (h expiryHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].heapPos, h[j].heapPos = int32(i), int32(j)
}

// Push is for container/heap.
func (h *expiryHeap) Push(x any) {
	r := x.(*record)
	r.heapPos = int32(len(*h))
	*h = append(*h, r)
}

// Pop is for container/heap.
func (h *expiryHeap) Pop() any {
	old := *h
	r := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return r
}
