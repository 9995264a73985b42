package cc

import (
	"encoding/binary"
	"net/netip"
)

// network is whom a client is counted as: its IPv4 address, or the /64 of its IPv6 address.
type network struct {
	bits uint64
	is4  bool
}

// networkOf returns the network of an address; IPv4-mapped ones count as IPv4.
func networkOf(addr netip.Addr) network {
	if addr.Is4() || addr.Is4In6() {
		raw := addr.As4()
		return network{uint64(binary.BigEndian.Uint32(raw[:])), true}
	}
	raw := addr.As16()
	return network{binary.BigEndian.Uint64(raw[:8]), false}
}

func (n network) prefix() netip.Prefix {
	if n.is4 {
		var raw [4]byte
		binary.BigEndian.PutUint32(raw[:], uint32(n.bits))
		return netip.PrefixFrom(netip.AddrFrom4(raw), 32)
	}
	var raw [16]byte
	binary.BigEndian.PutUint64(raw[:8], n.bits)
	return netip.PrefixFrom(netip.AddrFrom16(raw), 64)
}

// String is how reports name it: an IPv4 address, or an IPv6 /64.
func (n network) String() string {
	if p := n.prefix(); n.is4 {
		return p.Addr().String()
	} else {
		return p.String()
	}
}

// countable says whether an address can be banned at all: no loopback, unspecified or link-local one can.
func countable(addr netip.Addr) bool {
	if !addr.IsValid() {
		return false
	}
	if addr.Is4In6() {
		addr = addr.Unmap()
	}
	if addr.Is4() {
		first := addr.As4()[0]
		return first != 0 && first != 127
	}
	// ::/64 holds both :: and ::1.
	return networkOf(addr).bits != 0 && !addr.IsLinkLocalUnicast()
}
