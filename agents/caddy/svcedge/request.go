package svcedge

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"net/http"
	"path"
	"strings"
	"unsafe"
)

// strip removes what only the edge itself may say, and names that programs behind an origin could take for others: they
// read "_", and some ".", as "-".
func strip(h http.Header) {
	for name := range h {
		if strings.IndexByte(name, '_') >= 0 || strings.IndexByte(name, '.') >= 0 || len(name) >= 6 && strings.EqualFold(name[:6], "X-Svc-") {
			delete(h, name)
		}
	}
}

// assignRequestID keeps a well-formed id of the client, else makes one, and puts it into the response.
func assignRequestID(response, request http.Header) string {
	if values := request["X-Request-Id"]; len(values) == 1 && isRequestID(values[0]) {
		response["X-Request-Id"] = []string{values[0]}
		return values[0]
	}
	var raw [16]byte
	binary.LittleEndian.PutUint64(raw[:8], rand.Uint64())
	binary.LittleEndian.PutUint64(raw[8:], rand.Uint64())
	// One piece of memory for the text and the list it is in.
	made := new(struct {
		values [1]string
		text   [32]byte
	})
	hex.Encode(made.text[:], raw[:])
	made.values[0] = unsafe.String(&made.text[0], len(made.text))
	response["X-Request-Id"] = made.values[:]
	return made.values[0]
}

func isRequestID(s string) bool {
	if len(s) < 8 || len(s) > 128 {
		return false
	}
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '.', c == '_', c == ':', c == '-':
		default:
			return false
		}
	}
	return true
}

// refusedMethod names the requests that are about the server or the way to it rather than about a site.
func refusedMethod(r *http.Request) bool {
	switch r.Method {
	case http.MethodConnect, http.MethodTrace:
		return true
	case http.MethodOptions:
		return r.RequestURI == "*" || r.URL.Path == "*"
	}
	return false
}

// refusedTarget names the targets that another reader could take for another path than the edge does: whatever is neither
// a path nor the absolute form of one over HTTP.
func refusedTarget(r *http.Request) bool {
	if strings.HasPrefix(r.RequestURI, "/") {
		return false
	}
	return r.URL.Host == "" || r.URL.Scheme != "http" && r.URL.Scheme != "https"
}

// passedBefore looks for this node's own token in CDN-Loop; parameters after it do not matter.
func passedBefore(values []string, token string) bool {
	for _, value := range values {
		for item := range strings.SplitSeq(value, ",") {
			id, _, _ := strings.Cut(item, ";")
			if strings.EqualFold(strings.Trim(id, " \t"), token) {
				return true
			}
		}
	}
	return false
}

const reservedPrefix = "/.svc/"

// isReserved reports whether a path is under the reserved prefix, also in the spellings that an origin could read so:
// the path is decoded already, and dot segments, repeated slashes and backslashes are resolved here.
func isReserved(p string) bool {
	if strings.HasPrefix(p, reservedPrefix) {
		return true
	}
	if !strings.Contains(p, ".svc") {
		return false
	}
	p = strings.ReplaceAll(p, `\`, "/")
	clean := path.Clean("/" + p)
	if strings.HasSuffix(p, "/") || strings.HasSuffix(p, "/.") || strings.HasSuffix(p, "/..") {
		clean += "/"
	}
	return strings.HasPrefix(clean, reservedPrefix)
}

// upgrades reports whether the request is a complete WebSocket handshake. Every other attempt to change the protocol is
// removed from the request, because an answer 101 to it would tunnel past every later check.
func upgrades(r *http.Request) bool {
	h := r.Header
	_, upgrade := h["Upgrade"]
	_, settings := h["Http2-Settings"]
	if !upgrade && !settings {
		return false
	}
	if !settings && isWebSocket(r) {
		return true
	}
	delete(h, "Upgrade")
	delete(h, "Http2-Settings")
	dropTokens(h, "Connection", "upgrade", "http2-settings")
	return false
}

func isWebSocket(r *http.Request) bool {
	h := r.Header
	if r.Method != http.MethodGet || r.ProtoMajor != 1 || r.ProtoMinor != 1 || r.ContentLength != 0 {
		return false
	}
	upgrade, version, key := h["Upgrade"], h["Sec-Websocket-Version"], h["Sec-Websocket-Key"]
	if len(upgrade) != 1 || !strings.EqualFold(upgrade[0], "websocket") || len(version) != 1 || version[0] != "13" || len(key) != 1 {
		return false
	}
	if raw, err := base64.StdEncoding.DecodeString(key[0]); err != nil || len(raw) != 16 {
		return false
	}
	return hasToken(h["Connection"], "upgrade")
}

func hasToken(values []string, token string) bool {
	for _, value := range values {
		for item := range strings.SplitSeq(value, ",") {
			if strings.EqualFold(strings.Trim(item, " \t"), token) {
				return true
			}
		}
	}
	return false
}

// dropTokens removes tokens from a header that lists them.
func dropTokens(h http.Header, name string, tokens ...string) {
	var kept []string
	for _, value := range h[name] {
		for item := range strings.SplitSeq(value, ",") {
			item = strings.Trim(item, " \t")
			drop := item == ""
			for _, token := range tokens {
				drop = drop || strings.EqualFold(item, token)
			}
			if !drop {
				kept = append(kept, item)
			}
		}
	}
	if len(kept) == 0 {
		delete(h, name)
		return
	}
	h[name] = []string{strings.Join(kept, ", ")}
}
