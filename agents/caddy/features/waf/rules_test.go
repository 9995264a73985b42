package waf

import (
	"net/http"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/corazawaf/coraza/v3/types"
	"github.com/corazawaf/coraza/v3/types/variables"

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

// removals counts what is taken out of a transaction.
type removals struct{ rules, targets int }

func (r *removals) RemoveRuleByID(int)           { r.rules++ }
func (r *removals) RemoveRuleByIDRange(int, int) { r.rules++ }
func (r *removals) RemoveRuleTargetByID(int, variables.RuleVariable, string, *regexp.Regexp) {
	r.targets++
}

// Of as many exclusions as a site may have, those cost that are for what a request has.
func TestExclusionsCostWhatTheyAreFor(t *testing.T) {
	const argument = configv1.WafPart_WAF_PART_ARGUMENT
	s := settingsOf(t, func(m *configv1.SiteWaf) {
		for i := range 40 {
			m.Exclusions = append(m.Exclusions, &configv1.WafExclusion{
				Rules: &configv1.WafExclusion_Tag{Tag: "attack-sqli"}, Part: argument, Name: "A" + strconv.Itoa(i),
			})
		}
		m.Exclusions = append(m.Exclusions,
			&configv1.WafExclusion{Rules: &configv1.WafExclusion_Rule{Rule: 942100}, Part: argument, Name: "json.*.b"},
			&configv1.WafExclusion{Rules: &configv1.WafExclusion_Rule{Rule: 942100}, Path: "/other", Part: argument, Name: "a3"},
			&configv1.WafExclusion{Rules: &configv1.WafExclusion_Rule{Rule: 942110}, Part: configv1.WafPart_WAF_PART_ALL},
		)
	})
	sql := len(s.exclusions[0].rules)
	for _, c := range []struct {
		names                 []string
		rules, targets, other int
	}{
		{nil, 1, 0, 41},
		{[]string{"b"}, 1, 0, 41},
		{[]string{"a3"}, 1, sql * len(partVariables[argument]), 40},
		{[]string{"A3", "a3", "a4"}, 1, 2 * sql * len(partVariables[argument]), 39},
		{[]string{"json.7.B"}, 1, len(partVariables[argument]), 40},
	} {
		removed := new(removals)
		named := make([]types.MatchData, len(c.names))
		for i, name := range c.names {
			named[i] = &fakeMatch{key: name}
		}
		others := excludeParts(removed, s.exclude(removed, asked("GET", "/", "").Target()), argument, named)
		if removed.rules != c.rules || removed.targets != c.targets || len(others) != c.other {
			t.Errorf("%q: %+v, %d others", c.names, *removed, len(others))
		}
	}
}

type fakeMatch struct {
	types.MatchData
	key string
}

func (f *fakeMatch) Key() string { return f.key }
