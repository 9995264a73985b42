package exchange

import "strings"

const (
	// AffinityCookie names the origin that a visitor is kept on; that of a group has the group behind a "_".
	AffinityCookie = "__ew_affinity"
	// PlainAffinityCookie carries it as well over plain HTTP, for the reason of PlainPassCookie.
	PlainAffinityCookie = "ew_affinity_http"
)

// IsAffinityCookie reports whether a cookie of this name is the edge's own, for session affinity.
func IsAffinityCookie(name string) bool {
	rest, found := strings.CutPrefix(name, AffinityCookie)
	if !found {
		rest, found = strings.CutPrefix(name, PlainAffinityCookie)
	}
	return found && (rest == "" || rest[0] == '_')
}
