package expr

import "strings"

// Use is where a value is put.
type Use uint8

const (
	// ForRedirect: a path of this site, or a URL of http or https without credentials.
	ForRedirect Use = iota + 1
	// ForRewrite: a decoded path, which is percent-encoded: "?" and "#" end nothing.
	ForRewrite
	// ForHeader: the value of a header.
	ForHeader
	// ForQuery: the value of a parameter; it is percent-encoded, so anything will do.
	ForQuery
)

// Bytes of a header's value; more are not sent.
const maxHeaderValue = 4096

// Accepts reports whether the result of a value can be used there.
func (u Use) Accepts(result string) bool {
	switch u {
	case ForRedirect:
		return !hasByte(result, notInTarget) && (isPath(result) || isURL(result))
	case ForRewrite:
		return isPath(result) && !hasByte(result, isControl) && !strings.Contains(result, `\`)
	case ForHeader:
		return len(result) <= maxHeaderValue && !hasByte(result, isControl)
	case ForQuery:
		return true
	}
	return false
}

func isControl(c byte) bool { return c < ' ' || c == 0x7f }

func notInTarget(c byte) bool { return c <= ' ' || c == 0x7f || c == '\\' }

func hasByte(s string, is func(byte) bool) bool {
	for i := range len(s) {
		if is(s[i]) {
			return true
		}
	}
	return false
}

// isPath refuses two slashes in front, which would be the start of a host.
func isPath(s string) bool {
	return strings.HasPrefix(s, "/") && !strings.HasPrefix(s, "//")
}

func isURL(s string) bool {
	scheme, rest, ok := strings.Cut(s, "://")
	if !ok || !equalFold(scheme, "http") && !equalFold(scheme, "https") {
		return false
	}
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		rest = rest[:end]
	}
	return isAuthority(rest)
}

// isAuthority accepts a host, in brackets when it is an IPv6 address, and a port; no credentials.
func isAuthority(s string) bool {
	host, port := s, ""
	if strings.HasPrefix(s, "[") {
		end := strings.IndexByte(s, ']')
		if end < 2 || hasByte(s[1:end], func(c byte) bool { return !isHex(c) && c != ':' && c != '.' }) {
			return false
		}
		port = s[end+1:]
	} else {
		if colon := strings.IndexByte(s, ':'); colon >= 0 {
			host, port = s[:colon], s[colon:]
		}
		if host == "" || strings.ContainsAny(host, "[]@") {
			return false
		}
	}
	return port == "" || port[0] == ':' && len(port) > 1 && len(port) <= 6 && !hasByte(port[1:], func(c byte) bool { return c < '0' || c > '9' })
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

// equalFold compares with a text in lower case, whatever the case of A to Z.
func equalFold(s, lower string) bool {
	if len(s) != len(lower) {
		return false
	}
	for i := range len(s) {
		if lowerByte(s[i]) != lower[i] {
			return false
		}
	}
	return true
}

func lowerByte(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}
