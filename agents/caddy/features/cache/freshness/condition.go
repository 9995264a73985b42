package freshness

import (
	"net/http"
	"strings"
	"time"
)

// HasValidator reports whether a response can be validated: by an entity tag or Last-Modified (RFC 9111 section 4.3.1).
func HasValidator(h http.Header) bool {
	_, ok := tagOf(h)
	return ok || len(h["Last-Modified"]) == 1
}

// tagOf is the entity tag of a response, as it was sent.
func tagOf(h http.Header) (string, bool) {
	if lines := h["Etag"]; len(lines) == 1 {
		tag := trim(lines[0])
		return tag, isTag(tag)
	}
	return "", false
}

func isTag(tag string) bool {
	opaque := strings.TrimPrefix(tag, "W/")
	return len(opaque) >= 2 && opaque[0] == '"' && strings.IndexByte(opaque[1:], '"') == len(opaque)-2
}

// StrongTag is the entity tag of a response if it is a strong one, else "" (RFC 9110 section 8.8.1).
func StrongTag(h http.Header) string {
	if tag, ok := tagOf(h); ok && tag[0] == '"' {
		return tag
	}
	return ""
}

// sameWeakly compares two tags weakly (RFC 9110 section 8.8.3.2).
func sameWeakly(a, b string) bool {
	return strings.TrimPrefix(a, "W/") == strings.TrimPrefix(b, "W/")
}

// NotModified reports whether a stored response of status 200 is what the client has already (RFC 9111 section 4.3.2, RFC
// 9110 section 13.2.2). If-None-Match counts before If-Modified-Since. received stands for a missing Last-Modified and Date.
func NotModified(request, stored http.Header, received time.Time) bool {
	if lines, ok := request["If-None-Match"]; ok {
		return matches(lines, stored)
	}
	lines := request["If-Modified-Since"]
	if len(lines) != 1 {
		return false
	}
	since, ok := date(trim(lines[0]), received)
	if !ok {
		return false
	}
	if modified, ok := dateIn(stored, "Last-Modified", received); ok {
		return !modified.After(since)
	}
	if sent, ok := dateIn(stored, "Date", received); ok {
		return !sent.After(since)
	}
	return !received.After(since)
}

// matches compares a list of tags with the one of a response.
func matches(lines []string, stored http.Header) bool {
	tag, tagged := tagOf(stored)
	for _, line := range lines {
		if trim(line) == "*" {
			return true
		}
		for rest := line; tagged && rest != ""; {
			rest = strings.TrimLeft(rest, " \t,")
			opaque := strings.TrimPrefix(rest, "W/")
			if opaque == "" || opaque[0] != '"' {
				break
			}
			// A tag may hold a comma; a backslash in it escapes nothing.
			end := strings.IndexByte(opaque[1:], '"')
			if end < 0 {
				break
			}
			length := len(rest) - len(opaque) + end + 2
			if sameWeakly(rest[:length], tag) {
				return true
			}
			rest = rest[length:]
		}
	}
	return false
}

// SetConditions makes a request ask whether a stored response is still right (RFC 9111 section 4.3.1), in the place of the
// conditions of a client.
func SetConditions(request, stored http.Header) {
	DropConditions(request)
	if tag, ok := tagOf(stored); ok {
		request["If-None-Match"] = []string{tag}
	}
	if lines := stored["Last-Modified"]; len(lines) == 1 {
		request["If-Modified-Since"] = lines
	}
}

// DropConditions removes the conditions and ranges of a client, so that the whole response comes.
func DropConditions(request http.Header) {
	for _, name := range []string{"If-None-Match", "If-Modified-Since", "If-Match", "If-Unmodified-Since", "If-Range", "Range"} {
		delete(request, name)
	}
}

// HasPrecondition reports whether a request has conditions that a cache does not evaluate (RFC 9110 section 13.1.1 and
// 13.1.4).
func HasPrecondition(request http.Header) bool {
	return len(request["If-Match"]) > 0 || len(request["If-Unmodified-Since"]) > 0
}
