package waf

import (
	"container/list"
	"context"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"edge.svc/caddy/exchange"
	"edge.svc/caddy/internal/address"
)

// maxYielded is how many inspections may wait for another turn after one they had: each keeps a budget.
const maxYielded = maxBudgets / 8

// queue hands out permits to inspect. Where none is free, sites take turns, and the client networks of each site. A request
// without a body may also use the reserved permit, which none with a body gets.
type queue struct {
	// Permits that are free.
	general, reserved atomic.Int64
	waiting           atomic.Int64
	yields            atomic.Uint64

	mu sync.Mutex
	// Requests that wait, without and with a body; of both, the one that gets the next general permit first.
	plain, bodies node
	bodyFirst     bool
	yielded       int
}

// flow is whose turn it is.
type flow struct {
	site    string
	network netip.Prefix
	body    bool
}

// flowOf tells whose request it is. A claimed address may be another for each request, so that its peer counts.
func flowOf(x *exchange.Exchange) flow {
	client := x.In.Client
	if x.In.Claimed {
		client = x.In.Peer
	}
	return flow{x.Plan.SiteID, address.NetworkOf(client), x.Body.Exists()}
}

// permit is one that was handed out; it goes back to where it came from.
type permit = *atomic.Int64

// node is a place in the queue: a root has sites, a site has networks, a network has requests. Children take turns.
type node struct {
	parent   *node
	key      any
	place    *list.Element
	turns    list.List
	children map[any]*node
	// Of a request.
	ready chan permit
}

func newQueue(permits int) *queue {
	q := &queue{}
	q.general.Store(int64(permits))
	q.reserved.Store(1)
	return q
}

func grab(p permit) bool {
	for {
		n := p.Load()
		if n <= 0 {
			return false
		}
		if p.CompareAndSwap(n, n-1) {
			return true
		}
	}
}

// take waits for a permit. It returns nil where that takes too long, or the client is gone.
func (q *queue) take(ctx context.Context, x *exchange.Exchange, wait time.Duration) permit {
	if q.waiting.Load() == 0 {
		if !x.Body.Exists() && grab(&q.reserved) {
			return &q.reserved
		}
		if grab(&q.general) {
			return &q.general
		}
	}
	f := flowOf(x)
	q.mu.Lock()
	w := q.enqueue(f, false)
	q.dispatch()
	q.mu.Unlock()
	return q.await(ctx, w, wait)
}

func (q *queue) giveBack(p permit) {
	p.Add(1)
	if q.waiting.Load() > 0 {
		q.mu.Lock()
		q.dispatch()
		q.mu.Unlock()
	}
}

// yield lets others have a turn between two rounds. Of its own flow it stays the first. It returns nil as take does.
func (q *queue) yield(ctx context.Context, f flow, p permit, wait time.Duration) permit {
	if q.waiting.Load() == 0 {
		return p
	}
	q.mu.Lock()
	if q.yielded >= maxYielded {
		q.mu.Unlock()
		return p
	}
	q.yielded++
	w := q.enqueue(f, true)
	p.Add(1)
	q.dispatch()
	q.mu.Unlock()
	q.yields.Add(1)
	p = q.await(ctx, w, wait)
	q.mu.Lock()
	q.yielded--
	q.mu.Unlock()
	return p
}

func (q *queue) await(ctx context.Context, w *node, wait time.Duration) permit {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case p := <-w.ready:
		return p
	case <-timer.C:
	case <-ctx.Done():
	}
	q.mu.Lock()
	if w.place != nil {
		w.remove()
		q.waiting.Add(-1)
	}
	q.mu.Unlock()
	select {
	case p := <-w.ready:
		return p
	default:
		return nil
	}
}

// enqueue adds a request to its flow. It needs the lock, as all that follows.
func (q *queue) enqueue(f flow, first bool) *node {
	root := &q.plain
	if f.body {
		root = &q.bodies
	}
	network := root.child(f.site).child(f.network)
	w := &node{parent: network, ready: make(chan permit, 1)}
	if first {
		w.place = network.turns.PushFront(w)
	} else {
		w.place = network.turns.PushBack(w)
	}
	q.waiting.Add(1)
	return w
}

// dispatch hands out the permits that are free.
func (q *queue) dispatch() {
	for q.plain.turns.Len() > 0 && grab(&q.reserved) {
		q.grant(&q.plain, &q.reserved)
	}
	for q.plain.turns.Len()+q.bodies.turns.Len() > 0 && grab(&q.general) {
		from := &q.plain
		if from.turns.Len() == 0 || q.bodyFirst && q.bodies.turns.Len() > 0 {
			from = &q.bodies
		}
		q.bodyFirst = from == &q.plain
		q.grant(from, &q.general)
	}
}

func (q *queue) grant(root *node, p permit) {
	w := root.next()
	w.remove()
	q.waiting.Add(-1)
	w.ready <- p
}

// child is the one with a key, which is the last to have its turn where it is new.
func (n *node) child(key any) *node {
	c := n.children[key]
	if c == nil {
		if n.children == nil {
			n.children = map[any]*node{}
		}
		c = &node{parent: n, key: key}
		c.place = n.turns.PushBack(c)
		n.children[key] = c
	}
	return c
}

// next is the request whose turn it is.
func (n *node) next() *node {
	for n.ready == nil {
		first := n.turns.Front()
		n.turns.MoveToBack(first)
		n = first.Value.(*node)
	}
	return n
}

// remove takes a request out, and what is empty then.
func (n *node) remove() {
	for ; n.parent != nil && n.turns.Len() == 0; n = n.parent {
		n.parent.turns.Remove(n.place)
		delete(n.parent.children, n.key)
		n.place = nil
	}
}
