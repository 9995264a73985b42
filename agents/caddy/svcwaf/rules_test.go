package svcwaf

import (
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"sync"
	"testing"

	configv1 "edge.svc/caddy/gen/svc/config/v1"
)

// What requests leave out of a rule is appended to the rule's own list: with room in it, to the same place by all.
func TestNoRuleHasRoomThatRequestsShare(t *testing.T) {
	rules, err := component.Of(sharedCore()).need()
	if err != nil {
		t.Fatal(err)
	}
	all := reflect.ValueOf(rules.waf).FieldByName("waf").Elem().FieldByName("Rules").FieldByName("rules")
	lists := 0
	for i := range all.Len() {
		for rule := all.Index(i); rule.IsValid(); rule = rule.FieldByName("Chain").Elem() {
			variables := rule.FieldByName("variables")
			for j := range variables.Len() {
				list := variables.Index(j).FieldByName("Exceptions")
				if list.Len() > 0 {
					lists++
				}
				if list.Cap() != list.Len() {
					t.Errorf("rule %d has %d parts left out and room for %d", rule.FieldByName("ID_").Int(), list.Len(), list.Cap())
				}
			}
		}
	}
	if lists < 10 {
		t.Errorf("%d lists", lists)
	}
}

// An exclusion of a header is that site's alone, in the rule that leaves out most.
func TestExclusionsOfHeadersAtOnce(t *testing.T) {
	const rule, name = 920274, "X-Note"
	paranoid := func(m *configv1.SiteWaf) { m.ParanoiaLevel = 4 }
	sites := []*settings{settingsOf(t, paranoid)}
	for _, header := range []string{name, "X-Other", "X-Third"} {
		sites = append(sites, settingsOf(t, func(m *configv1.SiteWaf) {
			paranoid(m)
			m.Exclusions = []*configv1.WafExclusion{{
				Rules: &configv1.WafExclusion_Rule{Rule: rule}, Part: configv1.WafPart_WAF_PART_HEADER, Name: header,
			}}
		}))
	}
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() {
			for i := range 20 {
				at := (worker + i) % len(sites)
				v := judge(t, sites[at], asked(http.MethodGet, "/", "", name+": "+url.PathEscape("{}")+"{}"), "")
				if found := slices.Contains(v.rules, rule); found != (at != 1) {
					t.Errorf("site %d: %v", at, v)
				}
			}
		})
	}
	all.Wait()
}
