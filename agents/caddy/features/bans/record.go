package bans

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	nodev1 "edge.svc/caddy/gen/svc/node/v1"
)

// record is one ban. Readers reach it through a trie and read only its first group of fields, which never change; the
// second group belongs to the writer.
type record struct {
	id      string
	expires int64
	addr    [16]byte
	bits    uint8
	is4     bool
	source  Source

	state state
	// An own ban that was read from the agent's journal, not confirmed since.
	loaded  bool
	heapPos int32
	scope   *scope
	// The next ban of the same network, ending no later than this one. The trie holds the one that ends last, so a
	// reader never needs the others.
	next *record
}

type state uint8

const (
	statePlaced state = iota + 1
	// A manual ban that did not fit.
	stateWaiting
	stateGone
)

// Cost of a ban in bytes, its share of tries, filter, map and heap included, measured at 100,000 mixed bans. The text of
// the id comes on top.
const (
	recordBytes = 250
	scopeBytes  = 600
)

func (r *record) bytes() int64 { return recordBytes + int64(len(r.id)) }

func (r *record) prefix() netip.Prefix {
	if r.is4 {
		return netip.PrefixFrom(netip.AddrFrom4([4]byte(r.addr[:4])), int(r.bits))
	}
	return netip.PrefixFrom(netip.AddrFrom16(r.addr), int(r.bits))
}

func (r *record) setPrefix(p netip.Prefix) {
	a := p.Addr()
	r.bits, r.is4 = uint8(p.Bits()), a.Is4()
	if r.is4 {
		a4 := a.As4()
		copy(r.addr[:], a4[:])
	} else {
		r.addr = a.As16()
	}
}

func (r *record) hit(siteID string, now int64) Hit {
	return Hit{ID: r.id, SiteID: siteID, Prefix: r.prefix(), Source: r.source, Remaining: time.Duration(r.expires - now)}
}

var errNetwork = errors.New("the network cannot be banned")

// parseNetwork reads a CIDR in any spelling and returns the canonical prefix: host bits clear, IPv4-mapped as IPv4.
func parseNetwork(cidr string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(cidr)
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("%w: %w", errNetwork, err)
	}
	if a := p.Addr(); a.Is4In6() {
		if p.Bits() < 96 {
			return netip.Prefix{}, fmt.Errorf("%w: %s is shorter than the IPv4-mapped range", errNetwork, cidr)
		}
		p = netip.PrefixFrom(a.Unmap(), p.Bits()-96)
	}
	least := minBits6
	if p.Addr().Is4() {
		least = minBits4
	}
	if p.Bits() < least {
		return netip.Prefix{}, fmt.Errorf("%w: %s is shorter than /%d", errNetwork, cidr, least)
	}
	return p.Masked(), nil
}

// remaining is the time from now until a wall-clock instant, within 0 and maxLifetime.
func remaining(now time.Time, instantMs int64) time.Duration {
	nowMs := now.UnixMilli()
	switch {
	case instantMs <= nowMs:
		return 0
	case instantMs-nowMs >= maxLifetime.Milliseconds():
		return maxLifetime
	}
	return time.Duration(instantMs-nowMs) * time.Millisecond
}

// expiry turns a wall-clock expiry into one of the table's monotonic clock.
func (t *Table) expiry(now time.Time, expiresAtMs int64) int64 {
	return int64(now.Sub(t.start) + remaining(now, expiresAtMs))
}

func sourceOf(s nodev1.BanSource) Source {
	if s == nodev1.BanSource_BAN_SOURCE_AUTO {
		return SourceAuto
	}
	return SourceManual
}
