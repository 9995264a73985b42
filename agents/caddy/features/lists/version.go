package lists

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
)

// version is a list whose header and chunks agree. It is immutable.
type version struct {
	kind    configv1.IpListKind
	chunks  map[string]chunkOfList
	members *networks
}

// versions are the lists that count, by their ids.
type versions struct {
	lists map[string]*version
	// Lists of which a part is missing, and how many entries of how many there are.
	incomplete map[string][2]int
	// Who made it, and may change it in place.
	owner *exchange.Owner
}

var whole = exchange.NewSetting("IP lists", new(versions))

func versionOf(t *exchange.Tables, id string) *version { return whole.Of(t).lists[id] }

// Members tells rules who is on which list.
type Members struct{ core *core.Core }

var (
	_ = core.NewComponent("members of IP lists", func(c *core.Core) *Members { return &Members{c} })

	_ exchange.IPLists = (*Members)(nil)
)

// Contains is that of exchange.IPLists. It costs a look into a map and one into a trie, however long the lists are.
func (*Members) Contains(t *exchange.Tables, list string, addr netip.Addr) (in, known bool) {
	v := versionOf(t, list)
	if v == nil {
		return false, false
	}
	return v.members.has(addr), true
}

// FillStatus warns of lists of which a part is missing.
func (m *Members) FillStatus(status *edgev1.GetStatusResponse) {
	incomplete := whole.Of(m.core.Tables()).incomplete
	if len(incomplete) == 0 {
		return
	}
	first := slices.Min(slices.Collect(maps.Keys(incomplete)))
	status.Warnings = append(status.Warnings, fmt.Sprintf("%d IP lists are incomplete and count as they were before; the first is %q with %d of %d entries",
		len(incomplete), first, incomplete[first][0], incomplete[first][1]))
}

// version makes the list as it arrived one that counts; before is the one that counts so far, or nil.
func (l *ipList) version(e *core.Edit, before *version) *version {
	if before == nil {
		before = &version{members: new(networks)}
	}
	removed, added := changes(before.chunks, l.chunks)
	return &version{l.kind, maps.Clone(l.chunks), before.members.changed(e, removed, added)}
}

// setVersion makes a version of a list the one that counts; nil for none.
func setVersion(e *core.Edit, id string, next *version) {
	before := versionOf(e.Tables, id)
	if before == next {
		return
	}
	if before != nil && next != nil && before.kind == next.kind {
		removed, added := changes(before.chunks, next.chunks)
		changeUnion(e, next.kind, removed, added)
	} else {
		if before != nil {
			removed, _ := changes(before.chunks, nil)
			changeUnion(e, before.kind, removed, nil)
		}
		if next != nil {
			_, added := changes(nil, next.chunks)
			changeUnion(e, next.kind, nil, added)
		}
	}
	if all := ownVersions(e); next == nil {
		delete(all.lists, id)
	} else {
		all.lists[id] = next
	}
}

// setIncomplete notes that a part of a list is missing, or is not.
func setIncomplete(e *core.Edit, id string, l *ipList, incomplete bool) {
	if _, known := whole.Of(e.Tables).incomplete[id]; !known && !incomplete {
		return
	}
	if all := ownVersions(e); incomplete {
		all.incomplete[id] = [2]int{l.size(), l.count}
	} else {
		delete(all.incomplete, id)
	}
}

// ownVersions are those that the edit may change.
func ownVersions(e *core.Edit) *versions {
	all := whole.Of(e.Tables)
	if all.owner == e.Owner() {
		return all
	}
	own := &versions{map[string]*version{}, map[string][2]int{}, e.Owner()}
	maps.Copy(own.lists, all.lists)
	maps.Copy(own.incomplete, all.incomplete)
	whole.Set(e.Tables, own)
	return own
}

// changeUnion changes who is on the lists of a kind; lists that only rules read have no union.
func changeUnion(e *core.Edit, kind configv1.IpListKind, removed, added []netip.Prefix) {
	union := &allow
	switch kind {
	case configv1.IpListKind_IP_LIST_KIND_ALLOW:
	case configv1.IpListKind_IP_LIST_KIND_BLOCK:
		union = &block
	default:
		return
	}
	if now := union.Of(e.Tables); len(removed)+len(added) > 0 {
		union.Set(e.Tables, now.changed(e, removed, added))
	}
}

// changes names the prefixes that are in the one and not in the other. Both are sorted within their chunks.
func changes(before, after map[string]chunkOfList) (removed, added []netip.Prefix) {
	for id, old := range before {
		removed, added = difference(old.prefixes, after[id].prefixes, removed, added)
	}
	for id, next := range after {
		if _, known := before[id]; !known {
			added = append(added, next.prefixes...)
		}
	}
	return removed, added
}

func difference(before, after, removed, added []netip.Prefix) (_, _ []netip.Prefix) {
	i, j := 0, 0
	for i < len(before) || j < len(after) {
		switch {
		case j == len(after) || i < len(before) && before[i].Compare(after[j]) < 0:
			removed = append(removed, before[i])
			i++
		case i == len(before) || after[j].Compare(before[i]) < 0:
			added = append(added, after[j])
			j++
		default:
			i, j = i+1, j+1
		}
	}
	return removed, added
}
