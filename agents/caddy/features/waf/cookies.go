package waf

import (
	"strings"

	"edge.svc/caddy/exchange"
	"edge.svc/caddy/features/waf/bodies"
)

// readCookies takes the cookies of a header, and returns it without the edge's own, of challenges and session affinity, which are
// nobody's attack.
func readCookies(header string, to *bodies.Arguments) (rest string) {
	kept := make([]byte, 0, len(header))
	for header != "" {
		var pair string
		pair, header, _ = strings.Cut(header, ";")
		name, value, _ := strings.Cut(strings.TrimLeft(pair, " \t"), "=")
		if exchange.IsPassCookie(name) && isPass(value) || exchange.IsAffinityCookie(name) && isSigned(value) {
			continue
		}
		if len(kept) > 0 {
			kept = append(kept, ';')
		}
		kept = append(kept, pair...)
		if name != "" || value != "" {
			to.Put(name, value)
		}
	}
	return strings.TrimLeft(string(kept), " ")
}

const (
	// What every pass begins with, and bytes that none has more of.
	passVersion  = "v1."
	maxPassBytes = 1024
)

// isPass reports whether a cookie can be a pass. Whatever else has its name goes on to the origin like any other cookie.
func isPass(value string) bool {
	return strings.HasPrefix(value, passVersion) && isSigned(value)
}

// isSigned reports whether a value has the letters of those that the edge signs.
func isSigned(value string) bool {
	if len(value) > maxPassBytes {
		return false
	}
	for i := range len(value) {
		switch c := value[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '.', c == '_', c == '-':
		default:
			return false
		}
	}
	return true
}
