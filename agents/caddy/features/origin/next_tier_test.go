package origin

import (
	"bufio"
	"net"
	"strings"
	"testing"

	configv1 "edge.svc/caddy/gen/svc/config/v1"
)

const busy = "HTTP/1.1 503 Busy\r\nContent-Length: 4\r\nRetry-After: 7\r\n\r\nbusy"

func backupAt(id, address string) *configv1.Origin {
	o := originAt(id, address)
	o.Backup = true
	return o
}

// An origin's own response says more than an error of the edge about another one.
func TestAnOriginsOwnResponseWinsOverErrorsOfTheEdge(t *testing.T) {
	own, _ := answering(t, busy)
	closing := newRawOrigin(t, func(c net.Conn, _ int64) { _, _, _ = readRequest(bufio.NewReader(c)) })
	garbage := once(t, "nonsense\r\n\r\n")
	other := once(t, "HTTP/1.1 502 Bad\r\nContent-Length: 3\r\n\r\nbad")
	large := once(t, "HTTP/1.1 504 Slow\r\nContent-Length: 100000\r\n\r\n"+strings.Repeat("x", 100_000))
	a := originAt("a", own.Addr().String())
	for name, c := range map[string]struct {
		origins []*configv1.Origin
		status  int
		body    string
	}{
		"dead after it":         {[]*configv1.Origin{a, originAt("b", dead)}, 503, "busy"},
		"two dead after it":     {[]*configv1.Origin{a, originAt("b", dead), originAt("c", dead)}, 503, "busy"},
		"dead before it":        {[]*configv1.Origin{originAt("b", dead), a}, 503, "busy"},
		"closing after it":      {[]*configv1.Origin{a, originAt("b", closing.Addr().String())}, 503, "busy"},
		"garbage after it":      {[]*configv1.Origin{a, originAt("b", garbage.Addr().String())}, 503, "busy"},
		"forbidden after it":    {[]*configv1.Origin{a, originAt("b", "10.0.0.1:80")}, 503, "busy"},
		"a dead backup":         {[]*configv1.Origin{a, backupAt("b", dead)}, 503, "busy"},
		"a large one":           {[]*configv1.Origin{originAt("l", large.Addr().String()), originAt("b", dead)}, 504, strings.Repeat("x", 100_000)},
		"of two, the later one": {[]*configv1.Origin{a, originAt("b", other.Addr().String()), originAt("c", dead)}, 502, "bad"},
		"all dead":              {[]*configv1.Origin{originAt("b", dead), originAt("c", dead)}, 502, "edge: origin-unreachable"},
	} {
		for range 2 {
			e := newEdge(t, settings(), c.origins...)
			if status, body := e.get("/"); status != c.status || body != c.body {
				t.Errorf("%s: got %d %.80q", name, status, body)
			}
		}
	}
	// Connections of responses that were set aside serve again.
	before := own.connections.Load()
	e := newEdge(t, settings(func(p *configv1.OriginPool) { p.MaxFails = 100 }), a, originAt("b", dead))
	for range 6 {
		e.wantGet("/", 503, "busy")
	}
	if n := own.connections.Load() - before; n != 1 {
		t.Errorf("%d connections", n)
	}
}

// Without a response of an origin, the error of the edge is that of the origin that had most to do with the request.
func TestTheMostTellingErrorOfTheEdgeWins(t *testing.T) {
	end := make(chan struct{})
	hanging := newRawOrigin(t, func(c net.Conn, _ int64) {
		_, _, _ = readRequest(bufio.NewReader(c))
		<-end
	})
	defer close(end)
	hangs, refuses, forbidden := originAt("h", hanging.Addr().String()), originAt("d", dead), originAt("f", "10.0.0.1:80")
	for name, c := range map[string]struct {
		origins []*configv1.Origin
		status  int
		body    string
	}{
		"silent, then dead":    {[]*configv1.Origin{hangs, refuses}, 504, "edge: origin-timeout"},
		"dead, then silent":    {[]*configv1.Origin{refuses, hangs}, 504, "edge: origin-timeout"},
		"dead, then forbidden": {[]*configv1.Origin{refuses, forbidden}, 502, "edge: origin-unreachable"},
		"forbidden, then dead": {[]*configv1.Origin{forbidden, refuses}, 502, "edge: origin-unreachable"},
		"forbidden alone":      {[]*configv1.Origin{forbidden, forbidden}, 502, "edge: no-origin"},
	} {
		e := newEdge(t, settings(func(p *configv1.OriginPool) { p.ReadTimeoutMs = 100 }), c.origins...)
		if status, body := e.get("/"); status != c.status || body != c.body {
			t.Errorf("%s: got %d %q", name, status, body)
		}
	}
}

// The request that finds the primaries out is served, too, not only those after it.
func TestARequestGoesOnToBackupsWhileTriesRemain(t *testing.T) {
	good, seen := answering(t, okAnswer)
	bad, _ := answering(t, busy)
	secure := backupAt("s", good.Addr().String())
	secure.Https = true
	for name, c := range map[string]struct {
		origins []*configv1.Origin
		tries   uint32
		method  string
		status  int
	}{
		"primary refuses":                  {[]*configv1.Origin{originAt("a", dead), backupAt("b", good.Addr().String())}, 3, "GET", 200},
		"a POST that nobody has":           {[]*configv1.Origin{originAt("a", dead), backupAt("b", good.Addr().String())}, 3, "POST", 200},
		"primary is busy":                  {[]*configv1.Origin{originAt("a", bad.Addr().String()), backupAt("b", good.Addr().String())}, 3, "GET", 200},
		"a POST that somebody has":         {[]*configv1.Origin{originAt("a", bad.Addr().String()), backupAt("b", good.Addr().String())}, 3, "POST", 503},
		"two primaries":                    {[]*configv1.Origin{originAt("a", dead), originAt("c", dead), backupAt("b", good.Addr().String())}, 3, "GET", 200},
		"two backups":                      {[]*configv1.Origin{originAt("a", dead), backupAt("c", dead), backupAt("b", good.Addr().String())}, 3, "GET", 200},
		"no try is left":                   {[]*configv1.Origin{originAt("a", dead), originAt("c", dead), backupAt("b", good.Addr().String())}, 2, "GET", 502},
		"one try":                          {[]*configv1.Origin{originAt("a", dead), backupAt("b", good.Addr().String())}, 1, "GET", 502},
		"what cannot be tried is no try":   {[]*configv1.Origin{originAt("a", "10.0.0.1:80"), backupAt("b", good.Addr().String())}, 1, "GET", 200},
		"never between http and https":     {[]*configv1.Origin{originAt("a", dead), secure}, 3, "GET", 502},
		"a primary that works is enough":   {[]*configv1.Origin{originAt("a", good.Addr().String()), backupAt("b", dead)}, 3, "GET", 200},
		"a dead primary beside a good one": {[]*configv1.Origin{originAt("a", dead), originAt("c", good.Addr().String()), backupAt("b", dead)}, 3, "GET", 200},
	} {
		for _, policy := range []configv1.BalancePolicy{configv1.BalancePolicy_BALANCE_POLICY_ROUND_ROBIN, configv1.BalancePolicy_BALANCE_POLICY_CONSISTENT_HASH, configv1.BalancePolicy_BALANCE_POLICY_WEIGHTED_RANDOM} {
			e := newEdge(t, settings(func(p *configv1.OriginPool) { p.Tries, p.Policy = c.tries, policy }), c.origins...)
			if status, body := e.send(c.method, "/", nil); status != c.status {
				t.Errorf("%s, %v: got %d %q", name, policy, status, body)
			}
			for len(seen) > 0 {
				<-seen
			}
		}
	}
}
