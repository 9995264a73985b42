// Package cc counts requests and responds to floods (CC mitigation, HTTP flood protection). It raises the challenge level of
// a site or of one path while a threshold is exceeded, lowers it when the flood is over, and bans single clients that ask
// too much.
//
// Counting takes no lock that all requests share: clients live in 256 shards, and counters of a site in up to eight stripes.
// Once a second one goroutine turns counts into levels, for active sites only, and publishes them for requests to read.
// Every table is bounded and drops the lightest entry it meets when it is full. A site without a policy costs nothing.
//
// The Guard knows no configuration: its callers pass the thresholds.
package cc
