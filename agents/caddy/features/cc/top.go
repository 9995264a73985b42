package cc

import (
	"cmp"
	"slices"

	nodev1 "edge.svc/caddy/gen/svc/node/v1"
)

const maxTop = 10

// heaviest names the heaviest clients and paths of the last seconds, approximately.
func (s *Site) heaviest() (ips, paths []*nodev1.Heavy) {
	byClient, byPath := map[network]uint64{}, map[string]uint64{}
	for i := range s.used.Load() {
		st := s.stripes[i].Load()
		st.mu.Lock()
		for j, n := range st.clients.keys {
			byClient[n] += uint64(st.clients.slots[j].all)
		}
		for j := range st.paths.slots {
			byPath[st.paths.slots[j].value] += uint64(st.paths.slots[j].all)
		}
		st.mu.Unlock()
	}
	return top(byClient, network.String), top(byPath, func(path string) string { return path })
}

func top[K comparable](counts map[K]uint64, name func(K) string) []*nodev1.Heavy {
	type counted struct {
		key K
		n   uint64
	}
	all := make([]counted, 0, len(counts))
	for key, n := range counts {
		if n > 0 {
			all = append(all, counted{key, n})
		}
	}
	slices.SortFunc(all, func(a, b counted) int { return cmp.Compare(b.n, a.n) })
	out := make([]*nodev1.Heavy, 0, min(len(all), maxTop))
	for _, c := range all[:min(len(all), maxTop)] {
		out = append(out, &nodev1.Heavy{Value: name(c.key), Count: c.n})
	}
	return out
}
