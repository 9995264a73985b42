package svccore

import (
	"hash/maphash"
	"math/bits"
	"slices"

	"edge.svc/caddy/exchange"
)

// pmap is a persistent hash map from strings: setting a key yields a new map that shares all but the path to that key
// with the old one. Readers keep whichever map they loaded; a change of one key costs the same in a map of a hundred
// entries and of a million. An owner lets a run of changes alter in place the nodes that the same run made: such maps
// must not be read by others until the run is over. The zero value is an empty map.
type pmap[V any] struct {
	root *pnode[V]
	size int
}

// Five bits of the hash choose a slot on each level; a 64-bit hash is used up after level 12, where equal hashes form a
// chain.
const (
	pmapBits   = 5
	pmapLevels = 13
)

type pnode[V any] struct {
	owner *exchange.Owner
	used  uint32
	slots []pslot[V]
}

// pslot holds either a node or a leaf.
type pslot[V any] struct {
	sub  *pnode[V]
	leaf *pleaf[V]
}

type pleaf[V any] struct {
	key   string
	value V
	next  *pleaf[V]
}

// The seed makes it infeasible to choose host names that collide.
var pmapSeed = maphash.MakeSeed()

func (m pmap[V]) get(key string) (value V, ok bool) {
	if m.root == nil {
		return value, false
	}
	h := maphash.String(pmapSeed, key)
	for n := m.root; n != nil; h >>= pmapBits {
		bit := uint32(1) << (h & (1<<pmapBits - 1))
		if n.used&bit == 0 {
			return value, false
		}
		s := &n.slots[bits.OnesCount32(n.used&(bit-1))]
		if s.leaf == nil {
			n = s.sub
			continue
		}
		for l := s.leaf; l != nil; l = l.next {
			if l.key == key {
				return l.value, true
			}
		}
		break
	}
	return value, false
}

// set returns the map with key set. e may be nil.
func (m pmap[V]) set(e *exchange.Owner, key string, value V) pmap[V] {
	root, added := m.root.set(e, maphash.String(pmapSeed, key), 0, &pleaf[V]{key: key, value: value})
	m.root = root
	if added {
		m.size++
	}
	return m
}

// delete returns the map without key. e may be nil.
func (m pmap[V]) delete(e *exchange.Owner, key string) pmap[V] {
	if m.root == nil {
		return m
	}
	root, removed := m.root.delete(e, maphash.String(pmapSeed, key), key)
	if removed {
		m.root = root
		m.size--
	}
	return m
}

// all calls yield for every entry until it returns false; the order is arbitrary.
func (m pmap[V]) all(yield func(string, V) bool) { m.root.all(yield) }

func (n *pnode[V]) all(yield func(string, V) bool) bool {
	if n == nil {
		return true
	}
	for _, s := range n.slots {
		for l := s.leaf; l != nil; l = l.next {
			if !yield(l.key, l.value) {
				return false
			}
		}
		if !s.sub.all(yield) {
			return false
		}
	}
	return true
}

// editable returns the node itself when e made it, else a copy that e owns.
func (n *pnode[V]) editable(e *exchange.Owner) *pnode[V] {
	if e != nil && n.owner == e {
		return n
	}
	return &pnode[V]{owner: e, used: n.used, slots: slices.Clone(n.slots)}
}

func (n *pnode[V]) set(e *exchange.Owner, h uint64, level int, leaf *pleaf[V]) (*pnode[V], bool) {
	bit := uint32(1) << (h & (1<<pmapBits - 1))
	if n == nil {
		return &pnode[V]{owner: e, used: bit, slots: []pslot[V]{{leaf: leaf}}}, true
	}
	i := bits.OnesCount32(n.used & (bit - 1))
	if n.used&bit == 0 {
		if e == nil || n.owner != e {
			slots := make([]pslot[V], len(n.slots)+1)
			copy(slots, n.slots[:i])
			slots[i].leaf = leaf
			copy(slots[i+1:], n.slots[i:])
			return &pnode[V]{owner: e, used: n.used | bit, slots: slots}, true
		}
		n.slots = slices.Insert(n.slots, i, pslot[V]{leaf: leaf})
		n.used |= bit
		return n, true
	}
	s := n.slots[i]
	added := false
	switch {
	case s.sub != nil:
		s.sub, added = s.sub.set(e, h>>pmapBits, level+1, leaf)
	case s.leaf.has(leaf.key):
		leaf.next = s.leaf.without(leaf.key)
		s.leaf = leaf
	case level+1 == pmapLevels:
		leaf.next = s.leaf
		s.leaf, added = leaf, true
	default:
		// Two keys share the slot: push the present one down and try again below.
		rest := maphash.String(pmapSeed, s.leaf.key) >> (pmapBits * (level + 1))
		sub, _ := (*pnode[V])(nil).set(e, rest, level+1, s.leaf)
		s.sub, added = sub.set(e, h>>pmapBits, level+1, leaf)
		s.leaf = nil
	}
	n = n.editable(e)
	n.slots[i] = s
	return n, added
}

func (n *pnode[V]) delete(e *exchange.Owner, h uint64, key string) (*pnode[V], bool) {
	bit := uint32(1) << (h & (1<<pmapBits - 1))
	if n.used&bit == 0 {
		return n, false
	}
	i := bits.OnesCount32(n.used & (bit - 1))
	s := n.slots[i]
	if s.sub != nil {
		sub, removed := s.sub.delete(e, h>>pmapBits, key)
		if !removed {
			return n, false
		}
		s.sub = sub
		if sub != nil && len(sub.slots) == 1 && sub.slots[0].leaf != nil {
			// A node with one leaf is not worth a level.
			s = sub.slots[0]
		}
	} else {
		if !s.leaf.has(key) {
			return n, false
		}
		s.leaf = s.leaf.without(key)
	}
	if s.sub == nil && s.leaf == nil {
		if len(n.slots) == 1 {
			return nil, true
		}
		n = n.editable(e)
		n.slots = slices.Delete(n.slots, i, i+1)
		n.used &^= bit
		return n, true
	}
	n = n.editable(e)
	n.slots[i] = s
	return n, true
}

func (l *pleaf[V]) has(key string) bool {
	for ; l != nil; l = l.next {
		if l.key == key {
			return true
		}
	}
	return false
}

// without returns the chain without key; leaves are never changed once they are in a map.
func (l *pleaf[V]) without(key string) *pleaf[V] {
	if l == nil {
		return nil
	}
	if l.key == key {
		return l.next
	}
	return &pleaf[V]{key: l.key, value: l.value, next: l.next.without(key)}
}
