// Package cc counts requests and answers floods (CC mitigation): it raises the challenge level of a site or of one
// path while a threshold is exceeded, lowers it again when all is calm, and bans clients that alone ask too much.
//
// Counting is spread so that no two processors wait for each other: clients live in 256 shards, and what is counted for
// a site in up to eight stripes. Once a second one goroutine turns counts into levels, for active sites only, and
// publishes them for requests to read. All tables are bounded; a full one gives up the lightest entry it meets.
//
// The Guard knows nothing of configuration: whoever calls it passes the thresholds.
package cc

import (
	"time"

	"edge.svc/caddy/exchange"
)

// Level is how hard visitors of a site or path are challenged.
type Level = exchange.Level

// Thresholds says when CC mitigation does what. A rate or percentage of 0 turns its trigger off.
type Thresholds struct {
	MaxLevel Level
	// HighPow replaces the captcha by the high-difficulty proof of work.
	HighPow bool
	Window  time.Duration
	// Requests in a second.
	SiteQPS, URLQPS, IPQPS  uint32
	IPBan                   time.Duration
	OriginErrorPercent      uint32
	OriginErrorMinRequests  uint32
	EscalateAfter, Cooldown time.Duration
}
