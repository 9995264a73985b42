package pmap

import (
	"edge.svc/caddy/exchange"
	"fmt"
	"math/rand/v2"
	"testing"
)

// Any run of changes gives what a plain map gives, and maps published before stay what they were.
func TestPersistentMapBehavesAsAMap(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var m Map[int]
	model := map[string]int{}
	type version struct {
		m     Map[int]
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
				m = m.Delete(e, key)
				delete(model, key)
			} else {
				value := random.IntN(1000)
				m = m.Set(e, key, value)
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
		m = m.Delete(nil, key)
	}
	if m.size != 0 || m.root != nil {
		t.Errorf("%d entries are left of none", m.size)
	}
}

func compareMaps(t *testing.T, version int, m Map[int], model map[string]int) {
	t.Helper()
	if m.size != len(model) {
		t.Fatalf("version %d: size %d, want %d", version, m.size, len(model))
	}
	for key := range 600 {
		want, wantOK := model[fmt.Sprint(key)]
		if got, ok := m.Get(fmt.Sprint(key)); ok != wantOK || got != want {
			t.Fatalf("version %d: %d is %d %v, want %d %v", version, key, got, ok, want, wantOK)
		}
	}
	seen := 0
	for key, value := range m.All {
		if model[key] != value {
			t.Fatalf("version %d: %s is %d", version, key, value)
		}
		seen++
	}
	if seen != len(model) {
		t.Fatalf("version %d: walked %d of %d", version, seen, len(model))
	}
}

// Keys whose hashes agree to the last level share a bucket.
func TestPersistentMapWithEqualHashes(t *testing.T) {
	const h = 0
	var root *node[int]
	set := func(key string, value int) bool {
		root = root.ownRoot(nil)
		return root.set(nil, h, levels, entry[int]{key, value})
	}
	for i, key := range []string{"a", "b", "c"} {
		if !set(key, i) {
			t.Fatalf("%s was not new", key)
		}
	}
	before := root
	if !root.isBucket() || len(root.leaves) != 3 {
		t.Fatal("the keys do not share a bucket")
	}
	if set("b", 9) || root.leaves[1] != (entry[int]{"b", 9}) {
		t.Error("a key of the bucket was not replaced")
	}
	root = root.ownRoot(nil)
	root.delete(nil, h, "b")
	if len(root.leaves) != 2 || root.inBucket("b") >= 0 || root.inBucket("a") < 0 || root.inBucket("c") < 0 {
		t.Error("a key of the bucket was not removed alone")
	}
	if before.leaves[1].value != 1 {
		t.Error("an older version was changed")
	}
}
