// Package core holds what an edge node serves: the sites, their hosts and the settings of its cluster. There is one
// Core in a process; it survives every load of a Caddy configuration, and nothing about sites goes through one. It knows
// no feature: features register kinds of entries, parts of sites, components, capabilities and calls with it.
//
// One writer at a time makes the next tables and publishes them with one store of a pointer. Readers never lock.
//
// One `Core` in a process, made before any listener opens. Readers load one pointer and never lock; what serves is
// never written, and what is counted lies beside it. Everything of a change is compiled before anything of it takes
// effect; an entry that does not compile keeps its previous version and is reported; one that needs a capability this
// node lacks is held the same way and is no failure, and its emergency switches are taken all the same (`SwitchesOf`).
// A kind that keeps out what must not pass (`KindOptions.Guards`, `GuardsOf` for some of its entries) closes its site,
// or all of them, where its entry fails and no version before it compiled: 503 `policy-unavailable`. A change of one
// kind of one site touches one slot, among a hundred sites and among a hundred thousand. It knows no feature. Never
// writes to disk.
package core
