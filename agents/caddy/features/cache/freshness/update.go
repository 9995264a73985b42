package freshness

import (
	"maps"
	"net/http"
	"strings"
)

// Updates reports whether a response 304 is about a stored response (RFC 9111 section 4.3.4). With a strong validator both
// must have the same; with a weak one they must agree weakly. Without any it is about the one that was validated.
func Updates(stored, update http.Header) bool {
	if tag, ok := tagOf(update); ok {
		have, tagged := tagOf(stored)
		if tag[0] == '"' {
			return tagged && have == tag
		}
		return tagged && sameWeakly(have, tag)
	}
	if lines := update["Last-Modified"]; len(lines) == 1 {
		have := stored["Last-Modified"]
		return len(have) == 1 && have[0] == lines[0]
	}
	return true
}

// Updated is the header of a stored response after a validation (RFC 9111 section 3.2 and 4.3.4): the fields of the response
// 304 take the place of those of the same name. Fields that say how the stored body is made stay.
func Updated(stored, update http.Header) http.Header {
	next := maps.Clone(stored)
	// It says how old the earlier response was.
	delete(next, "Age")
	for name, values := range update {
		if !ofBody(name) {
			next[name] = values
		}
	}
	return next
}

// ofBody names fields that a validation does not change (RFC 9111 section 3.2).
func ofBody(name string) bool {
	switch name {
	case "Content-Length", "Content-Encoding", "Content-Type", "Content-Range", "Transfer-Encoding", "Trailer", "Set-Cookie":
		return true
	}
	return false
}

// HeadAgrees reports whether the response to a HEAD is about a stored response to a GET (RFC 9111 section 4.3.5): equal
// validators and length, where the HEAD has them. If not, the stored response is stale. With an equal validator it updates
// the stored response.
func HeadAgrees(stored, head http.Header, bodyLength string) (agrees, updates bool) {
	for _, name := range [...]string{"Etag", "Last-Modified"} {
		if lines := head[name]; len(lines) > 0 {
			have := stored[name]
			if len(have) == 0 || have[0] != lines[0] {
				return false, false
			}
			updates = true
		}
	}
	lines := head["Content-Length"]
	agrees = len(lines) == 0 || lines[0] == bodyLength
	return agrees, agrees && updates
}

// Storable is the header of a response as it is stored (RFC 9111 section 3.1), without fields of one hop or connection and
// without those that the verdict withholds. Set-Cookie is kept where it is: whoever sends the response decides about it.
func Storable(h http.Header, v *Verdict) http.Header {
	next := make(http.Header, len(h))
	for name, values := range h {
		switch name {
		case "Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authenticate", "Proxy-Authentication-Info",
			"Proxy-Authorization", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "Content-Length":
			continue
		}
		if !strings.HasPrefix(name, "X-Svc-") {
			next[name] = values
		}
	}
	for _, name := range v.Withheld {
		delete(next, name)
	}
	return next
}

// Unsafe reports whether a method changes the target (RFC 9110 section 9.2.1); one that is not known may.
func Unsafe(method string) bool {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return false
	}
	return true
}

// Invalidates reports whether the response to a request makes stored responses for its target invalid (RFC 9111 section 4.4).
func Invalidates(method string, status int) bool {
	return Unsafe(method) && status >= 200 && status < 400
}
