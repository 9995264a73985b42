package lists

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
	"edge.svc/caddy/internal/address"
)

var (
	allow = exchange.NewSetting("allow lists", new(networks))
	block = exchange.NewSetting("block lists", new(networks))
	// What arrived of the lists, by their ids.
	arrived = core.NewWriterState(func() *arrivals {
		return &arrivals{lists: map[string]*ipList{}, touched: map[string]struct{}{}}
	})
)

func init() {
	core.RegisterKind(core.Kind{Name: "ip-list", Compile: compileIPList, Remove: removeIPList, Settle: settleLists})
	core.RegisterKind(core.Kind{Name: "ip-list-chunk", Compile: compileIPListChunk, Remove: removeIPListChunk})
	core.RegisterExemption(core.Exemption{
		Exempts: Allowed,
		Changed: func(before, after *exchange.Tables) bool { return allow.Of(before) != allow.Of(after) },
	})
}

// Allowed reports whether addr is on an allow list.
func Allowed(t *exchange.Tables, addr netip.Addr) bool { return allow.Of(t).has(addr) }

// onBlockList reports whether addr is on a block list, whatever allow lists say.
func onBlockList(t *exchange.Tables, addr netip.Addr) bool { return block.Of(t).has(addr) }

// arrivals is what the writer knows of lists.
type arrivals struct {
	lists map[string]*ipList
	// Ids of lists that changed since they were settled.
	touched map[string]struct{}
}

// ipList is what arrived of a list. Header and chunks come in any order.
type ipList struct {
	// Unspecified without a header.
	kind configv1.IpListKind
	// How many entries the header says that there are.
	count  int
	chunks map[string]chunkOfList
}

// chunkOfList is immutable.
type chunkOfList struct {
	// Sorted, each once.
	prefixes []netip.Prefix
	// The entries as they came; different ones may be one prefix.
	count int
}

func compileIPList(_ *core.Core, id string, body []byte) (core.Change, error) {
	if id == "" {
		return nil, errors.New("an IP list needs an id")
	}
	var message configv1.IpList
	if err := proto.Unmarshal(body, &message); err != nil {
		return nil, fmt.Errorf("the body is no valid IP list: %w", err)
	}
	kind := message.GetListKind()
	switch kind {
	case configv1.IpListKind_IP_LIST_KIND_COLLECTION, configv1.IpListKind_IP_LIST_KIND_ALLOW, configv1.IpListKind_IP_LIST_KIND_BLOCK:
	default:
		return nil, fmt.Errorf("IP list kind %d needs a capability that this node does not have", kind)
	}
	count := int(message.GetEntryCount())
	return func(e *core.Edit) {
		l := touch(e, id)
		l.kind, l.count = kind, count
	}, nil
}

func removeIPList(e *core.Edit, id string) {
	l := touch(e, id)
	l.kind, l.count = configv1.IpListKind_IP_LIST_KIND_UNSPECIFIED, 0
}

func compileIPListChunk(_ *core.Core, id string, body []byte) (core.Change, error) {
	var message configv1.IpListChunk
	if err := proto.Unmarshal(body, &message); err != nil {
		return nil, fmt.Errorf("the body is no valid chunk of an IP list: %w", err)
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
	next := chunkOfList{prefixes, len(message.GetCidrs())}
	return func(e *core.Edit) { touch(e, listID).chunks[id] = next }, nil
}

func removeIPListChunk(e *core.Edit, id string) {
	listID, _, _ := strings.Cut(id, "/")
	delete(touch(e, listID).chunks, id)
}

// touch answers what arrived of a list that is about to change.
func touch(e *core.Edit, id string) *ipList {
	all := arrived.Of(e)
	all.touched[id] = struct{}{}
	l := all.lists[id]
	if l == nil {
		l = &ipList{chunks: map[string]chunkOfList{}}
		all.lists[id] = l
	}
	return l
}

func (l *ipList) hasHeader() bool {
	return l.kind != configv1.IpListKind_IP_LIST_KIND_UNSPECIFIED
}

// size is how many entries arrived.
func (l *ipList) size() (n int) {
	for _, c := range l.chunks {
		n += c.count
	}
	return n
}

// settleLists makes the lists that changed count as they are now, those of which a part is missing as they were before.
func settleLists(e *core.Edit) {
	all := arrived.Of(e)
	for id := range all.touched {
		l := all.lists[id]
		gone := !l.hasHeader() && (!e.Whole() || len(l.chunks) == 0)
		complete := l.hasHeader() && l.size() == l.count
		switch {
		case gone:
			setVersion(e, id, nil)
		case complete:
			setVersion(e, id, l.version(e, versionOf(e.Tables, id)))
		case e.Whole() && versionOf(e.Tables, id) == nil:
			// What is read anew may lack what still serves.
			setVersion(e, id, versionOf(e.Serving(), id))
		}
		setIncomplete(e, id, l, !gone && !complete)
		if !l.hasHeader() && len(l.chunks) == 0 {
			delete(all.lists, id)
		}
	}
	clear(all.touched)
}
