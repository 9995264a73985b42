package core

import (
	"testing"

	configv1 "edge.svc/caddy/gen/svc/config/v1"
	"edge.svc/caddy/internal/edgetest"
)

func TestSitesAnswerOnTheirPorts(t *testing.T) {
	c := newCore(t)
	bound := func(http, https []uint32) *configv1.Entry {
		site := edgetest.Site(0, "a.com")
		site.HttpPorts, site.HttpsPorts = http, https
		return edgetest.Entry("site", "a", site)
	}
	for name, c2 := range map[string]struct {
		http, https                []uint32
		on80, on443, on81, tlsOn81 bool
	}{
		"names none":           {nil, nil, true, true, false, false},
		"another one as well":  {[]uint32{80, 81}, []uint32{443}, true, true, true, false},
		"one without TLS only": {[]uint32{81}, nil, false, false, true, false},
		"one with TLS only":    {nil, []uint32{81}, false, false, false, true},
	} {
		change(t, c, []*configv1.Entry{bound(c2.http, c2.https)})
		plan := PlanOfSite(c.Tables(), "a")
		for _, q := range []struct {
			port uint16
			tls  bool
			want bool
		}{{80, false, c2.on80}, {443, true, c2.on443}, {81, false, c2.on81}, {81, true, c2.tlsOn81}, {80, true, false}, {0, false, true}, {0, true, true}} {
			if got := ServesPort(plan, q.port, q.tls); got != q.want {
				t.Errorf("a site that %s, port %d, TLS %v: %v", name, q.port, q.tls, got)
			}
		}
	}
	base := c.Status().Position
	_, failed, err := c.Apply(base, edgetest.Position(base.GetRevision()+1), []*configv1.Entry{bound([]uint32{65536}, nil)}, nil)
	if err != nil || len(failed) != 1 {
		t.Errorf("a port that does not exist: %v %v", failed, err)
	}
}
