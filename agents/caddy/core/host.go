package core

import (
	"net/netip"
	"strings"

	"edge.svc/caddy/internal/address"
)

// HostKind says what the Host of a request names.
type HostKind uint8

const (
	// HostInvalid cannot be the name of a site: empty, too long, or with characters that no name has.
	HostInvalid HostKind = iota
	// HostName is a normalised name: lower case, no port, no trailing dot.
	HostName
	// HostAddress is an IP address, or a name that clients read as one because its last label is a number.
	HostAddress
)

const maxHostBytes = 253

// NormalizeHost brings the Host of a request into the form in which sites are looked up. A port is dropped, whatever
// its value. Addresses come out without brackets and in canonical spelling where they parse.
func NormalizeHost(raw string) (string, HostKind) {
	host := raw
	if strings.HasPrefix(host, "[") {
		end := strings.IndexByte(host, ']')
		if end < 0 || !address.IsPort(host[end+1:]) {
			return "", HostInvalid
		}
		addr, err := netip.ParseAddr(host[1:end])
		if err != nil || addr.Is4() {
			return "", HostInvalid
		}
		return addr.WithZone("").Unmap().String(), HostAddress
	}
	if colon := strings.IndexByte(host, ':'); colon >= 0 {
		if !address.IsPort(host[colon:]) {
			return "", HostInvalid
		}
		host = host[:colon]
	}
	host = strings.TrimSuffix(host, ".")
	if host == "" || len(host) > maxHostBytes {
		return "", HostInvalid
	}
	upper, label := false, 0
	for i := 0; i < len(host); i++ {
		switch c := host[i]; {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '-', c == '_':
		case 'A' <= c && c <= 'Z':
			upper = true
		case c == '.':
			if i == label {
				return "", HostInvalid
			}
			label = i + 1
		default:
			return "", HostInvalid
		}
	}
	if label == len(host) {
		return "", HostInvalid
	}
	if upper {
		host = strings.ToLower(host)
	}
	if isNumber(host[label:]) {
		if addr, err := netip.ParseAddr(host); err == nil {
			return addr.String(), HostAddress
		}
		return host, HostAddress
	}
	return host, HostName
}

// isNumber reports what the URL standard calls a number as last label: digits, or 0x and hex digits.
func isNumber(label string) bool {
	digits := true
	for i := 0; i < len(label) && digits; i++ {
		digits = '0' <= label[i] && label[i] <= '9'
	}
	if digits {
		return label != ""
	}
	if len(label) < 2 || label[0] != '0' || label[1] != 'x' {
		return false
	}
	for i := 2; i < len(label); i++ {
		if c := label[i]; !('0' <= c && c <= '9' || 'a' <= c && c <= 'f') {
			return false
		}
	}
	return true
}
