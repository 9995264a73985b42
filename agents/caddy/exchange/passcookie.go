package exchange

const (
	// PassCookie carries the pass of a challenge.
	PassCookie = "__ew_pass"
	// PlainPassCookie carries it as well where it was earned over plain HTTP: there, browsers keep no cookie in the place of
	// one of the same name that is Secure (RFC 6265bis §5.7), nor send that one.
	PlainPassCookie = "ew_pass_http"
)

// IsPassCookie reports whether a cookie of this name is the edge's own, for passes.
func IsPassCookie(name string) bool { return name == PassCookie || name == PlainPassCookie }
