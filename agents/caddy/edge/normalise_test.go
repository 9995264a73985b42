package edge

import (
	"net/http"
	"strings"
	"testing"

	"edge.svc/caddy/exchange"
)

// idOf is the id of a request that names these.
func idOf(t *testing.T, named ...string) string {
	in := exchange.Inbound{Header: http.Header{}}
	if named != nil {
		in.Header["X-Request-Id"] = named
	}
	assignRequestID(&in)
	if len(in.IDHeader) != 1 || in.IDHeader[0] != in.ID {
		t.Errorf("%q and %q", in.ID, in.IDHeader)
	}
	return in.ID
}

func TestRequestID(t *testing.T) {
	for value, kept := range map[string]bool{
		"12345678": true, "a.b_c:d-E9": true, strings.Repeat("x", 128): true,
		"1234567": false, strings.Repeat("x", 129): false, "with space": false, "<script>alert": false, "": false, "line\nbreak": false,
	} {
		id := idOf(t, value)
		if (id == value) != kept || !isRequestID(id) {
			t.Errorf("%q became %q", value, id)
		}
	}
	if id := idOf(t, "12345678", "87654321"); len(id) != 32 {
		t.Errorf("two ids became %q", id)
	}
	if idOf(t) == idOf(t) {
		t.Error("two requests got the same id")
	}
}

func TestInternalHeadersAreRemoved(t *testing.T) {
	h := http.Header{"X-Svc-Site": {"a"}, "X-Svcx": {"b"}, "x-svc-raw": {"c"}, "X-Svc-": {"d"}, "Accept": {"e"}}
	for range 200 {
		h["X-Svc-"+strings.Repeat("a", len(h))] = []string{"x"}
	}
	strip(&exchange.Exchange{}, h, maxFieldBytes)
	if len(h) != 2 || h["X-Svcx"] == nil || h["Accept"] == nil {
		t.Errorf("%v", h)
	}
}

func TestLoopToken(t *testing.T) {
	const token = "svc-0123456789abcdef"
	for value, want := range map[string]bool{
		token: true, "a, " + token: true, "a," + strings.ToUpper(token) + " ; x=1,b": true,
		"": false, "svc-0123456789abcde": false, token + "0": false, `"` + token + `"`: false, "x;" + token: false,
	} {
		if got := passedBefore([]string{"other", value}, token); got != want {
			t.Errorf("%q: %v", value, got)
		}
	}
}

func TestRefusedMethods(t *testing.T) {
	for line, want := range map[string]bool{
		"GET /": false, "OPTIONS /": false, "OPTIONS *": true, "CONNECT a.com:443": true, "TRACE /": true, "PROPFIND /": false,
	} {
		method, target, _ := strings.Cut(line, " ")
		in := exchange.Inbound{Method: method, Target: exchange.Target{Path: target}}
		if got := refusedMethod(&in); got != want {
			t.Errorf("%s: %v", line, got)
		}
	}
}
