package edge

import (
	"strings"

	"golang.org/x/net/http/httpguts"

	"edge.svc/caddy/exchange"
)

// strayFields reports what servers of HTTP/2 and HTTP/3 let through and HTTP/1 has no place for: a method that is more than
// a word, which an origin would read as the rest of the request's line, and lengths that are none, or two.
func strayFields(in *exchange.Inbound) bool {
	if in.Major < 2 {
		return false
	}
	// The form of a method is that of a field's name.
	if !httpguts.ValidHeaderFieldName(in.Method) {
		return true
	}
	lengths := in.Header["Content-Length"]
	return len(lengths) > 1 || len(lengths) == 1 && (lengths[0] == "" || strings.Trim(lengths[0], "0123456789") != "")
}
