// Package svclists holds the address lists of the cluster: who is let in whatever else is said, and who is kept out.
package svclists

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/gaissmai/bart"
	"google.golang.org/protobuf/proto"

	"edge.svc/caddy/exchange"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
	"edge.svc/caddy/internal/address"
	"edge.svc/caddy/svccore"
)

// Edits of more prefixes than this copy a table once instead of deriving one after the other.
const bulkPrefixes = 1500

// networks is the union of the lists of one kind: how many lists hold each prefix.
type networks struct {
	bart.Table[uint32]
	// Who made it, and may change it in place.
	owner *exchange.Owner
}

var (
	allow = exchange.NewSetting("allow lists", new(networks))
	block = exchange.NewSetting("block lists", new(networks))
	// The lists by their ids.
	lists = svccore.NewWriterState(func() *map[string]*ipList { return &map[string]*ipList{} })
)

func init() {
	svccore.RegisterKind(svccore.Kind{Name: "ip-list", Compile: compileIPList, Remove: removeIPList})
	svccore.RegisterKind(svccore.Kind{Name: "ip-list-chunk", Compile: compileIPListChunk, Remove: removeIPListChunk})
	svccore.RegisterExemption(svccore.Exemption{
		Exempts: Allowed,
		Changed: func(before, after *exchange.Tables) bool { return allow.Of(before) != allow.Of(after) },
	})
}

// Allowed reports whether addr is on an allow list.
func Allowed(t *exchange.Tables, addr netip.Addr) bool { return allow.Of(t).has(addr) }

// onBlockList reports whether addr is on a block list, whatever allow lists say.
func onBlockList(t *exchange.Tables, addr netip.Addr) bool { return block.Of(t).has(addr) }

func (n *networks) has(addr netip.Addr) bool {
	if n.Size() == 0 {
		return false
	}
	_, ok := n.Lookup(addr)
	return ok
}

// ipList is what the writer knows of a list. Header and chunks arrive in any order.
type ipList struct {
	kind   configv1.IpListKind
	chunks map[string][]netip.Prefix
}

func compileIPList(_ *svccore.Core, id string, body []byte) (svccore.Change, error) {
	if id == "" {
		return nil, errors.New("an IP list needs an id")
	}
	var message configv1.IpList
	if err := proto.Unmarshal(body, &message); err != nil {
		return nil, fmt.Errorf("body is not an IP list: %w", err)
	}
	kind := message.GetListKind()
	switch kind {
	case configv1.IpListKind_IP_LIST_KIND_COLLECTION, configv1.IpListKind_IP_LIST_KIND_ALLOW, configv1.IpListKind_IP_LIST_KIND_BLOCK:
	default:
		return nil, fmt.Errorf("IP list kind %d needs a capability this node lacks", kind)
	}
	return func(e *svccore.Edit) { setListKind(e, id, kind) }, nil
}

func removeIPList(e *svccore.Edit, id string) {
	setListKind(e, id, configv1.IpListKind_IP_LIST_KIND_UNSPECIFIED)
	dropEmptyList(e, id)
}

func compileIPListChunk(_ *svccore.Core, id string, body []byte) (svccore.Change, error) {
	var message configv1.IpListChunk
	if err := proto.Unmarshal(body, &message); err != nil {
		return nil, fmt.Errorf("body is not a chunk of an IP list: %w", err)
	}
	listID, _, ok := strings.Cut(id, "/")
	if !ok || listID == "" || listID != message.GetListId() {
		return nil, fmt.Errorf("chunk %q does not belong to list %q", id, message.GetListId())
	}
	prefixes := make([]netip.Prefix, 0, len(message.GetCidrs()))
	for _, cidr := range message.GetCidrs() {
		p, err := address.ParseNetwork(cidr)
		if err != nil {
			return nil, err
		}
		prefixes = append(prefixes, p)
	}
	slices.SortFunc(prefixes, netip.Prefix.Compare)
	prefixes = slices.Compact(prefixes)
	return func(e *svccore.Edit) { setChunk(e, listID, id, prefixes) }, nil
}

func removeIPListChunk(e *svccore.Edit, id string) {
	listID, _, _ := strings.Cut(id, "/")
	setChunk(e, listID, id, nil)
	dropEmptyList(e, listID)
}

func listOf(e *svccore.Edit, id string) *ipList {
	l := (*lists.Of(e))[id]
	if l == nil {
		l = &ipList{chunks: map[string][]netip.Prefix{}}
		(*lists.Of(e))[id] = l
	}
	return l
}

func dropEmptyList(e *svccore.Edit, id string) {
	if l := (*lists.Of(e))[id]; l != nil && len(l.chunks) == 0 && l.kind == configv1.IpListKind_IP_LIST_KIND_UNSPECIFIED {
		delete(*lists.Of(e), id)
	}
}

func setListKind(e *svccore.Edit, id string, kind configv1.IpListKind) {
	l := listOf(e, id)
	if l.kind == kind {
		return
	}
	total := 0
	for _, prefixes := range l.chunks {
		total += len(prefixes)
	}
	from, to := networksOf(e, l.kind, total), networksOf(e, kind, total)
	for _, prefixes := range l.chunks {
		for _, p := range prefixes {
			from.change(p, -1)
			to.change(p, +1)
		}
	}
	l.kind = kind
}

func setChunk(e *svccore.Edit, listID, chunkID string, next []netip.Prefix) {
	l := listOf(e, listID)
	before := l.chunks[chunkID]
	table := networksOf(e, l.kind, len(before)+len(next))
	i, j := 0, 0
	for i < len(before) || j < len(next) {
		switch {
		case j == len(next) || i < len(before) && before[i].Compare(next[j]) < 0:
			table.change(before[i], -1)
			i++
		case i == len(before) || next[j].Compare(before[i]) < 0:
			table.change(next[j], +1)
			j++
		default:
			i, j = i+1, j+1
		}
	}
	if len(next) == 0 {
		delete(l.chunks, chunkID)
	} else {
		l.chunks[chunkID] = next
	}
}

// networksEdit changes the networks of one kind of lists, or none for lists that only rules read.
type networksEdit struct {
	edit    *svccore.Edit
	setting *exchange.Setting[*networks]
}

func networksOf(e *svccore.Edit, kind configv1.IpListKind, changes int) networksEdit {
	n := networksEdit{edit: e}
	switch kind {
	case configv1.IpListKind_IP_LIST_KIND_ALLOW:
		n.setting = &allow
	case configv1.IpListKind_IP_LIST_KIND_BLOCK:
		n.setting = &block
	default:
		return n
	}
	if now := n.setting.Of(e.Tables); now.owner != e.Owner() && (changes > bulkPrefixes || e.Whole()) {
		n.setting.Set(e.Tables, &networks{*now.Clone(), e.Owner()})
	}
	return n
}

func (n networksEdit) change(p netip.Prefix, by int) {
	if n.setting == nil {
		return
	}
	now := n.setting.Of(n.edit.Tables)
	own := now.owner == n.edit.Owner()
	count, _ := now.Get(p)
	count += uint32(by)
	switch {
	case own && count == 0:
		now.Delete(p)
	case own:
		now.Insert(p, count)
	case count == 0:
		n.setting.Set(n.edit.Tables, &networks{Table: *now.DeletePersist(p)})
	default:
		n.setting.Set(n.edit.Tables, &networks{Table: *now.InsertPersist(p, count)})
	}
}
