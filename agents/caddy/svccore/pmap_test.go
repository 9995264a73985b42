package svccore

import (
	"edge.svc/caddy/exchange"
	"fmt"
	"math/rand/v2"
	"testing"
)

// Any run of changes gives what a plain map gives, and maps published before stay what they were.
func TestPersistentMapBehavesAsAMap(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var m pmap[int]
	model := map[string]int{}
	type version struct {
		m     pmap[int]
		model map[string]int
	}
	var kept []version
	for round := range 400 {
		var e *exchange.Owner
		if round%2 == 0 {
			e = new(exchange.Owner)
		}
		for range random.IntN(40) {
			key := fmt.Sprint(random.IntN(600))
			if random.IntN(3) == 0 {
				m = m.delete(e, key)
				delete(model, key)
			} else {
				value := random.IntN(1000)
				m = m.set(e, key, value)
				model[key] = value
			}
		}
		copied := make(map[string]int, len(model))
		for k, v := range model {
			copied[k] = v
		}
		kept = append(kept, version{m, copied})
	}
	for i, v := range kept {
		compareMaps(t, i, v.m, v.model)
	}
	for key := range model {
		m = m.delete(nil, key)
	}
	if m.size != 0 || m.root != nil {
		t.Errorf("%d entries are left of none", m.size)
	}
}

func compareMaps(t *testing.T, version int, m pmap[int], model map[string]int) {
	t.Helper()
	if m.size != len(model) {
		t.Fatalf("version %d: size %d, want %d", version, m.size, len(model))
	}
	for key := range 600 {
		want, wantOK := model[fmt.Sprint(key)]
		if got, ok := m.get(fmt.Sprint(key)); ok != wantOK || got != want {
			t.Fatalf("version %d: %d is %d %v, want %d %v", version, key, got, ok, want, wantOK)
		}
	}
	seen := 0
	for key, value := range m.all {
		if model[key] != value {
			t.Fatalf("version %d: %s is %d", version, key, value)
		}
		seen++
	}
	if seen != len(model) {
		t.Fatalf("version %d: walked %d of %d", version, seen, len(model))
	}
}

// Keys whose hashes agree to the last level share a chain.
func TestPersistentMapWithEqualHashes(t *testing.T) {
	const h = 0
	var root *pnode[int]
	for i, key := range []string{"a", "b", "c"} {
		added := false
		root, added = chained(root, key, i, h)
		if !added {
			t.Fatalf("%s was not new", key)
		}
	}
	n := root
	if n.slots[0].leaf == nil || n.slots[0].leaf.next == nil || n.slots[0].leaf.next.next == nil {
		t.Fatal("the keys do not share a chain")
	}
	if root, _ = chained(root, "b", 9, h); !root.slots[0].leaf.has("b") || root.slots[0].leaf.value != 9 {
		t.Error("a chained key was not replaced")
	}
	root, removed := root.delete(nil, h, "b")
	if !removed || root.slots[0].leaf.has("b") || !root.slots[0].leaf.has("a") || !root.slots[0].leaf.has("c") {
		t.Error("a chained key was not removed alone")
	}
}

func chained(root *pnode[int], key string, value int, h uint64) (*pnode[int], bool) {
	return root.set(nil, h, pmapLevels-1, &pleaf[int]{key: key, value: value})
}
