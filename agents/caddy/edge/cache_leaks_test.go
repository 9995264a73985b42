package edge

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	configv1 "edge.svc/caddy/gen/svc/config/v1"
	"edge.svc/caddy/internal/ruletest"
)

// leakCase is one field of the matrix: two clients, what the origin says, and the flags of the rule.
type leakCase struct {
	flags     int
	a, b      client
	control   string
	vary      string
	setCookie bool
}

type client struct{ name, cookie, authorization string }

var clients = []client{
	{"nobody", "", ""}, {"alice", "session=alice", ""}, {"bob", "", "Bearer bob"}, {"carol", "session=carol", "Bearer carol"},
}

const (
	flagOverride = 1 << iota
	flagAuthorized
	flagSetCookie
	flagsEnd
)

// mayShare reports whether the second client may get the response to the first.
func (c *leakCase) mayShare() bool {
	override, authorized := c.flags&flagOverride != 0, c.flags&flagAuthorized != 0
	switch {
	case c.setCookie && c.flags&flagSetCookie == 0, !authorized && (c.a.authorization != "" || c.b.authorization != ""):
		return false
	case !override && (c.control == "private, max-age=60" || c.control == "no-store"):
		return false
	case !override && c.a.authorization != "" && !strings.Contains(c.control, "public"):
		return false
	case c.vary == "Cookie" && c.a.cookie != c.b.cookie, c.vary == "Authorization" && c.a.authorization != c.b.authorization:
		return false
	}
	return true
}

// The matrix of Cookie, Authorization, Vary, Set-Cookie and the flags of rules: no client gets what is another's.
func TestNothingPrivateLeaks(t *testing.T) {
	e := newCachingEdge(t, func(m *configv1.SiteCache) {
		m.Rules = nil
		for flags := range flagsEnd {
			m.Rules = append(m.Rules, always(func(r *configv1.CacheRule) {
				r.Priority = uint32(flags)
				r.OverrideOrigin, r.CacheAuthorized, r.CacheSetCookie = flags&flagOverride != 0, flags&flagAuthorized != 0, flags&flagSetCookie != 0
				r.Condition = ruletest.Encode(ruletest.Call("starts_with", ruletest.Field("http.request.uri.path"), fmt.Sprint("/", flags, "/")))
			}))
		}
	})
	var c leakCase
	e.respond(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", c.control)
		if c.vary != "" {
			w.Header().Set("Vary", c.vary)
		}
		if c.setCookie {
			w.Header().Set("Set-Cookie", "token="+r.Header.Get("X-Name"))
		}
		_, _ = io.WriteString(w, r.Header.Get("X-Name"))
	})
	ask := func(path string, who client) (body, cookie string) {
		lines := []string{"X-Name: " + who.name}
		if who.cookie != "" {
			lines = append(lines, "Cookie: "+who.cookie)
		}
		if who.authorization != "" {
			lines = append(lines, "Authorization: "+who.authorization)
		}
		w, _ := e.get("GET", path, lines...)
		return w.Body.String(), w.Header().Get("Set-Cookie")
	}
	n, shared := 0, 0
	for flags := range flagsEnd {
		for _, control := range []string{"max-age=60", "public, max-age=60", "private, max-age=60", "no-store"} {
			for _, vary := range []string{"", "Cookie", "Authorization"} {
				for _, setCookie := range []bool{false, true} {
					for _, a := range clients {
						for _, b := range clients[:3] {
							n++
							c = leakCase{flags, a, b, control, vary, setCookie}
							path := fmt.Sprint("/", flags, "/", n)
							if body, _ := ask(path, a); body != a.name {
								t.Fatalf("%+v: the first response is %q", c, body)
							}
							body, cookie := ask(path, b)
							switch {
							case body != b.name && !c.mayShare():
								t.Errorf("%+v: the response of %s leaks", c, a.name)
							case cookie != "" && cookie != "token="+b.name:
								t.Errorf("%+v: the cookie of %s leaks", c, a.name)
							case body != b.name:
								shared++
							}
						}
					}
				}
			}
		}
	}
	if shared < n/10 {
		t.Errorf("of %d responses only %d were shared: the matrix shows nothing", n, shared)
	}
}
