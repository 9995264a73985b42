// Package address reads addresses and networks as people and proxies write them.
package address

import (
	"fmt"
	"net/netip"
	"strings"
)

// ParseNetwork reads a CIDR or an address; IPv4-mapped ones come out as IPv4, host bits cleared.
func ParseNetwork(s string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(s)
	if err != nil {
		addr, addrErr := netip.ParseAddr(s)
		if addrErr != nil || addr.Zone() != "" {
			return netip.Prefix{}, fmt.Errorf("%q is not an address or CIDR", s)
		}
		p = netip.PrefixFrom(addr, addr.BitLen())
	}
	if p.Addr().Is4In6() {
		if p.Bits() < 96 {
			return netip.Prefix{}, fmt.Errorf("%q is larger than the IPv4-mapped range", s)
		}
		p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	return p.Masked(), nil
}

// ParseForwarded reads an address as proxies write it: plain, with a port, or in brackets.
func ParseForwarded(s string) (netip.Addr, bool) {
	s = strings.Trim(s, " \t")
	if s == "" {
		return netip.Addr{}, false
	}
	if s[0] == '[' {
		end := strings.IndexByte(s, ']')
		if end < 0 || !IsPort(s[end+1:]) {
			return netip.Addr{}, false
		}
		s = s[1:end]
	} else if colon := strings.IndexByte(s, ':'); colon >= 0 && colon == strings.LastIndexByte(s, ':') {
		if !IsPort(s[colon:]) {
			return netip.Addr{}, false
		}
		s = s[:colon]
	}
	addr, err := netip.ParseAddr(s)
	if err != nil {
		return netip.Addr{}, false
	}
	return addr.WithZone("").Unmap(), true
}

// IsPort accepts what may follow a host: "", ":" and ":<digits>".
func IsPort(s string) bool {
	if s == "" {
		return true
	}
	if s[0] != ':' || len(s) > 6 {
		return false
	}
	for i := 1; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}

// The network above an address that one party usually holds as a whole.
const (
	NetworkBits4 = 24
	NetworkBits6 = 48
)

// NetworkOf returns the /24 of an IPv4 address or the /48 of an IPv6 address; IPv4-mapped ones count as IPv4. That of the
// zero address is the zero network.
func NetworkOf(addr netip.Addr) netip.Prefix {
	addr = addr.Unmap().WithZone("")
	bits := NetworkBits6
	if addr.Is4() {
		bits = NetworkBits4
	}
	// It fails for the zero address alone.
	p, _ := addr.Prefix(bits)
	return p
}
