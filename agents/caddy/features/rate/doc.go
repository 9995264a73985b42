// Package rate counts requests under the rate limits of rules and says which exceed them.
//
// Within any time as long as a window, no more requests are admitted than its limit. Windows move with the clock in
// elevenths, so no client waits longer than the window and an eleventh of it. Refused requests are not counted. A request
// that one of its limits refuses counts under none.
//
// Counting allocates nothing and takes no lock that all requests share. The table belongs to the process. A counter belongs
// to a rule, its key, its window and a site by their ids, so it outlives every change of the configuration, even of the
// limit.
//
// The table has 64 MiB (`rate_limit_mib` of the app), room for a million addresses. When it is full, the lightest of eight
// counters is dropped, but never one that is being limited. Where all eight are limited, requests of new clients count
// together, a 256th of them in one place. An attack from a million addresses makes the limit coarser for new clients and
// never lifts it.
package rate
