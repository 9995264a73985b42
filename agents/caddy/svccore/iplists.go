package svccore

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/gaissmai/bart"
	"google.golang.org/protobuf/proto"

	configv1 "edge.svc/caddy/gen/svc/config/v1"
)

// Edits of more prefixes than this copy a table once instead of deriving one after the other.
const bulkPrefixes = 1500

// networks is the union of the lists of one kind: how many lists hold each prefix.
type networks = bart.Table[uint32]

// ipList is what the writer knows of a list. Header and chunks arrive in any order.
type ipList struct {
	kind   configv1.IpListKind
	chunks map[string][]netip.Prefix
}

func compileIPList(_ *Core, id string, body []byte) (apply, error) {
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
	return func(e *edit) { e.setListKind(id, kind) }, nil
}

func removeIPList(e *edit, id string) {
	e.setListKind(id, configv1.IpListKind_IP_LIST_KIND_UNSPECIFIED)
	e.dropEmptyList(id)
}

func compileIPListChunk(_ *Core, id string, body []byte) (apply, error) {
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
		p, err := parsePrefix(cidr)
		if err != nil {
			return nil, err
		}
		prefixes = append(prefixes, p)
	}
	slices.SortFunc(prefixes, netip.Prefix.Compare)
	prefixes = slices.Compact(prefixes)
	return func(e *edit) { e.setChunk(listID, id, prefixes) }, nil
}

func removeIPListChunk(e *edit, id string) {
	listID, _, _ := strings.Cut(id, "/")
	e.setChunk(listID, id, nil)
	e.dropEmptyList(listID)
}

func (e *edit) list(id string) *ipList {
	l := e.state.lists[id]
	if l == nil {
		l = &ipList{chunks: map[string][]netip.Prefix{}}
		e.state.lists[id] = l
	}
	return l
}

func (e *edit) dropEmptyList(id string) {
	if l := e.state.lists[id]; l != nil && len(l.chunks) == 0 && l.kind == configv1.IpListKind_IP_LIST_KIND_UNSPECIFIED {
		delete(e.state.lists, id)
	}
}

func (e *edit) setListKind(id string, kind configv1.IpListKind) {
	l := e.list(id)
	if l.kind == kind {
		return
	}
	total := 0
	for _, prefixes := range l.chunks {
		total += len(prefixes)
	}
	from, to := e.networks(l.kind, total), e.networks(kind, total)
	for _, prefixes := range l.chunks {
		for _, p := range prefixes {
			from.change(p, -1)
			to.change(p, +1)
		}
	}
	l.kind = kind
}

func (e *edit) setChunk(listID, chunkID string, next []netip.Prefix) {
	l := e.list(listID)
	before := l.chunks[chunkID]
	table := e.networks(l.kind, len(before)+len(next))
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

// networksEdit changes one of the published tables, or none for lists that only rules read.
type networksEdit struct {
	table **networks
	// The table belongs to this edit and may be changed in place.
	own *bool
}

func (e *edit) networks(kind configv1.IpListKind, changes int) networksEdit {
	var n networksEdit
	switch kind {
	case configv1.IpListKind_IP_LIST_KIND_ALLOW:
		n = networksEdit{&e.tables.allow, &e.ownAllow}
	case configv1.IpListKind_IP_LIST_KIND_BLOCK:
		n = networksEdit{&e.tables.block, &e.ownBlock}
	default:
		return n
	}
	if changes > bulkPrefixes && !*n.own {
		*n.table = (*n.table).Clone()
		*n.own = true
	}
	return n
}

func (n networksEdit) change(p netip.Prefix, by int) {
	if n.table == nil {
		return
	}
	t := *n.table
	count, _ := t.Get(p)
	count += uint32(by)
	switch {
	case *n.own && count == 0:
		t.Delete(p)
	case *n.own:
		t.Insert(p, count)
	case count == 0:
		*n.table = t.DeletePersist(p)
	default:
		*n.table = t.InsertPersist(p, count)
	}
}
