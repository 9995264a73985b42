package origin

import (
	"net/http"
	"net/textproto"
	"strings"

	"edge.svc/caddy/exchange"
)

// copyHeader adds what the client may see of an answer's header to h.
func (a *response) copyHeader(h http.Header) {
	slab := make([]string, len(a.fields))
	for i, f := range a.fields {
		if originOwns(f.name, f.value) {
			continue
		}
		if have := h[f.name]; len(have) > 0 {
			h[f.name] = append(have, f.value)
			continue
		}
		slab[i] = f.value
		h[f.name] = slab[i : i+1 : i+1]
	}
	for name := range named(a.connection) {
		// These are the edge's, or say where the answer ends.
		if name != "Connection" && name != "Content-Length" && !originOwns(name, "") {
			delete(h, name)
		}
	}
	if _, ok := h["Content-Type"]; !ok {
		// Keeps the server from guessing one.
		h["Content-Type"] = nil
	}
	if a.chunked {
		for _, names := range a.trailer {
			for name := range strings.SplitSeq(names, ",") {
				name = textproto.CanonicalMIMEHeaderKey(strings.Trim(name, " \t"))
				if trailerAllowed(name) {
					h["Trailer"] = append(h["Trailer"], name)
				}
			}
		}
	}
}

// clientHeader is what the client may see of an answer's header. Where the origin was not told what the client accepts, its
// answer does not vary with that.
func (t *fetch) clientHeader(a *response, h http.Header) {
	a.copyHeader(h)
	if values := h["Vary"]; t.out.Identity && exchange.HasToken(values, "Accept-Encoding") {
		dropToken(h, "Vary", "Accept-Encoding")
	}
}

// dropToken takes a token out of a list, and the list out of the header when nothing is left.
func dropToken(h http.Header, name, token string) {
	var kept []string
	for _, value := range h[name] {
		for item := range strings.SplitSeq(value, ",") {
			if item = strings.Trim(item, " \t"); item != "" && !strings.EqualFold(item, token) {
				kept = append(kept, item)
			}
		}
	}
	if delete(h, name); len(kept) > 0 {
		h[name] = []string{strings.Join(kept, ", ")}
	}
}

// originOwns names what an origin's answer carries that is not for the client: fields of one hop, names of the edge and
// cookies of the edge.
func originOwns(name, value string) bool {
	switch name {
	case "Keep-Alive", "Proxy-Connection", "Proxy-Authenticate", "Te", "Server", "X-Request-Id", "Alt-Svc":
		return true
	case "Set-Cookie":
		cookie, _, _ := strings.Cut(value, "=")
		cookie = strings.TrimRight(cookie, " \t")
		return strings.HasPrefix(value, "__ew_") || exchange.IsPassCookie(cookie) || exchange.IsAffinityCookie(cookie)
	}
	return strings.HasPrefix(name, "X-Svc-") || strings.HasPrefix(name, "X-Accel-")
}

// trailerAllowed refuses trailers that would change how a message is read.
func trailerAllowed(name string) bool {
	switch name {
	case "", "Content-Length", "Transfer-Encoding", "Trailer", "Host", "Connection", "Upgrade", "Content-Encoding",
		"Content-Type", "Content-Range", "Set-Cookie", "Authorization":
		return false
	}
	return !originOwns(name, "")
}
