package core_test

import (
	"errors"
	"strings"
	"testing"

	"edge.svc/caddy/core"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
	"edge.svc/caddy/internal/edgetest"
)

// arrived is what entries of the kind "late" wait for.
var arrived = map[string]bool{}

var late = core.PartOf("late", "test: late", func(_ *core.Core, _ string, m *configv1.ClientIp) (*greeting, error) {
	switch text := m.GetHeader(); {
	case text == "never":
		return nil, errors.New("it never compiles")
	case !arrived[text]:
		return nil, core.Later(errors.New(text + " has not arrived"))
	default:
		return &greeting{text}, nil
	}
})

func TestEntriesThatMayCompileLaterAreTriedAgain(t *testing.T) {
	entry := func(site, text string) *configv1.Entry {
		return edgetest.Entry("late", site, &configv1.ClientIp{Header: text})
	}
	c := core.New(core.Options{StateDir: t.TempDir()})
	arrived["early"] = true
	edgetest.Change(t, c, []*configv1.Entry{siteOfTest("a", "a.com"), siteOfTest("b", "b.com"), entry("a", "early")})
	failed := edgetest.Change(t, c, []*configv1.Entry{entry("a", "one"), entry("b", "two"), entry("c", "never")})
	if len(failed) != 3 {
		t.Fatal(failed)
	}
	text := func(host string) string {
		if v := late.Of(core.PlanOfHost(c.Tables(), host)); v != nil {
			return v.text
		}
		return ""
	}
	if _, failed := c.Retry("late"); len(failed) != 3 || text("a.com") != "early" {
		t.Errorf("%v, %s", failed, text("a.com"))
	}
	arrived["one"] = true
	before := c.Position()
	position, failed := c.Retry("late")
	if len(failed) != 2 || text("a.com") != "one" || text("b.com") != "" || position != before {
		t.Errorf("%v, %s, %s", failed, text("a.com"), text("b.com"))
	}
	if len(failed) == 2 && !strings.Contains(failed[0].GetReason(), "two has not arrived") {
		t.Error(failed)
	}
	// What was taken back meanwhile is not tried again.
	edgetest.Change(t, c, nil, edgetest.Key("late", "b"))
	arrived["two"] = true
	if _, failed := c.Retry("late"); len(failed) != 1 || text("b.com") != "" {
		t.Errorf("%v, %q", failed, text("b.com"))
	}
}

func TestDomainOfAHost(t *testing.T) {
	c := core.New(core.Options{StateDir: t.TempDir()})
	edgetest.Change(t, c, []*configv1.Entry{siteOfTest("a", "~x[0-9]\\.[a-z.]+", ".b.com", "*.a.b.com", ".a.b.com", "x1.a.b.com", "b.com")})
	for host, want := range map[string]string{
		"b.com": "b.com", "x1.a.b.com": "x1.a.b.com", "x2.a.b.com": "a.b.com", "y.x2.a.b.com": "a.b.com", "a.b.com": "b.com", "x3.other": "x[0-9]\\.[a-z.]+",
	} {
		plan := core.PlanOfHost(c.Tables(), host)
		if got, ok := core.DomainOf(plan, host); !ok || got.Name != want {
			t.Errorf("%s: %v", host, got)
		}
	}
	plan := core.PlanOfHost(c.Tables(), "b.com")
	if got, _ := core.DomainOf(plan, "x2.a.b.com"); got.Form != configv1.DomainForm_DOMAIN_FORM_WILDCARD {
		t.Error(got)
	}
	if got, ok := core.DomainOf(plan, "elsewhere.com"); ok {
		t.Error(got)
	}
}
