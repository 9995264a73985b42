// Package core holds what an edge node serves: the sites, their host names and the settings of its cluster. It has no
// knowledge of features. A feature registers kinds of entries, parts of sites, components, capabilities and calls here.
//
// A process has one Core, made before a listener opens. It survives each load of a Caddy configuration.
//
// Reading: one writer at a time builds the next tables and publishes them with one pointer. A reader loads the pointer
// and never locks. Published tables never change; counters are kept beside them.
//
// Applying a change:
//   - Every entry is compiled before one takes effect.
//   - An entry that does not compile keeps its previous version and is reported as failed.
//   - An entry that needs a missing capability also keeps its previous version and is reported as lacking, not as failed.
//     Its emergency switches are applied (SwitchesOf).
//   - A kind that must keep requests out (KindOptions.Guards, GuardsOf) closes its site, or all sites, if its entry fails
//     and no previous version compiled: 503 policy-unavailable.
//   - A change of one kind of one site changes one slot, at any number of sites.
//
// Core never writes to disk.
package core
