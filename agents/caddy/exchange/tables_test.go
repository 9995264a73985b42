package exchange

import (
	"maps"
	"testing"
)

func TestPlansSinceNamesWhatChanged(t *testing.T) {
	former := NewTables()
	a, b := new(Plan), new(Plan)
	for number, p := range map[uint32]*Plan{1: a, 2: b, 3 * plansInChunk: a} {
		former.SetPlan(number, p)
	}
	now := former.Clone()
	now.SetPlan(2, a)
	now.SetPlan(3, a)
	now.SetPlan(3*plansInChunk, nil)
	now.SetPlan(9*plansInChunk, b)
	since := func(now, former *Tables) map[uint32]*Plan { return maps.Collect(now.PlansSince(former)) }
	if got := since(now, former); !maps.Equal(got, map[uint32]*Plan{2: a, 3: a, 3 * plansInChunk: nil, 9 * plansInChunk: b}) {
		t.Errorf("%v", got)
	}
	if got := since(former, now); !maps.Equal(got, map[uint32]*Plan{2: b, 3: nil, 3 * plansInChunk: a, 9 * plansInChunk: nil}) {
		t.Errorf("back: %v", got)
	}
	if got := since(now, now.Clone()); len(got) > 0 {
		t.Errorf("the same: %v", got)
	}
}
