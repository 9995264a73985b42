package svcorigin

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	configv1 "edge.svc/caddy/gen/svc/config/v1"
)

// candidates lists the origins a request may try, best first, into list: the first tier that has any of healthy
// primaries, healthy backups and, when all are down, everything. All have the scheme of the first, because a request
// must not change between http and https on its way.
func (p *Pool) candidates(list []int32, key string) []int32 {
	list = list[:0]
	if len(p.origins) == 1 {
		return append(list, 0)
	}
	list = p.tier(list)
	switch p.policy {
	case configv1.BalancePolicy_BALANCE_POLICY_ROUND_ROBIN:
		p.smoothRoundRobin(list)
	case configv1.BalancePolicy_BALANCE_POLICY_CONSISTENT_HASH:
		p.byHash(list, key)
	default:
		p.weightedRandom(list)
	}
	if len(list) == 0 {
		return list
	}
	secure := p.origins[list[0]].dial.tls != plain
	return slices.DeleteFunc(list, func(i int32) bool { return (p.origins[i].dial.tls != plain) != secure })
}

func (p *Pool) tier(list []int32) []int32 {
	allUp := p.state.failed.Load() == 0
	var now time.Time
	if !allUp {
		now = p.state.now()
	}
	for _, backups := range []bool{false, true} {
		for i := range p.origins {
			if o := &p.origins[i]; o.backup == backups && (allUp || !p.state.down(o.health, now)) {
				list = append(list, int32(i))
			}
		}
		if len(list) > 0 {
			return list
		}
	}
	// Primaries first: the ways to choose below keep the two apart.
	for _, backups := range []bool{false, true} {
		for i := range p.origins {
			if p.origins[i].backup == backups {
				list = append(list, int32(i))
			}
		}
	}
	return list
}

// primaries returns the part of a tier that is chosen from first; only when everything is down a tier has both kinds.
func (p *Pool) primaries(list []int32) []int32 {
	if len(list) == 0 {
		return list
	}
	first := p.origins[list[0]].backup
	for i, o := range list {
		if p.origins[o].backup != first {
			return list[:i]
		}
	}
	return list
}

// weightedRandom draws without replacement, each origin with its weight's share of what is left.
func (p *Pool) weightedRandom(list []int32) {
	for rest := p.primaries(list); len(rest) > 1; rest = rest[1:] {
		total := int32(0)
		for _, o := range rest {
			total += p.origins[o].weight
		}
		drawn := rand.Int32N(total)
		for i, o := range rest {
			if drawn -= p.origins[o].weight; drawn < 0 {
				rest[0], rest[i] = rest[i], rest[0]
				break
			}
		}
	}
}

// smoothRoundRobin gives each origin its turns evenly spread; the others follow in the order of the list.
func (p *Pool) smoothRoundRobin(list []int32) {
	group := p.primaries(list)
	if len(group) < 2 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.turns == nil {
		p.turns = make([]int32, len(p.origins))
	}
	total, best := int32(0), 0
	for i, o := range group {
		p.turns[o] += p.origins[o].weight
		total += p.origins[o].weight
		if p.turns[o] > p.turns[group[best]] {
			best = i
		}
	}
	p.turns[group[best]] -= total
	chosen := group[best]
	// The rest keeps its order, starting after the chosen one.
	order := slices.Concat(group[best+1:], group[:best])
	group[0] = chosen
	copy(group[1:], order)
}

// byHash orders origins by weighted rendezvous hashing: like a ring, a key moves only when its origin goes, but shares
// are exact and nothing is stored per site.
func (p *Pool) byHash(list []int32, key string) {
	group := p.primaries(list)
	h := hashString(key)
	score := func(o int32) float64 {
		u := (float64(mix(h^p.origins[o].hash)>>11) + 0.5) / (1 << 53)
		return -math.Log(u) / float64(p.origins[o].weight)
	}
	slices.SortFunc(group, func(a, b int32) int { return cmp.Compare(score(a), score(b)) })
}

// hashString is FNV-1a: the same on every node, so that equal configurations choose equally.
func hashString(s string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return h
}

// mix spreads a hash over all bits.
func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}
