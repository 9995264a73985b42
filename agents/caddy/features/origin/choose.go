package origin

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	configv1 "edge.svc/caddy/gen/svc/config/v1"
)

// candidates lists the origins a request tries first, best first, into list: the first tier that has any of healthy
// primaries, healthy backups and, when all are down, everything. All have the scheme of the first, because a request
// must not change between http and https on its way.
//
// pinned is the origin that the visitor is kept on, -1 for none: it comes first where it is one of those to choose from. A
// visitor who is kept takes no turn from others.
func (g *group) candidates(list []int32, key string, i *instead, pinned int32) []int32 {
	list = list[:0]
	if len(g.origins) == 1 {
		return append(list, 0)
	}
	list = g.tier(list, i)
	switch {
	case pinned < 0 || !g.first(list, pinned):
		g.order(list, key)
	case g.pool.policy != configv1.BalancePolicy_BALANCE_POLICY_ROUND_ROBIN:
		g.order(list[1:], key)
	}
	return g.ofOneScheme(list)
}

// first puts an origin at the head of those that a tier is chosen from; it reports false where it is none of them.
func (g *group) first(list []int32, pinned int32) bool {
	at := slices.Index(g.primaries(list), pinned)
	if at < 0 {
		return false
	}
	copy(list[1:], list[:at])
	list[0] = pinned
	return true
}

// order puts the origins of a tier in the order of the policy.
func (g *group) order(list []int32, key string) {
	switch g.pool.policy {
	case configv1.BalancePolicy_BALANCE_POLICY_ROUND_ROBIN:
		g.smoothRoundRobin(list)
	case configv1.BalancePolicy_BALANCE_POLICY_CONSISTENT_HASH:
		g.byHash(list, key)
	default:
		g.weightedRandom(list)
	}
}

func (g *group) ofOneScheme(list []int32) []int32 {
	if len(list) == 0 {
		return list
	}
	secure := g.origins[list[0]].dial.tls != plain
	return slices.DeleteFunc(list, func(i int32) bool { return (g.origins[i].dial.tls != plain) != secure })
}

// withBackups adds to a list of primaries the backups that are up, for a request that no primary could serve.
func (g *group) withBackups(list []int32, key string, instead *instead) []int32 {
	tried := len(list)
	if tried == 0 || g.origins[list[tried-1]].backup {
		return list
	}
	now := g.pool.state.now()
	for i := range g.origins {
		if o := &g.origins[i]; o.backup && !g.pool.state.down(instead.healthOf(o), now) {
			list = append(list, int32(i))
		}
	}
	g.order(list[tried:], key)
	return g.ofOneScheme(list)
}

func (g *group) tier(list []int32, instead *instead) []int32 {
	allUp := g.pool.state.failed.Load() == 0
	var now time.Time
	if !allUp {
		now = g.pool.state.now()
	}
	for _, backups := range []bool{false, true} {
		for i := range g.origins {
			if o := &g.origins[i]; o.backup == backups && (allUp || !g.pool.state.down(instead.healthOf(o), now)) {
				list = append(list, int32(i))
			}
		}
		if len(list) > 0 {
			return list
		}
	}
	// Primaries first: the ways to choose below keep the two apart.
	for _, backups := range []bool{false, true} {
		for i := range g.origins {
			if g.origins[i].backup == backups {
				list = append(list, int32(i))
			}
		}
	}
	return list
}

// primaries returns the part of a tier that is chosen from first; only when everything is down a tier has both kinds.
func (g *group) primaries(list []int32) []int32 {
	if len(list) == 0 {
		return list
	}
	first := g.origins[list[0]].backup
	for i, o := range list {
		if g.origins[o].backup != first {
			return list[:i]
		}
	}
	return list
}

// weightedRandom draws without replacement, each origin with its weight's share of what is left.
func (g *group) weightedRandom(list []int32) {
	for rest := g.primaries(list); len(rest) > 1; rest = rest[1:] {
		total := int32(0)
		for _, o := range rest {
			total += g.origins[o].weight
		}
		drawn := rand.Int32N(total)
		for i, o := range rest {
			if drawn -= g.origins[o].weight; drawn < 0 {
				rest[0], rest[i] = rest[i], rest[0]
				break
			}
		}
	}
}

// smoothRoundRobin gives each origin its turns evenly spread; the others follow in the order of the list.
func (g *group) smoothRoundRobin(list []int32) {
	group := g.primaries(list)
	if len(group) < 2 {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.turns == nil {
		g.turns = make([]int32, len(g.origins))
	}
	total, best := int32(0), 0
	for i, o := range group {
		g.turns[o] += g.origins[o].weight
		total += g.origins[o].weight
		if g.turns[o] > g.turns[group[best]] {
			best = i
		}
	}
	g.turns[group[best]] -= total
	chosen := group[best]
	// The rest keeps its order, starting after the chosen one.
	order := slices.Concat(group[best+1:], group[:best])
	group[0] = chosen
	copy(group[1:], order)
}

// byHash orders origins by weighted rendezvous hashing: like a ring, a key moves only when its origin goes, but shares
// are exact and nothing is stored per site.
func (g *group) byHash(list []int32, key string) {
	group := g.primaries(list)
	h := hashString(key)
	score := func(o int32) float64 {
		u := (float64(mix(h^g.origins[o].hash)>>11) + 0.5) / (1 << 53)
		return -math.Log(u) / float64(g.origins[o].weight)
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
