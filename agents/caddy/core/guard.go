package core

import (
	"slices"

	"google.golang.org/protobuf/proto"

	"edge.svc/caddy/exchange"
)

// A guard is an entry without which the door is open. While the newest version of one does not compile the former goes on,
// as with any entry; where there is none
//
//	the entry is a site's         the site answers nothing of its own
//	the entry is the cluster's    no site does
//
// A guard that is lacking does not fail.

// unguarded says that a guard of the cluster is missing.
var unguarded = exchange.NewSetting("guards of the cluster are missing", false)

// Guarded reports whether all that guards a site is there, of what should be.
func Guarded(t *exchange.Tables, p *exchange.Plan) bool { return !p.Unguarded && !unguarded.Of(t) }

// GuardsOf names the entries of a guarding kind that guard, where not all of them do. One that cannot be read may be one of
// them. Call it from init, after the parts of the kind.
func GuardsOf[M proto.Message](kind string, guards func(M) bool) {
	ConfigureKind(kind, KindOptions{Guards: true})
	kindNamed(kind).guards = func(m proto.Message) bool { return guards(m.(M)) }
}

// guarding reports whether an entry that does not compile guards something.
func guarding(entry compiled) bool {
	k := kinds[entry.key.kind]
	switch {
	case k == nil || !slices.Contains(guards, k):
		return false
	case k.guards == nil:
		return true
	}
	m, err := k.message(entry.body)
	return err != nil || k.guards(m)
}

// judgeGuarded has a site judged of which a guard fails.
func (e *Edit) judgeGuarded(id string) {
	for _, k := range guards {
		if f := e.state.failed[entryKey{k.name, id}]; f != nil && f.guards {
			e.judge(id)
		}
	}
}

// isUnguarded says whether a site lacks a guard: its newest version fails, and no other was ever good.
func (e *Edit) isUnguarded(plan *exchange.Plan) bool {
	for _, k := range guards {
		if !k.partOfSites() {
			continue
		}
		f := e.state.failed[entryKey{k.name, plan.SiteID}]
		if f != nil && f.guards && entryOf(siteOf(plan).entries, k).version() == nil {
			return true
		}
	}
	return false
}

// settleGuards finds out whether the cluster lacks a guard.
func (e *Edit) settleGuards() {
	missing := false
	for _, k := range guards {
		if k.partOfSites() {
			continue
		}
		key := entryKey{kind: k.name}
		_, runs := e.state.running[key]
		f := e.state.failed[key]
		missing = missing || f != nil && f.guards && !runs
	}
	if missing != unguarded.Of(e.Tables) {
		unguarded.Set(e.Tables, missing)
	}
}
