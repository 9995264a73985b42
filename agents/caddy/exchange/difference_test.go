package exchange

import "testing"

func TestDifferenceIsOfWhatAnOriginIsAskedFor(t *testing.T) {
	asked := Target{Raw: "/a?b"}
	seen := map[[32]byte]string{}
	for name, out := range map[string]Outbound{
		"path":          {Target: &Target{Raw: "/b"}},
		"query":         {Target: &Target{Raw: "/a"}},
		"host":          {Host: "b.com"},
		"host header":   {HostHeader: "b.com"},
		"server name":   {SNI: "b.com"},
		"group":         {Group: "b.com"},
		"port":          {Port: 8080},
		"another port":  {Port: 8081},
		"two":           {HostHeader: "b.com", SNI: "b.com"},
		"moved borders": {HostHeader: "b.comb", SNI: ".com"},
	} {
		x := &Exchange{In: Inbound{Target: asked}, Out: out}
		sum, differs := x.Difference()
		if !differs {
			t.Errorf("%s: no difference", name)
		}
		if other, known := seen[sum]; known {
			t.Errorf("%s and %s differ in the same way", name, other)
		}
		seen[sum] = name
		if again, _ := x.Difference(); again != sum {
			t.Errorf("%s: another one the second time", name)
		}
	}
	for name, out := range map[string]Outbound{
		"nothing":           {},
		"the same target":   {Target: &Target{Raw: "/a?b"}},
		"header and method": {Method: "POST", Edits: []HeaderEdit{{Name: "X-A", Values: []string{"1"}}}},
	} {
		x := &Exchange{In: Inbound{Target: asked}, Out: out}
		if _, differs := x.Difference(); differs {
			t.Errorf("%s: a difference", name)
		}
	}
}
