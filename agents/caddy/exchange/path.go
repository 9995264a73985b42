package exchange

import (
	"path"
	"strings"
)

// CanonicalPath returns the one form in which paths are counted, get levels and meet rules, however a client spells them:
// dot segments resolved, repeated slashes made one, a slash in front. A slash at the end stays, and a dot segment at the
// end leaves one. decoded is a decoded path. It allocates only where something changes.
func CanonicalPath(decoded string) string {
	if isCanonical(decoded) {
		return decoded
	}
	clean := path.Clean("/" + decoded)
	if clean != "/" && (strings.HasSuffix(decoded, "/") || strings.HasSuffix(decoded, "/.") || strings.HasSuffix(decoded, "/..")) {
		clean += "/"
	}
	return clean
}

func isCanonical(p string) bool {
	if p == "" || p[0] != '/' {
		return false
	}
	for i := 0; i < len(p); {
		next := strings.IndexByte(p[i:], '/')
		if next < 0 {
			return true
		}
		i += next + 1
		switch rest := p[i:]; {
		case rest == "":
		case rest[0] == '/', rest == ".", rest == "..", strings.HasPrefix(rest, "./"), strings.HasPrefix(rest, "../"):
			return false
		}
	}
	return true
}
