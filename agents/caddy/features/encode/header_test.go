package encode

import (
	"net/http"
	"strings"
	"testing"

	"edge.svc/caddy/exchange"
)

func TestVary(t *testing.T) {
	for before, want := range map[string]string{
		"none":                             "Accept-Encoding",
		"":                                 "Accept-Encoding",
		"Cookie":                           "Cookie, Accept-Encoding",
		"Cookie|Origin":                    "Cookie, Origin, Accept-Encoding",
		"accept-encoding":                  "accept-encoding",
		"*":                                "*",
		"Accept-Language, Accept-Encoding": "Accept-Language, Accept-Encoding",
	} {
		h := http.Header{}
		if h["Vary"] = strings.Split(before, "|"); before == "none" {
			delete(h, "Vary")
		}
		if vary(h); strings.Join(h["Vary"], "|") != want {
			t.Errorf("%q: %q, not %q", before, h["Vary"], want)
		}
	}
}

// A tag that the edge weakened is the origin's again; one of the origin's own weak ones does it no harm.
func TestConditionsForOrigins(t *testing.T) {
	for asked, want := range map[string]string{
		`W/"x"`:                                 `W/"x", "x"`,
		`"x"`:                                   "",
		`W/"x", "x"`:                            "",
		`W/"a", "b", W/"c"`:                     `W/"a", "b", W/"c", "a", "c"`,
		`W/"a,b"|W/"c"`:                         `W/"a,b", W/"c", "a,b", "c"`,
		`, W/"x" ,`:                             `W/"x", "x"`,
		`*`:                                     "",
		`W/x`:                                   "",
		`W/"x`:                                  "",
		`w/"x"`:                                 "",
		`W/"x" "y"`:                             "",
		`W/`:                                    "",
		strings.Repeat(`W/"x",`, 65):            "",
		`W/"` + strings.Repeat("x", 4100) + `"`: "",
	} {
		x := &exchange.Exchange{}
		x.In.Header = http.Header{"If-None-Match": strings.Split(asked, "|"), "If-Range": {`W/"x"`}}
		strengthen(x, "If-None-Match")
		got := ""
		for _, edit := range x.Out.Edits {
			got += strings.Join(edit.Values, "|")
		}
		if got != want {
			t.Errorf("%.60s: %.60s, not %s", asked, got, want)
		}
	}
	// What a rule put there is the rule's.
	x := &exchange.Exchange{}
	x.In.Header = http.Header{"If-None-Match": {`W/"x"`}}
	x.Out.Edits = []exchange.HeaderEdit{{Name: "If-None-Match"}}
	if strengthen(x, "If-None-Match"); len(x.Out.Edits) != 1 {
		t.Errorf("%v", x.Out.Edits)
	}
}
