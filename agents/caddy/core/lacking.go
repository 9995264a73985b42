package core

import (
	"crypto/sha256"

	"google.golang.org/protobuf/proto"

	"edge.svc/caddy/exchange"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
)

// An entry that needs a capability this node lacks is called lacking: its former version keeps serving, and what comes beside it
// takes effect. Lacking is not failed. Without a former version
//
//	the node served the site before the entry came     the site goes on without the entry
//	it did not, or the entry is the site's own         the site answers nothing of its own
//
// The agent knows which of the two it is, because it sees entries in the order in which they come: it marks the key.

// SwitchesOf names the emergency switches of a kind of parts of sites. They are taken over even from an entry that is
// lacking or does not compile: merge returns the version that runs with the switches of the one received. running is nil
// when none runs; nil is returned where none is to run. Call it from init, after the parts of the kind.
func SwitchesOf[M interface {
	comparable
	proto.Message
}](kind string, merge func(running, received M) M) {
	kindNamed(kind).switches = func(running, received proto.Message) proto.Message {
		var base, none M
		if running != nil {
			base = running.(M)
		}
		if next := merge(base, received.(M)); next != none {
			return next
		}
		return nil
	}
}

func (e *Edit) markLacking(key entryKey) {
	e.state.lacking[key] = false
	kinds := e.state.lackingOf[key.id]
	if kinds == nil {
		kinds = map[string]struct{}{}
		e.state.lackingOf[key.id] = kinds
	}
	kinds[key.kind] = struct{}{}
	e.judge(key.id)
}

// letGo ends that a key is lacking. Every change of a site passes here, so what was said of its lacking entries is judged anew.
func (e *Edit) letGo(key entryKey) {
	kinds, ok := e.state.lackingOf[key.id]
	if !ok {
		return
	}
	e.judge(key.id)
	delete(e.state.lacking, key)
	delete(kinds, key.kind)
	if len(kinds) == 0 {
		delete(e.state.lackingOf, key.id)
	}
}

func (e *Edit) judge(id string) {
	if e.judged == nil {
		e.judged = map[string]struct{}{}
	}
	e.judged[id] = struct{}{}
}

func (e *Edit) markUnserved(keys []*configv1.EntryKey) {
	for _, k := range keys {
		key := entryKey{k.GetKind(), k.GetId()}
		if _, lacking := e.state.lacking[key]; lacking {
			e.state.lacking[key] = true
		}
	}
}

// takeSwitches runs the emergency switches of an entry that is not taken over itself.
func (e *Edit) takeSwitches(key entryKey, body []byte) {
	k := kinds[key.kind]
	if k == nil || k.switches == nil || key.id == "" {
		return
	}
	newest, err := k.message(body)
	if err != nil {
		return
	}
	entries := e.state.waiting[key.id]
	old := PlanOfSite(e.Tables, key.id)
	if old != nil {
		entries = siteOf(old).entries
	}
	known := entryOf(entries, k)
	base := known.version()
	var running proto.Message
	if base != nil {
		// What runs was decoded before.
		if running, err = k.message(base.body); err != nil {
			return
		}
	}
	next := k.switches(running, newest)
	switch {
	case next == nil && known != nil:
		e.removePart(k, key.id)
	case next == nil && k.name == siteKind:
		_, lacking := e.state.lacking[key]
		if lacking {
			e.announce(key.id, newest.(*configv1.Site), old)
		}
	case next != nil:
		e.putSwitched(k, key.id, base, running, next)
	}
}

// putSwitched runs a version made of base, or of none.
func (e *Edit) putSwitched(k *kind, id string, base *received, running, next proto.Message) {
	entry := partEntry{kind: k}
	if base != nil && proto.Equal(running, next) {
		entry.hash, entry.body = base.hash, base.body
	} else {
		body, err := proto.MarshalOptions{Deterministic: true}.Marshal(next)
		if err != nil {
			return
		}
		entry.hash, entry.body, entry.from = sha256.Sum256(body), body, base
		if base == nil {
			entry.from = &received{none: true}
		}
	}
	read, err := k.check(e.Core, id, next)
	if err != nil {
		return
	}
	e.putPart(id, entry, read, nil)
}

// announce puts a site whose own entry is lacking and of which there is no former version in its place, without anything of
// it but the names this node understands: visitors are told that it cannot be served.
func (e *Edit) announce(id string, message *configv1.Site, old *exchange.Plan) {
	read := new(site)
	all := message.GetDomains()
	known := proto.CloneOf(message)
	known.Domains = nil
	for _, domain := range all {
		known.Domains = []*configv1.Domain{domain}
		one := new(site)
		if one.read(known) == nil {
			read.names, read.patterns = append(read.names, one.names...), append(read.patterns, one.patterns...)
		}
	}
	read.plan.Disabled, read.createdAtMs = message.GetDisabled(), message.GetCreatedAtMs()
	number, entries := e.takeOver(id, old)
	next := &site{core: e.Core, createdAtMs: read.createdAtMs, names: read.names, patterns: read.patterns, entries: entries}
	next.plan.Init(id, number, read.plan.Disabled, next, old)
	next.plan.Unserved = true
	e.placeNamed(next, old)
}

// settleServed makes the sites that this edit touched answer, or not, as their lacking and failing entries say.
func (e *Edit) settleServed() {
	e.settleGuards()
	for id := range e.judged {
		plan := PlanOfSite(e.Tables, id)
		if plan == nil {
			continue
		}
		unserved, unguarded := false, e.isUnguarded(plan)
		for kind := range e.state.lackingOf[id] {
			unserved = unserved || e.isUnserved(plan, entryKey{kind, id})
		}
		if plan.Unserved == unserved && plan.Unguarded == unguarded {
			continue
		}
		known := siteOf(plan)
		next := &site{core: e.Core, createdAtMs: known.createdAtMs, names: known.names, patterns: known.patterns, entries: known.entries}
		next.plan.Init(id, plan.Number, plan.Disabled, next, plan)
		next.plan.Unserved, next.plan.Unguarded = unserved, unguarded
		next.plan.Inherit(plan, func(int) bool { return true })
		e.Tables.SetPlan(plan.Number, &next.plan)
	}
}

// isUnserved says whether a lacking entry keeps its site from answering.
func (e *Edit) isUnserved(plan *exchange.Plan, key entryKey) bool {
	k := kinds[key.kind]
	var base *received
	if k != nil {
		base = entryOf(siteOf(plan).entries, k).version()
	}
	if key.kind != siteKind {
		return base == nil && e.state.lacking[key]
	}
	if base == nil {
		return true
	}
	// A site that was switched off has nothing to serve when it is switched on.
	m, err := k.message(base.body)
	return err != nil || m.(*configv1.Site).GetDisabled() && !plan.Disabled
}
