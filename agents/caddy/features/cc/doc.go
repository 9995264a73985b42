// Package cc counts requests and answers floods (CC mitigation): it raises the challenge level of a site or of one
// path while a threshold is exceeded, lowers it again when all is calm, and bans clients that alone ask too much.
//
// Counting is spread so that no two processors wait for each other: clients live in 256 shards, and what is counted for
// a site in up to eight stripes. Once a second one goroutine turns counts into levels, for active sites only, and
// publishes them for requests to read. All tables are bounded; a full one gives up the lightest entry it meets.
//
// The Guard knows nothing of configuration: whoever calls it passes the thresholds.
//
// Counting has no lock that all requests share; every table is bounded and gives up its lightest entry; one goroutine
// evaluates, active sites only. A site without a policy costs nothing.
package cc
