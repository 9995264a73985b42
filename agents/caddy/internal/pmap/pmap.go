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

// node holds the leaves and the nodes of its slots, each in the order of the slots. Leaves lie in their node: with
// thousands of keys, what a lookup reads is in no cache, and each object more on the way is waited for, and marked by
// each collection. The node itself is a cache line.
type node[V any] struct {
	owner *exchange.Owner
	// The slots that hold a leaf, and those that hold a node. A bucket has leaves and no slots.
	leafSlots, subSlots uint32
	leaves              []entry[V]
	subs                []*node[V]
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
			n = n.subs[rank(n.subSlots, slot)]
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
	root, added := m.root.set(e, maphash.String(seed, key), 0, entry[V]{key, value})
	m.root = root
	if added {
		m.size++
	}
	return m
}

// Delete returns the map without key. What e made before is changed in place; e may be nil.
func (m Map[V]) Delete(e *exchange.Owner, key string) Map[V] {
	if m.root == nil {
		return m
	}
	root, removed := m.root.delete(e, maphash.String(seed, key), key)
	if removed {
		m.root = root
		m.size--
	}
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
	for _, sub := range n.subs {
		if !sub.all(yield) {
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

// editable returns the node itself when e made it, else a copy that e owns.
func (n *node[V]) editable(e *exchange.Owner) *node[V] {
	if e != nil && n.owner == e {
		return n
	}
	return &node[V]{
		owner: e, leafSlots: n.leafSlots, subSlots: n.subSlots, leaves: slices.Clone(n.leaves), subs: slices.Clone(n.subs),
	}
}

// set returns the node with the leaf, whose hash is h from this level on, and whether its key is new. n may be nil.
func (n *node[V]) set(e *exchange.Owner, h uint64, level int, leaf entry[V]) (*node[V], bool) {
	slot := slotOf(h)
	if n == nil {
		n = &node[V]{owner: e, leaves: []entry[V]{leaf}}
		if level < levels {
			n.leafSlots = slot
		}
		return n, true
	}
	if level == levels {
		i := n.inBucket(leaf.key)
		n = n.editable(e)
		if i >= 0 {
			n.leaves[i] = leaf
			return n, false
		}
		n.leaves = inserted(n.leaves, len(n.leaves), leaf)
		return n, true
	}
	if n.subSlots&slot != 0 {
		i := rank(n.subSlots, slot)
		sub, added := n.subs[i].set(e, h>>levelBits, level+1, leaf)
		n = n.editable(e)
		n.subs[i] = sub
		return n, added
	}
	i := rank(n.leafSlots, slot)
	if n.leafSlots&slot == 0 {
		n = n.editable(e)
		n.insertLeaf(slot, leaf)
		return n, true
	}
	present := n.leaves[i]
	n = n.editable(e)
	if present.key == leaf.key {
		n.leaves[i] = leaf
		return n, false
	}
	// Two keys share the slot: both go a level down.
	rest := maphash.String(seed, present.key) >> (levelBits * (level + 1))
	sub, _ := (*node[V])(nil).set(e, rest, level+1, present)
	sub, _ = sub.set(e, h>>levelBits, level+1, leaf)
	n.removeLeaf(slot)
	n.subs = inserted(n.subs, rank(n.subSlots, slot), sub)
	n.subSlots |= slot
	return n, true
}

// delete returns the node without key, whose hash is h from this level on: nil when nothing is left.
func (n *node[V]) delete(e *exchange.Owner, h uint64, key string) (*node[V], bool) {
	slot := slotOf(h)
	switch {
	case n.subSlots&slot != 0:
		i := rank(n.subSlots, slot)
		sub, removed := n.subs[i].delete(e, h>>levelBits, key)
		if !removed {
			return n, false
		}
		n = n.editable(e)
		if sub != nil && (len(sub.subs) > 0 || len(sub.leaves) > 1) {
			n.subs[i] = sub
			return n, true
		}
		n.subs = slices.Delete(n.subs, i, i+1)
		n.subSlots &^= slot
		if sub != nil {
			// A node with one leaf is not worth a level.
			n.insertLeaf(slot, sub.leaves[0])
		}
	case n.leafSlots&slot != 0:
		if n.leaves[rank(n.leafSlots, slot)].key != key {
			return n, false
		}
		n = n.editable(e)
		n.removeLeaf(slot)
	case n.isBucket():
		i := n.inBucket(key)
		if i < 0 {
			return n, false
		}
		n = n.editable(e)
		n.leaves = slices.Delete(n.leaves, i, i+1)
	default:
		return n, false
	}
	if len(n.leaves)+len(n.subs) == 0 {
		return nil, true
	}
	return n, true
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
