// Package rate counts requests under the rate limits of rules, and says which are too many. Windows move on with the
// clock in elevenths: within no time as long as a window are more requests admitted than its limit, and a request counts
// for at most an eleventh of the window longer than that. Counting has no lock that all requests share and allocates
// nothing. The table is of the process and outlives every change of the configuration: counters belong to a rule and a
// site by their ids.
//
// When the table is full the lightest of eight goes, but never one that is being limited. Where all eight are, requests of
// clients that are new there count together, a 256th of them in one place: an attack from a million addresses makes the
// limit coarser for newcomers and never lifts it.
//
// No more than the limit within any time as long as a window; nobody waits longer than the window and an eleventh of
// it. Refused requests are not counted, and one that is refused by one of its limits counts under none. Counters belong
// to a rule, its key, its window and a site by their ids, so that they outlive every change of the configuration,
// another limit too. 64 MiB (`rate_limit_mib` of the app), room for a million addresses; when it is full the lightest
// of eight goes, never one that is being limited, and where all eight are, newcomers count together.
package rate
