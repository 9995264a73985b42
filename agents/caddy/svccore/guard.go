package svccore

import "edge.svc/caddy/exchange"

// A guard is an entry without which the door is open. While the newest version of one does not compile the former goes on,
// as with any entry; where there is none
//
//	the entry is a site's         the site answers nothing of its own
//	the entry is the cluster's    no site does
//
// A guard that is held does not fail.

// unguarded says that a guard of the cluster is missing.
var unguarded = exchange.NewSetting("guards of the cluster are missing", false)

// Guarded reports whether all that guards a site is there, of what should be.
func Guarded(t *exchange.Tables, p *exchange.Plan) bool { return !p.Unguarded && !unguarded.Of(t) }

// judgeGuarded has a site judged of which a guard fails.
func (e *Edit) judgeGuarded(id string) {
	for _, k := range guards {
		if e.state.failed[entryKey{k.name, id}] != nil {
			e.judge(id)
		}
	}
}

// isUnguarded says whether a site lacks a guard: its newest version fails, and no other was ever good.
func (e *Edit) isUnguarded(plan *exchange.Plan) bool {
	for _, k := range guards {
		if k.partOfSites() && e.state.failed[entryKey{k.name, plan.SiteID}] != nil && entryOf(siteOf(plan).entries, k).version() == nil {
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
		missing = missing || e.state.failed[key] != nil && !runs
	}
	if missing != unguarded.Of(e.Tables) {
		unguarded.Set(e.Tables, missing)
	}
}
