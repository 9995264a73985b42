package cc

import (
	"bufio"
	"encoding/hex"
	"net/netip"
	"os"
	"slices"
	"strings"
)

// protected are networks this node must not lose: its gateways, which are also the bridges of containers, and its
// resolvers.
type protected struct{ networks []network }

func (p *protected) has(n network) bool { return slices.Contains(p.networks, n) }

func (g *Guard) refreshProtected() {
	g.protected.Store(readProtected("/proc/net/route", "/proc/net/ipv6_route", "/etc/resolv.conf"))
}

// readProtected reads what it can; a file that is missing protects nothing.
func readProtected(routes4, routes6, resolvers string) *protected {
	p := &protected{}
	add := func(addr netip.Addr) {
		if countable(addr) && !p.has(networkOf(addr)) {
			p.networks = append(p.networks, networkOf(addr))
		}
	}
	fields(routes4, func(f []string) {
		// Interface, destination, gateway: words in the order of the machine's bytes, little-endian where we run.
		if raw, err := hex.DecodeString(field(f, 2)); err == nil && len(raw) == 4 && field(f, 1) == "00000000" {
			add(netip.AddrFrom4([4]byte{raw[3], raw[2], raw[1], raw[0]}))
		}
	})
	fields(routes6, func(f []string) {
		// Destination, its length, source, its length, next hop.
		if raw, err := hex.DecodeString(field(f, 4)); err == nil && len(raw) == 16 && field(f, 1) == "00" {
			add(netip.AddrFrom16([16]byte(raw)))
		}
	})
	fields(resolvers, func(f []string) {
		if addr, err := netip.ParseAddr(field(f, 1)); err == nil && f[0] == "nameserver" {
			add(addr)
		}
	})
	return p
}

func field(f []string, at int) string {
	if at >= len(f) {
		return ""
	}
	return f[at]
}

func fields(path string, line func(f []string)) {
	file, err := os.Open(path)
	if err != nil {
		return
	}
	defer file.Close()
	for scanner := bufio.NewScanner(file); scanner.Scan(); {
		if f := strings.Fields(scanner.Text()); len(f) > 0 {
			line(f)
		}
	}
}
