package exchange

import (
	"net/url"
	"strings"
)

// NormalPath decodes the unreserved characters of an encoded path and removes its dot segments (RFC 3986, sections 6.2.2.2
// and 5.2.4), nothing else. It refuses what origins resolve in different ways: a backslash, "..;", and an encoded slash in a
// segment that has dots beside it. It allocates only where something changes.
func NormalPath(raw string) (normal string, ok bool) {
	if strings.IndexByte(raw, '%') < 0 && strings.IndexByte(raw, '\\') < 0 && !strings.Contains(raw, "/.") {
		return raw, true
	}
	if hasBackslash(raw) || raw[0] != '/' {
		return "", false
	}
	decoded := decodeUnreserved(raw)
	dots := false
	for segment := range strings.SplitSeq(decoded, "/") {
		if segment == "." || segment == ".." {
			dots = true
		} else if resolvesDots(segment) {
			return "", false
		}
	}
	if !dots {
		return decoded, true
	}
	return withoutDots(decoded), true
}

// decodeUnreserved decodes what means the same encoded or not.
func decodeUnreserved(raw string) string {
	var b []byte
	kept := 0
	for i := 0; i+2 < len(raw); i++ {
		if raw[i] != '%' {
			continue
		}
		if c := hexByte(raw[i+1])<<4 | hexByte(raw[i+2]); unreserved(c) {
			b = append(append(b, raw[kept:i]...), c)
			kept = i + len("%2e")
		}
		i += len("2e")
	}
	if kept == 0 {
		return raw
	}
	return string(append(b, raw[kept:]...))
}

// hasBackslash reports whether a path has a backslash, encoded or not.
func hasBackslash(raw string) bool {
	return strings.IndexByte(raw, '\\') >= 0 || strings.Contains(raw, "%5c") || strings.Contains(raw, "%5C")
}

// resolvesDots reports whether some origins find a dot segment in a segment that is none: after they cut parameters off, or
// after they decode a slash.
func resolvesDots(segment string) bool {
	for {
		piece, rest, cut := cutEncodedSlash(segment)
		if isDots(piece) {
			return true
		}
		if !cut {
			return false
		}
		segment = rest
	}
}

func cutEncodedSlash(s string) (before, after string, found bool) {
	for i := 0; i+2 < len(s); i++ {
		if s[i] == '%' && s[i+1] == '2' && s[i+2]|0x20 == 'f' {
			return s[:i], s[i+len("%2f"):], true
		}
	}
	return s, "", false
}

// isDots reports whether a piece of a segment is "." or "..", with parameters or without.
func isDots(piece string) bool {
	rest := strings.TrimPrefix(strings.TrimPrefix(piece, "."), ".")
	return len(rest) < len(piece) && (rest == "" || rest[0] == ';' || len(rest) > 2 && strings.EqualFold(rest[:3], "%3b"))
}

// withoutDots removes the dot segments of a path.
func withoutDots(path string) string {
	b := make([]byte, 0, len(path))
	for rest := path; rest != ""; {
		segment := rest[1:]
		end := strings.IndexByte(segment, '/')
		if rest = ""; end >= 0 {
			segment, rest = segment[:end], segment[end:]
		}
		switch segment {
		case ".":
		case "..":
			b = b[:max(0, strings.LastIndexByte(string(b), '/'))]
		default:
			b = append(append(b, '/'), segment...)
			continue
		}
		if rest == "" {
			b = append(b, '/')
		}
	}
	return string(b)
}

// Normal is the target with its path as NormalPath makes it; ok is false where that refuses it.
func (t *Target) Normal() (normal Target, ok bool) {
	raw, query, asked := strings.Cut(t.Raw, "?")
	path, ok := NormalPath(raw)
	if !ok || path == raw {
		return *t, ok
	}
	decoded, err := url.PathUnescape(path)
	if err != nil {
		return *t, false
	}
	if asked {
		path += "?" + query
	}
	return Target{Raw: path, Path: decoded, Canonical: CanonicalPath(decoded), Query: t.Query}, true
}

// Plain reports whether the path is its canonical path in the one spelling that every origin reads alike: percent-encoded is
// only what has to be, and no segment is "..;" or ".;". What exempts by path asks for it.
func (t *Target) Plain() bool {
	if t.Path != t.Canonical || strings.Contains(t.Canonical, "/.;") || strings.Contains(t.Canonical, "/..;") {
		return false
	}
	raw, _, _ := strings.Cut(t.Raw, "?")
	return raw == t.Canonical && isLiteral(raw) || spells(raw, t.Canonical)
}

func isLiteral(raw string) bool {
	for i := range len(raw) {
		if !literal(raw[i]) {
			return false
		}
	}
	return true
}

// spells reports whether an encoded path is a decoded one with nothing encoded that can stand for itself. Bytes beyond ASCII
// may be encoded or not: no origin reads them in two ways.
func spells(raw, decoded string) bool {
	at := 0
	for i := range len(decoded) {
		c := decoded[i]
		switch {
		case at < len(raw) && raw[at] == c && (literal(c) || c >= 0x80):
			at++
		case !literal(c) && c != '\\' && at+2 < len(raw) && raw[at] == '%' && hexByte(raw[at+1])<<4|hexByte(raw[at+2]) == c:
			at += len("%20")
		default:
			return false
		}
	}
	return at == len(raw)
}

// literal names the bytes that stand for themselves in paths as clients send them.
func literal(c byte) bool {
	return c > ' ' && c < 0x7f && strings.IndexByte("\"#%<>?\\^`{|}", c) < 0
}

// unreserved names the bytes that mean the same whether encoded or not (RFC 3986, section 2.3).
func unreserved(c byte) bool {
	switch {
	case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		return true
	}
	return c == '-' || c == '.' || c == '_' || c == '~'
}

// hexByte is the value of a hexadecimal digit. Encoded paths have been read before: nothing else follows a percent sign.
func hexByte(c byte) byte {
	switch {
	case c >= 'a':
		return c - 'a' + 10
	case c >= 'A':
		return c - 'A' + 10
	}
	return c - '0'
}
