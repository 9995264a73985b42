package bans

import (
	"container/heap"
	"net/netip"

	"github.com/gaissmai/bart"
)

// Manual bans beyond this many waiting for room are only counted; the console allows fewer in total.
const maxWaiting = 100_000

// index is what the writer knows beyond the tries.
type index struct {
	view *view
	// Console bans by id, placed or waiting.
	ids    map[string]*record
	expiry expiryHeap
	// Automatic bans, oldest first, and manual bans that wait for room, oldest first. Both may hold records that
	// are gone; they are skipped and removed now and then.
	autos, queue []*record
	autoCount    int
	placed       int
	waiting      int
	uncounted    uint64
	bytes        int64
}

func newIndex(capacity int) *index {
	return &index{view: &view{filter: newFilter(capacity)}, ids: map[string]*record{}}
}

// edit collects what one change does to the tries, so that readers see all of a scope at once. A large change
// copies a trie once and edits the copy, a small one derives each trie from the one before.
type edit struct {
	index *index
	bulk  bool
	done  int
	tries map[*scope]*bart.Table[*record]
	// Records that are no longer in the new tries, but still in those that readers use.
	gone []*record
}

// Deriving costs about 15 microseconds a ban, copying 22 milliseconds for 100,000.
const bulkChange = 1500

func (x *index) edit(changes int) *edit {
	return &edit{index: x, bulk: changes >= bulkChange, tries: map[*scope]*bart.Table[*record]{}}
}

func (e *edit) trie(s *scope) *bart.Table[*record] {
	trie, ok := e.tries[s]
	if ok {
		return trie
	}
	trie = s.trie.Load()
	switch {
	case trie == nil:
		trie = new(bart.Table[*record])
	case e.bulk:
		trie = trie.Clone()
	}
	e.tries[s] = trie
	return trie
}

// step counts a change of a trie and turns a change that became large into a bulk one.
func (e *edit) step() {
	e.done++
	if e.done == bulkChange && !e.bulk {
		e.bulk = true
		for s, trie := range e.tries {
			e.tries[s] = trie.Clone()
		}
	}
}

func (e *edit) insert(s *scope, p netip.Prefix, r *record) {
	e.step()
	if trie := e.trie(s); e.bulk {
		trie.Insert(p, r)
	} else {
		e.tries[s] = trie.InsertPersist(p, r)
	}
}

func (e *edit) delete(s *scope, p netip.Prefix) {
	e.step()
	if trie := e.trie(s); e.bulk {
		trie.Delete(p)
	} else {
		e.tries[s] = trie.DeletePersist(p)
	}
}

// publish shows the new tries to readers.
func (e *edit) publish() {
	v := e.index.view
	for s, trie := range e.tries {
		if trie.Size() > 0 {
			s.trie.Store(trie)
			continue
		}
		s.trie.Store(nil)
		if s != &v.global {
			v.sites.Delete(s.siteID)
			v.siteCount.Add(-1)
			e.index.bytes -= scopeBytes
		}
	}
	clear(e.tries)
	for _, r := range e.gone {
		v.filter.remove(r)
	}
	e.gone = nil
}

// scope returns the scope of a site, made when it does not exist yet.
func (e *edit) scope(siteID string) *scope {
	v := e.index.view
	if siteID == "" {
		return &v.global
	}
	if s, ok := v.sites.Load(siteID); ok {
		return s.(*scope)
	}
	s := &scope{siteID: siteID}
	v.sites.Store(siteID, s)
	v.siteCount.Add(1)
	e.index.bytes += scopeBytes
	// A scope that stays empty is removed when the change is published.
	e.trie(s)
	return s
}

// link puts a record among the bans of its network.
func (e *edit) link(r *record) {
	p := r.prefix()
	head, ok := e.trie(r.scope).Get(p)
	if !ok || r.expires >= head.expires {
		if ok {
			r.next = head
		}
		e.insert(r.scope, p, r)
	} else {
		at := head
		for at.next != nil && at.next.expires > r.expires {
			at = at.next
		}
		r.next, at.next = at.next, r
	}
	r.state = statePlaced
	x := e.index
	x.view.filter.add(r)
	x.placed++
	x.bytes += r.bytes()
	if r.source != SourceManual {
		x.autoCount++
		x.autos = compact(append(x.autos, r), x.autoCount, statePlaced)
	}
}

// unlink takes a placed record out of its network; the index still knows it.
func (e *edit) unlink(r *record) {
	p := r.prefix()
	head, _ := e.trie(r.scope).Get(p)
	switch {
	case head == r && r.next == nil:
		e.delete(r.scope, p)
	case head == r:
		e.insert(r.scope, p, r.next)
	default:
		at := head
		for at.next != r {
			at = at.next
		}
		at.next = r.next
	}
	r.next = nil
	x := e.index
	e.gone = append(e.gone, r)
	x.placed--
	x.bytes -= r.bytes()
	if r.source != SourceManual {
		x.autoCount--
	}
}

// drop forgets a record altogether.
func (e *edit) drop(r *record) {
	x := e.index
	switch r.state {
	case statePlaced:
		e.unlink(r)
	case stateWaiting:
		x.waiting--
	case stateGone:
		return
	}
	r.state = stateGone
	heap.Remove(&x.expiry, int(r.heapPos))
	if r.source != SourceOwn && x.ids[r.id] == r {
		delete(x.ids, r.id)
	}
}

// own finds the node's own ban of a network.
func (e *edit) own(s *scope, p netip.Prefix) *record {
	head, _ := e.trie(s).Get(p)
	for r := head; r != nil; r = r.next {
		if r.source == SourceOwn {
			return r
		}
	}
	return nil
}

// oldestAuto returns the automatic ban to give up first, nil when there is none.
func (x *index) oldestAuto() *record {
	for len(x.autos) > 0 {
		if r := x.autos[0]; r.state == statePlaced {
			return r
		}
		x.autos[0] = nil
		x.autos = x.autos[1:]
	}
	return nil
}

// bans says whether exactly this network is banned.
func (x *index) bans(siteID string, p netip.Prefix, clock int64) bool {
	s := &x.view.global
	if siteID != "" {
		found, ok := x.view.sites.Load(siteID)
		if !ok {
			return false
		}
		s = found.(*scope)
	}
	trie := s.trie.Load()
	if trie == nil {
		return false
	}
	r, ok := trie.Get(p)
	return ok && r.expires > clock
}

// compact removes gone records from a queue when they are the larger part of it.
func compact(queue []*record, live int, want state) []*record {
	if len(queue) < 64 || len(queue) < 2*live {
		return queue
	}
	kept := queue[:0]
	for _, r := range queue {
		if r.state == want {
			kept = append(kept, r)
		}
	}
	clear(queue[len(kept):])
	return kept
}
