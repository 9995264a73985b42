package lists

import (
	"net/netip"

	"github.com/gaissmai/bart"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
)

// Edits of more prefixes than this copy a table once instead of deriving one after the other.
const bulkPrefixes = 1500

// networks is a set of networks: how many times each is in it.
type networks struct {
	bart.Table[uint32]
	// Who made it, and may change it in place.
	owner *exchange.Owner
}

func (n *networks) has(addr netip.Addr) bool { return n.Size() > 0 && n.Contains(addr) }

// changed is the set without some networks and with others. What others may see is never changed.
func (n *networks) changed(e *core.Edit, removed, added []netip.Prefix) *networks {
	if changes := len(removed) + len(added); changes > 0 && n.owner != e.Owner() && (changes > bulkPrefixes || e.Whole()) {
		n = &networks{*n.Clone(), e.Owner()}
	}
	own := n.owner == e.Owner()
	for _, p := range removed {
		n = n.count(own, p, -1)
	}
	for _, p := range added {
		n = n.count(own, p, +1)
	}
	return n
}

func (n *networks) count(own bool, p netip.Prefix, by int) *networks {
	count, _ := n.Get(p)
	count += uint32(by)
	switch {
	case own && count == 0:
		n.Delete(p)
	case own:
		n.Insert(p, count)
	case count == 0:
		return &networks{Table: *n.DeletePersist(p)}
	default:
		return &networks{Table: *n.InsertPersist(p, count)}
	}
	return n
}
