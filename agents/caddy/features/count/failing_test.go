package count

import (
	"fmt"
	"slices"
	"testing"
	"time"

	nodev1 "edge.svc/caddy/gen/svc/node/v1"
)

func TestASiteFailsWhenManyOfItsRequestsDid(t *testing.T) {
	type second struct {
		at               time.Duration
		requests, failed uint64
	}
	for name, test := range map[string]struct {
		seconds []second
		fails   bool
	}{
		"nothing was asked":              {nil, false},
		"two failed":                     {[]second{{0, 2, 2}}, false},
		"three failed":                   {[]second{{0, 3, 3}}, true},
		"a tenth failed":                 {[]second{{0, 30, 3}}, true},
		"less than a tenth failed":       {[]second{{0, 1000, 99}}, false},
		"one in 20 s":                    {[]second{{0, 1, 1}, {20 * time.Second, 1, 1}, {40 * time.Second, 1, 1}}, true},
		"one a minute":                   {[]second{{0, 1, 1}, {60 * time.Second, 1, 1}, {120 * time.Second, 1, 1}}, false},
		"it works again for 10 s":        {[]second{{0, 9, 9}, {12 * time.Second, 3, 0}}, false},
		"it may work again":              {[]second{{0, 9, 9}, {12 * time.Second, 2, 0}}, true},
		"nobody has asked since":         {[]second{{0, 9, 9}, {49 * time.Second, 0, 0}}, true},
		"the minute is over":             {[]second{{0, 9, 9}, {70 * time.Second, 0, 0}}, false},
		"much later":                     {[]second{{0, 9, 9}, {time.Hour, 0, 0}}, false},
		"it failed, worked, fails again": {[]second{{0, 9, 9}, {12 * time.Second, 9, 0}, {13 * time.Second, 3, 3}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			var f failing
			c, begin := &counter{siteID: "a"}, time.Unix(1_800_000_000, 0)
			now := begin
			for _, s := range test.seconds {
				now = begin.Add(s.at)
				f.note(c, now, s.requests, s.failed)
				f.tell(now)
			}
			told := f.told.Load()
			if fails := told != nil && len(*told) == 1; fails != test.fails {
				t.Errorf("%v", told)
			}
		})
	}
}

func TestFailingSitesAreToldWorstFirstAndSince(t *testing.T) {
	var f failing
	begin := time.Unix(1_800_000_000, 0)
	counters := make([]*counter, maxFailing+5)
	for i := range counters {
		counters[i] = &counter{siteID: fmt.Sprintf("s%02d", i)}
		counters[i].cause.Store(uint32(causeDNS))
	}
	for s := range 3 {
		now := begin.Add(time.Duration(s) * time.Second)
		for i, c := range counters {
			f.note(c, now, 100, uint64(10+i))
		}
		f.note(&counter{}, now, 100, 100)
		f.tell(now)
	}
	told := *f.told.Load()
	if len(told) != maxFailing || !slices.IsSortedFunc(told, func(a, b *nodev1.FailingSite) int { return int(b.Failed) - int(a.Failed) }) {
		t.Fatalf("%v", told)
	}
	worst := told[0]
	if worst.SiteId != "s24" || worst.Failed != 3*34 || worst.Requests != 300 || worst.Cause != "origin-dns" || worst.SinceMs != begin.UnixMilli() {
		t.Errorf("%v", worst)
	}
	f.tell(begin.Add(time.Minute + failingPart))
	if left := f.told.Load(); len(*left) != 0 || len(f.sites) != 0 {
		t.Errorf("%v, %d", *left, len(f.sites))
	}
}
