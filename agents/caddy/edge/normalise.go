package edge

import (
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"net/http"
	"strings"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
	"edge.svc/caddy/features/handshake"
	"edge.svc/caddy/pages"
)

const (
	maxTargetBytes = 8 << 10
	// ": " and the end of the line.
	fieldExtra = 4
)

// normalise is the stage that brings a request into the form in which all others see it, and refuses what is about the
// server or the way to it, what has two readings, what is too large and what already passed here.
func normalise(c *core.Core) exchange.Stage {
	return func(x *exchange.Exchange) *exchange.Answer {
		in := &x.In
		limit := fieldLimit.Of(x.Tables)
		fits := strip(x, in.Header, limit)
		strip(x, in.Trailer, limit)
		assignRequestID(in)
		switch {
		case len(in.Target.Raw) > maxTargetBytes:
			return pages.Respond(x, http.StatusRequestURITooLong, pages.URITooLong)
		case !fits:
			return pages.Respond(x, http.StatusRequestHeaderFieldsTooLarge, pages.HeaderTooLarge)
		case refusedMethod(in):
			return pages.Respond(x, http.StatusMethodNotAllowed, pages.MethodNotAllowed)
		case in.Target.Ambiguous || strayFields(in):
			return pages.Respond(x, http.StatusBadRequest, pages.BadRequest)
		case passedBefore(in.Header["Cdn-Loop"], c.LoopID()):
			return pages.Respond(x, http.StatusLoopDetected, pages.LoopDetected)
		}
		return nil
	}
}

// strip removes what only the edge itself may say, and names that programs behind an origin could take for others: they
// read "_", and some ".", as "-". It reports whether the header is as small as it has to be; limit is that of a field.
func strip(x *exchange.Exchange, h http.Header, limit int) (fits bool) {
	fits = true
	total := 0
	for name, values := range h {
		for _, value := range values {
			size := len(name) + len(value) + fieldExtra
			fits = fits && size <= limit
			total += size
		}
		switch {
		case strings.IndexByte(name, '_') >= 0 || strings.IndexByte(name, '.') >= 0:
			delete(h, name)
			dropped(x, name)
		case len(name) >= 6 && strings.EqualFold(name[:6], "X-Svc-"), handshake.Tells(name):
			delete(h, name)
		}
	}
	return fits && total <= limit+restHeaderBytes
}

// assignRequestID keeps a well-formed id of the client, else makes one.
func assignRequestID(in *exchange.Inbound) {
	if values := in.Header["X-Request-Id"]; len(values) == 1 && isRequestID(values[0]) {
		in.ID, in.IDHeader = values[0], values
		return
	}
	var raw [16]byte
	binary.LittleEndian.PutUint64(raw[:8], rand.Uint64())
	binary.LittleEndian.PutUint64(raw[8:], rand.Uint64())
	var text [32]byte
	hex.Encode(text[:], raw[:])
	in.ID = string(text[:])
	in.IDHeader = []string{in.ID}
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
func refusedMethod(in *exchange.Inbound) bool {
	switch in.Method {
	case http.MethodConnect, http.MethodTrace:
		return true
	case http.MethodOptions:
		return in.Target.Path == "*"
	}
	return false
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
