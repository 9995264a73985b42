// Package bans holds the bans of a node and says for every request whether its client address is banned.
//
// Lookups never lock: prefixes are in compressed tries behind atomic pointers, one for global bans and one for each site
// that has bans. One writer at a time derives the next trie and publishes a whole batch at once. Expiry uses the monotonic
// clock from the remaining time at arrival, so a stepped wall clock neither frees nor extends a ban. An expired ban never
// hits. An address in IPv4-mapped form is the IPv4 address.
package bans
