package waf

import (
	"fmt"
	"testing"
)

func TestOfEachMinuteSomeRequestsOfEachSiteAreTold(t *testing.T) {
	var s sample
	count := func(site string, minute int64, attack bool) (n int) {
		for range 100 {
			if s.takes(site, minute, attack) {
				n++
			}
		}
		return n
	}
	for minute := range int64(2) {
		if a, o, b := count("a", minute, true), count("a", minute, false), count("b", minute, true); a != 10 || o != 2 || b != 10 {
			t.Errorf("%d attacks and %d others of a, %d of b", a, o, b)
		}
		if n := count("a", minute-1, true); n != 0 {
			t.Errorf("%d more that began before", n)
		}
	}
	// The clock was set back: what it says now is the minute.
	if n := count("a", 1-maxBack-1, true); n != 10 {
		t.Errorf("%d after the clock was set", n)
	}
}

// However many sites are attacked, each is heard of.
func TestEachSiteIsToldOf(t *testing.T) {
	for _, sites := range []int{6, 100, maxSitesTold + 10} {
		var s sample
		told := map[string]int{}
		all := 0
		for range maxAttacksTold {
			for i := range sites {
				for _, attack := range []bool{true, false} {
					if s.takes(fmt.Sprint(i), 7, attack) {
						told[fmt.Sprint(i)]++
						all++
					}
				}
			}
		}
		if len(told) != min(sites, maxSitesTold) || all > 2*maxSitesTold+maxFurtherTold || len(s.sites) > maxSitesTold {
			t.Errorf("%d of %d sites, %d requests", len(told), sites, all)
		}
		if sites*(maxAttacksTold+maxOthersTold) <= maxFurtherTold && all != sites*(maxAttacksTold+maxOthersTold) {
			t.Errorf("%d requests of %d sites", all, sites)
		}
	}
}
