package exchange

import (
	"slices"
	"testing"
)

// Of what matched the first 16 rules are told.
func TestRulesThatAreTold(t *testing.T) {
	var all []int
	for id := range 20 {
		o := WAFOutcome{Rules: slices.Clone(all)}
		if told := o.Logged(); len(told) != min(id, 16) || !slices.Equal(told, all[:len(told)]) {
			t.Errorf("%v of %v", told, all)
		}
		all = append(all, 942100+id)
	}
}
