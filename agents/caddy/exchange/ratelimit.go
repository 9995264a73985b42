package exchange

import (
	"encoding/binary"
	"hash/maphash"
	"net/netip"
	"time"
)

// RateLimits counts requests under the rate limits of rules.
type RateLimits interface {
	// Admit counts a request of a site under each of the limits and returns -1. Where it is over one of them it counts
	// under none, and the index of the first it is over is returned. It allocates nothing.
	Admit(p *Plan, due []RateDue) int
}

// RateBy says by what a rate limit tells requests apart.
type RateBy uint8

// What requests are told apart by: the client's address, or a text.
const (
	RateByAddress RateBy = iota + 1
	RateByHost
	RateByJA4
	RateByHeader
)

// RateRule is one rate limit, for as long as its rule is compiled. Make it with NewRateRule.
type RateRule struct {
	// Limit is how many requests a window takes.
	Limit  uint32
	Window time.Duration
	// Counter stands for what chooses the counters of the rule besides the site: its scope, its id, what it counts by
	// and its window. It is another one in each process.
	Counter uint64
}

// RateDue is a limit that a request falls under, and whom it counts for.
type RateDue struct {
	Rule *RateRule
	Key  uint64
}

// Secret, so that nobody can choose values that count together.
var rateSeed = maphash.MakeSeed()

// NewRateRule compiles the limit of a rule of the platform or of a site. header is the field to count by, in lower case,
// "" for everything else. A rule that comes with another limit goes on with its counters, one with another key or window
// begins anew.
func NewRateRule(platform bool, id string, by RateBy, header string, limit, windowSeconds uint32) *RateRule {
	var h maphash.Hash
	h.SetSeed(rateSeed)
	scope := byte(0)
	if platform {
		scope = 1
	}
	head := [6]byte{scope, byte(by)}
	binary.LittleEndian.PutUint32(head[2:], windowSeconds)
	// Never fails.
	_, _ = h.Write(head[:])
	_, _ = h.WriteString(id)
	_ = h.WriteByte(0)
	_, _ = h.WriteString(header)
	return &RateRule{Limit: limit, Window: time.Duration(windowSeconds) * time.Second, Counter: h.Sum64()}
}

// DueOfAddress has a request count for an address: an IPv4 address, also one in an IPv6 address, or the /64 of an IPv6
// address.
func (r *RateRule) DueOfAddress(addr netip.Addr) RateDue {
	var raw [9]byte
	if addr = addr.Unmap(); addr.Is4() {
		raw[0] = 4
		v4 := addr.As4()
		copy(raw[1:], v4[:])
	} else {
		raw[0] = 6
		v6 := addr.As16()
		copy(raw[1:], v6[:8])
	}
	return RateDue{r, maphash.Bytes(rateSeed, raw[:])}
}

// DueOfText has a request count for a text; those that lack it have "" and count together.
func (r *RateRule) DueOfText(text string) RateDue { return RateDue{r, maphash.String(rateSeed, text)} }

// SiteKey stands for a site among the counters of rules.
func SiteKey(p *Plan) uint64 { return maphash.String(rateSeed, p.SiteID) }
