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
