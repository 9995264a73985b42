// Package bans holds the bans of a node and answers, for every request, whether a client address is banned.
//
// Readers never lock: prefixes live in compressed tries behind atomic pointers, one for global bans and one for each
// site that has any. One writer at a time derives the next trie and publishes it, a batch at once. Expiry is enforced
// against the monotonic clock from the remaining time at arrival, so a stepped wall clock neither frees nor extends a
// ban. An address in IPv4-mapped form is the IPv4 address.
//
// Lookups never lock; an expired ban never hits.
package bans
