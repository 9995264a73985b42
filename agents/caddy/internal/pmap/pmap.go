package pmap

import (
	"hash/maphash"
	"math/bits"
	"slices"

	"edge.svc/caddy/exchange"
)

// Map is a persistent hash map from strings: setting a key yields a new map that shares all but the path to that key
// with the old one. Readers keep whichever map they loaded; a change of one key costs the same in a map of a hundred
// entries and of a million. The zero value is an empty map.
type Map[V any] struct {
	root *node[V]
	size int
}

// Five bits of the hash choose a slot on each level; a 64-bit hash is used up after level 12, below which equal hashes
// share a bucket.
const (
	levelBits = 5
	levels    = 13
)

// node holds the leaves and the nodes of its slots, each in the order of the slots. Leaves and nodes lie in their node's
// lists: with thousands of keys, what a lookup reads is in no cache, and each object more on the way is waited for, and
// marked by each collection. The node itself is a cache line.
type node[V any] struct {
	owner *exchange.Owner
	// The slots that hold a leaf, and those that hold a node. A bucket has leaves and no slots.
	leafSlots, subSlots uint32
	leaves              []entry[V]
	subs                []node[V]
}

type entry[V any] struct {
	key   string
	value V
}

// The seed makes it infeasible to choose host names that collide.
var seed = maphash.MakeSeed()

func slotOf(h uint64) uint32 { return uint32(1) << (h & (1<<levelBits - 1)) }

// rank is the place of a slot among those in use.
func rank(slots, slot uint32) int { return bits.OnesCount32(slots & (slot - 1)) }

// Get returns the value of a key. It allocates nothing.
func (m Map[V]) Get(key string) (value V, ok bool) {
	if m.root == nil {
		return value, false
	}
	h := maphash.String(seed, key)
	for n := m.root; ; h >>= levelBits {
		slot := slotOf(h)
		switch {
		case n.subSlots&slot != 0:
			n = &n.subs[rank(n.subSlots, slot)]
			continue
		case n.leafSlots&slot != 0:
			if l := &n.leaves[rank(n.leafSlots, slot)]; l.key == key {
				return l.value, true
			}
		case n.isBucket():
			if i := n.inBucket(key); i >= 0 {
				return n.leaves[i].value, true
			}
		}
		return value, false
	}
}

// Set returns the map with key set. What e made before is changed in place; e may be nil.
func (m Map[V]) Set(e *exchange.Owner, key string, value V) Map[V] {
	m.root = m.root.ownRoot(e)
	if m.root.set(e, maphash.String(seed, key), 0, entry[V]{key, value}) {
		m.size++
	}
	return m
}

// Delete returns the map without key. What e made before is changed in place; e may be nil.
func (m Map[V]) Delete(e *exchange.Owner, key string) Map[V] {
	if _, found := m.Get(key); !found {
		return m
	}
	m.size--
	if m.size == 0 {
		return Map[V]{}
	}
	m.root = m.root.ownRoot(e)
	m.root.delete(e, maphash.String(seed, key), key)
	return m
}

// Len is the number of keys.
func (m Map[V]) Len() int { return m.size }

// All calls yield for every entry until it returns false; the order is arbitrary.
func (m Map[V]) All(yield func(string, V) bool) { m.root.all(yield) }

func (n *node[V]) all(yield func(string, V) bool) bool {
	if n == nil {
		return true
	}
	for i := range n.leaves {
		if !yield(n.leaves[i].key, n.leaves[i].value) {
			return false
		}
	}
	for i := range n.subs {
		if !n.subs[i].all(yield) {
			return false
		}
	}
	return true
}

func (n *node[V]) isBucket() bool { return n.leafSlots|n.subSlots == 0 }

// inBucket is the place of a key in a bucket, -1 when it is not there.
func (n *node[V]) inBucket(key string) int {
	return slices.IndexFunc(n.leaves, func(l entry[V]) bool { return l.key == key })
}

// ownRoot returns the root itself when e made it, else a copy that e may change; an empty node for nil.
func (n *node[V]) ownRoot(e *exchange.Owner) *node[V] {
	if n != nil && e != nil && n.owner == e {
		return n
	}
	own := new(node[V])
	if n != nil {
		*own = *n
	}
	return own
}

// edit makes a node that lies where e may write one whose lists e may change: unless e made them, they are copied.
func (n *node[V]) edit(e *exchange.Owner) {
	if e == nil || n.owner != e {
		n.owner, n.leaves, n.subs = e, slices.Clone(n.leaves), slices.Clone(n.subs)
	}
}

// set sets the leaf, whose hash is h from this level on, in a node that lies where e may write, and answers whether its
// key is new.
func (n *node[V]) set(e *exchange.Owner, h uint64, level int, leaf entry[V]) (added bool) {
	n.edit(e)
	if level == levels {
		if i := n.inBucket(leaf.key); i >= 0 {
			n.leaves[i] = leaf
			return false
		}
		n.leaves = inserted(n.leaves, len(n.leaves), leaf)
		return true
	}
	slot := slotOf(h)
	if n.subSlots&slot != 0 {
		return n.subs[rank(n.subSlots, slot)].set(e, h>>levelBits, level+1, leaf)
	}
	if n.leafSlots&slot == 0 {
		n.insertLeaf(slot, leaf)
		return true
	}
	present := &n.leaves[rank(n.leafSlots, slot)]
	if present.key == leaf.key {
		*present = leaf
		return false
	}
	// Two keys share the slot: both go a level down.
	sub := node[V]{owner: e}
	sub.set(e, maphash.String(seed, present.key)>>(levelBits*(level+1)), level+1, *present)
	sub.set(e, h>>levelBits, level+1, leaf)
	n.removeLeaf(slot)
	n.subs = inserted(n.subs, rank(n.subSlots, slot), sub)
	n.subSlots |= slot
	return true
}

// delete removes a key that is there, whose hash is h from this level on, from a node that lies where e may write. A node
// with one leaf is not worth a level: the caller takes it over.
func (n *node[V]) delete(e *exchange.Owner, h uint64, key string) {
	n.edit(e)
	slot := slotOf(h)
	switch {
	case n.subSlots&slot != 0:
		i := rank(n.subSlots, slot)
		n.subs[i].delete(e, h>>levelBits, key)
		if sub := n.subs[i]; len(sub.subs) == 0 && len(sub.leaves) == 1 {
			n.subs = slices.Delete(n.subs, i, i+1)
			n.subSlots &^= slot
			n.insertLeaf(slot, sub.leaves[0])
		}
	case n.leafSlots&slot != 0:
		n.removeLeaf(slot)
	default:
		i := n.inBucket(key)
		n.leaves = slices.Delete(n.leaves, i, i+1)
	}
}

func (n *node[V]) insertLeaf(slot uint32, leaf entry[V]) {
	n.leaves = inserted(n.leaves, rank(n.leafSlots, slot), leaf)
	n.leafSlots |= slot
}

func (n *node[V]) removeLeaf(slot uint32) {
	i := rank(n.leafSlots, slot)
	n.leaves = slices.Delete(n.leaves, i, i+1)
	n.leafSlots &^= slot
}

// inserted is the list with one more, in a place that is no larger than the list: nodes stay, and most of them are small.
func inserted[T any](list []T, i int, one T) []T {
	if len(list) < cap(list) {
		return slices.Insert(list, i, one)
	}
	grown := make([]T, len(list)+1)
	copy(grown, list[:i])
	grown[i] = one
	copy(grown[i+1:], list[i:])
	return grown
}
