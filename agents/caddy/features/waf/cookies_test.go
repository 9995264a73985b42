package waf

import (
	"strings"
	"testing"

	"edge.svc/caddy/features/waf/bodies"
)

func TestCookiesOfChallengesAreHidden(t *testing.T) {
	var got []string
	rest := readCookies(`a=1; __ew_pass=v1.k1.c2VjcmV0.b-_2; ew_pass_http=v1.k1.c2VjcmV0.b-_2; b="2"; __ew_pass=v1.other;c; __ew_pass=<script>; __ew_pass=secret`, &bodies.Arguments{Add: func(name, value string) { got = append(got, name+"="+value) }})
	if rest != `a=1; b="2";c; __ew_pass=<script>; __ew_pass=secret` || strings.Join(got, "|") != `a=1|b="2"|c=|__ew_pass=<script>|__ew_pass=secret` {
		t.Errorf("%q %v", rest, got)
	}
}
