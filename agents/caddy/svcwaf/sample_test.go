package svcwaf

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
	all := 0
	for site := range 1000 {
		all += count(fmt.Sprint(site), 7, true)
	}
	if all != maxTold || len(s.sites) > maxTold {
		t.Errorf("%d requests, %d sites", all, len(s.sites))
	}
}
