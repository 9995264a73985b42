package origin

import (
	"fmt"
	"net/netip"
	"strings"

	configv1 "edge.svc/caddy/gen/svc/config/v1"
)

// Networks an origin must not be in: whoever may name an origin could otherwise make the node fetch from its own
// machine or network.
var deniedNetworks = mustPrefixes(
	"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
	"192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
	"::/128", "::1/128", "100::/64", "2001:db8::/32", "3fff::/20", "5f00::/16", "fc00::/7", "fe80::/10", "fec0::/10",
	"ff00::/8",
	// Tunnels and an old notation with an IPv4 address inside, where packets could end up.
	"::/96", "64:ff9b:1::/48", "2001::/32", "2002::/16",
)

// Addresses here stand for the IPv4 address in their last four bytes.
var nat64 = netip.MustParsePrefix("64:ff9b::/96")

// AddressPolicy decides which addresses the node connects to. A nil policy allows no special-purpose address.
type AddressPolicy struct {
	allowed []netip.Prefix
}

// CompilePolicy reads the exemptions of the policy entry. It fails when one of them is not a CIDR.
func CompilePolicy(p *configv1.OriginPolicy) (*AddressPolicy, error) {
	policy := &AddressPolicy{}
	for _, cidr := range p.GetAllowedCidrs() {
		prefix, err := netip.ParsePrefix(cidr)
		if err != nil {
			return nil, fmt.Errorf("allowed network %q of the origin policy: %w", cidr, err)
		}
		if prefix.Addr().Is4In6() {
			if prefix.Bits() < 96 {
				return nil, fmt.Errorf("allowed network %q of the origin policy is larger than the IPv4-mapped range", cidr)
			}
			prefix = netip.PrefixFrom(prefix.Addr().Unmap(), prefix.Bits()-96)
		}
		policy.allowed = append(policy.allowed, prefix.Masked())
	}
	return policy, nil
}

// Allows says whether the node may connect to addr. IPv4-mapped and NAT64 addresses are judged by the IPv4 address
// inside; an address with a zone is refused.
func (p *AddressPolicy) Allows(addr netip.Addr) bool {
	if !addr.IsValid() || addr.Zone() != "" {
		return false
	}
	addr = addr.Unmap()
	if p.exempts(addr) {
		return true
	}
	if nat64.Contains(addr) {
		b := addr.As16()
		addr = netip.AddrFrom4([4]byte(b[12:]))
		if p.exempts(addr) {
			return true
		}
	}
	return !contains(deniedNetworks, addr)
}

func (p *AddressPolicy) exempts(addr netip.Addr) bool { return p != nil && contains(p.allowed, addr) }

func contains(networks []netip.Prefix, addr netip.Addr) bool {
	for _, n := range networks {
		if n.Contains(addr) {
			return true
		}
	}
	return false
}

// isLocalhost says whether a host name means the node itself by definition.
func isLocalhost(host string) bool {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	return host == "localhost" || strings.HasSuffix(host, ".localhost")
}

// isNumeric says whether a host name would read as an IPv4 address to some resolvers (127.1, 0x7f.1, 2130706433).
func isNumeric(host string) bool {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	last := host[strings.LastIndexByte(host, '.')+1:]
	digits := strings.TrimPrefix(last, "0x")
	set := "0123456789"
	if len(digits) < len(last) {
		set += "abcdef"
	}
	return strings.Trim(digits, set) == ""
}

func mustPrefixes(cidrs ...string) []netip.Prefix {
	prefixes := make([]netip.Prefix, len(cidrs))
	for i, cidr := range cidrs {
		prefixes[i] = netip.MustParsePrefix(cidr)
	}
	return prefixes
}
