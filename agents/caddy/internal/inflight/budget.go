package inflight

import (
	"net/netip"
	"sync"
)

const (
	// RequestBytes is what a request without a body may take: the stack of its goroutine, its headers, and the buffers of
	// both connections.
	RequestBytes = 16 << 10
	// The part of the total, and of what a network may hold, for refused requests whose responses are still being written.
	partRefusing = 16
	// How many networks without a request are kept for the next ones.
	maxSpare = 256
)

// Limits are in bytes; 0 bounds nothing.
type Limits struct{ Total, PerNetwork int64 }

// Victim is a request that can be ended from outside.
type Victim interface {
	// Evict ends the request. It may be called once, by another goroutine, before Leave returns.
	Evict()
}

// Verdict says whether a request may begin.
type Verdict int

const (
	// Entered requests count until they leave.
	Entered Verdict = iota
	// Refused requests are to get a response of the edge, and leave after it.
	Refused
	// Overrun requests are to end without a response: too many refused ones wait for their clients to read.
	Overrun
)

// Counters are the present state, and counts since the start of the process.
type Counters struct {
	Limits Limits
	// Requests in progress, and the bytes they count.
	Requests int
	Bytes    int64
	// Requests refused at their beginning or while their bodies came, by limit; and requests that were ended.
	RefusedTotal, RefusedNetwork, Evicted uint64
	// Refused requests without a response.
	Unanswered uint64
}

// Budget is what all requests in progress share. The zero value bounds nothing.
type Budget struct {
	mu       sync.Mutex
	counters Counters
	networks map[netip.Addr]*network
	// Networks by what they hold, the heaviest first.
	heavy heap
	spare []*network
	// Bytes of refused requests whose responses are not written yet.
	refusing int64
	// The most bytes since the memory of a peak was given back.
	peak int64
	// Holdings that are being ended.
	ended sync.Cond
}

// network is a client network with requests in progress.
type network struct {
	key   netip.Addr
	bytes int64
	// Bytes of its refused requests whose responses are not written yet.
	refusing int64
	// Place in the heap.
	at     int
	newest *Holding
}

// Holding is what one request holds of the budget. The zero value holds nothing.
type Holding struct {
	budget       *Budget
	network      *network
	older, newer *Holding
	victim       Victim
	bytes        int64
	state        state
	// Another goroutine is ending the request.
	ending bool
}

type state uint8

const (
	outside state = iota
	inside
	refused
	// The request was ended and counts nothing any more.
	evicted
)

// SetLimits replaces the limits. Requests in progress stay.
func (b *Budget) SetLimits(limits Limits) {
	b.mu.Lock()
	b.counters.Limits = limits
	b.mu.Unlock()
}

// Counters returns a copy of the counters.
func (b *Budget) Counters() Counters {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.counters
}

// Enter begins to count a request of a network; an invalid network has no limit of its own and loses no requests. Every
// request that Enter has seen leaves once.
func (b *Budget) Enter(h *Holding, of netip.Addr, v Victim) Verdict {
	b.mu.Lock()
	h.budget, h.victim = b, v
	if of.IsValid() {
		h.network = b.networkOf(of)
		h.older = h.network.newest
		if h.older != nil {
			h.older.newer = h
		}
		h.network.newest = h
	}
	h.state = inside
	b.counters.Requests++
	fits, victims := b.take(h, RequestBytes)
	verdict := Entered
	if !fits {
		verdict = b.refuse(h)
	}
	b.mu.Unlock()
	b.evict(victims)
	return verdict
}

// refuse takes a request that does not fit out of the counts, and counts its response, if it may have one.
func (b *Budget) refuse(h *Holding) Verdict {
	n, limits := h.network, b.counters.Limits
	if over(b.refusing+RequestBytes, forResponses(limits.Total)) || n != nil && over(n.refusing+RequestBytes, forResponses(limits.PerNetwork)) {
		b.remove(h)
		h.state = outside
		b.counters.Unanswered++
		return Overrun
	}
	b.refusing += RequestBytes
	if n != nil {
		n.refusing += RequestBytes
	}
	b.remove(h)
	h.state, h.network = refused, n
	return Refused
}

// forResponses is the part of a limit for refused requests: one of them at least.
func forResponses(limit int64) int64 {
	if limit <= 0 {
		return 0
	}
	return max(limit/partRefusing, RequestBytes)
}

// Take counts more bytes of a request, and reports whether it may hold them.
func (h *Holding) Take(bytes int64) bool {
	b := h.budget
	if b == nil {
		return true
	}
	b.mu.Lock()
	if h.state != inside {
		b.mu.Unlock()
		return h.state != evicted
	}
	fits, victims := b.take(h, bytes)
	b.mu.Unlock()
	b.evict(victims)
	return fits
}

// TakeSpare is Take for memory that the request can do without: it ends no other request, is not counted as refused, and
// leaves half of each limit.
func (h *Holding) TakeSpare(bytes int64) bool {
	b := h.budget
	if b == nil {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	limits := b.counters.Limits
	if h.state != inside || over(2*(b.counters.Bytes+bytes), limits.Total) || h.network != nil && over(2*(h.network.bytes+bytes), limits.PerNetwork) {
		return false
	}
	b.add(h, bytes)
	return true
}

// Give ends the counting of bytes that were taken.
func (h *Holding) Give(bytes int64) {
	b := h.budget
	if b == nil || bytes == 0 {
		return
	}
	b.mu.Lock()
	if h.state == inside {
		b.add(h, -bytes)
	}
	b.mu.Unlock()
}

// Leave ends the counting of a request. Nothing calls its victim after it.
func (h *Holding) Leave() {
	b := h.budget
	if b == nil {
		return
	}
	b.mu.Lock()
	switch h.state {
	case inside:
		b.remove(h)
	case refused:
		b.refusing -= RequestBytes
		if h.network != nil {
			h.network.refusing -= RequestBytes
			b.forget(h.network)
		}
	}
	for h.ending {
		b.ended.Wait()
	}
	*h = Holding{}
	b.mu.Unlock()
}

// Settled reports, once for each peak of at least so many bytes, that most of it is over.
func (b *Budget) Settled(least int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.peak < least || b.counters.Bytes > b.peak/4 {
		return false
	}
	b.peak = b.counters.Bytes
	return true
}

// take counts bytes of a request that is inside. It returns the requests that have to end for it.
func (b *Budget) take(h *Holding, bytes int64) (fits bool, victims []*Holding) {
	limits, own := b.counters.Limits, int64(0)
	if h.network != nil {
		own = h.network.bytes + bytes
		if over(own, limits.PerNetwork) {
			b.counters.RefusedNetwork++
			return false, nil
		}
	}
	for over(b.counters.Bytes+bytes, limits.Total) {
		if len(b.heavy) == 0 || b.heavy[0] == h.network || b.heavy[0].bytes <= own {
			b.counters.RefusedTotal++
			return false, victims
		}
		victim := b.heavy[0].newest
		b.remove(victim)
		victim.state, victim.ending = evicted, true
		b.counters.Evicted++
		victims = append(victims, victim)
	}
	b.add(h, bytes)
	return true, victims
}

func over(n, limit int64) bool { return limit > 0 && n > limit }

// evict ends requests that count nothing any more, without the lock: ending one waits for its connection.
func (b *Budget) evict(victims []*Holding) {
	for _, h := range victims {
		b.end(h)
	}
}

func (b *Budget) end(h *Holding) {
	defer func() {
		b.mu.Lock()
		h.ending = false
		b.mu.Unlock()
		b.ended.Broadcast()
	}()
	h.victim.Evict()
}

func (b *Budget) add(h *Holding, bytes int64) {
	h.bytes += bytes
	b.counters.Bytes += bytes
	b.peak = max(b.peak, b.counters.Bytes)
	if n := h.network; n != nil {
		n.bytes += bytes
		b.heavy.fix(n)
	}
}

// remove takes a request that is inside out of all counts.
func (b *Budget) remove(h *Holding) {
	b.add(h, -h.bytes)
	b.counters.Requests--
	n := h.network
	if n == nil {
		return
	}
	if h.newer != nil {
		h.newer.older = h.older
	} else {
		n.newest = h.older
	}
	if h.older != nil {
		h.older.newer = h.newer
	}
	h.network, h.older, h.newer = nil, nil, nil
	b.forget(n)
}

// forget takes a network out that has no requests.
func (b *Budget) forget(n *network) {
	if n.newest != nil || n.refusing > 0 {
		return
	}
	b.heavy.remove(n)
	delete(b.networks, n.key)
	if len(b.spare) < maxSpare {
		b.spare = append(b.spare, n)
	}
}

// networkOf finds a network, or begins it.
func (b *Budget) networkOf(key netip.Addr) *network {
	n := b.networks[key]
	if n != nil {
		return n
	}
	if b.networks == nil {
		b.networks = map[netip.Addr]*network{}
		b.ended.L = &b.mu
	}
	if last := len(b.spare) - 1; last >= 0 {
		n, b.spare = b.spare[last], b.spare[:last]
	} else {
		n = new(network)
	}
	n.key = key
	b.networks[key] = n
	b.heavy.insert(n)
	return n
}
