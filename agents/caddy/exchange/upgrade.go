package exchange

import (
	"encoding/base64"
	"net/http"
	"strings"
)

// isWebSocket reports whether a request is a complete WebSocket handshake. Every other attempt to change the protocol is
// left out of what an origin gets, because an answer 101 to it would tunnel past every later check.
func isWebSocket(r *http.Request) bool {
	h := r.Header
	// A list, RFC 9110 §7.8: the other protocols are not offered to the origin.
	if upgrade, ok := h["Upgrade"]; !ok || !HasToken(upgrade, "websocket") {
		return false
	}
	if r.Method != http.MethodGet || r.ProtoMajor != 1 || r.ProtoMinor != 1 || r.ContentLength != 0 {
		return false
	}
	version, key := h["Sec-Websocket-Version"], h["Sec-Websocket-Key"]
	if len(version) != 1 || version[0] != "13" || len(key) != 1 {
		return false
	}
	if raw, err := base64.StdEncoding.Strict().DecodeString(key[0]); err != nil || len(raw) != 16 {
		return false
	}
	return HasToken(h["Connection"], "upgrade")
}

// HasToken says whether a comma-separated list holds a token, without regard to case.
func HasToken(values []string, token string) bool {
	for _, v := range values {
		for v != "" {
			var item string
			item, v, _ = strings.Cut(v, ",")
			if strings.EqualFold(strings.Trim(item, " \t"), token) {
				return true
			}
		}
	}
	return false
}
