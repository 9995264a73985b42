//go:build !race

// Inspections beside each other are seen by the race detector in mixed_test.go.

package waf

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
)

const (
	// Requests of the corpus, at least.
	minBenign = 2000
	// Of a thousand, how many may be taken for an attack by a site with the usual settings.
	maxFalse = 10
)

// What people and programs send every day is no attack.
func TestBenignRequests(t *testing.T) {
	s := settingsOf(t, asIs)
	all := benignRequests(t)
	if len(all) < minBenign {
		t.Errorf("%d requests", len(all))
	}
	var (
		mu      sync.Mutex
		blocked []string
		rules   = map[int][]string{}
		workers sync.WaitGroup
	)
	next := make(chan benignRequest)
	for range 4 {
		workers.Go(func() {
			for r := range next {
				limit := min(len(r.body), int(s.bodyLimit))
				v := judgeCut(t, s, r.exchange(t), r.body[:limit], limit == len(r.body))
				mu.Lock()
				for _, id := range v.rules {
					rules[id] = append(rules[id], r.name)
				}
				if v.score >= s.threshold {
					blocked = append(blocked, fmt.Sprintf("%s: %v", r.name, v))
				}
				mu.Unlock()
			}
		})
	}
	for _, r := range all {
		next <- r
	}
	close(next)
	workers.Wait()
	slices.Sort(blocked)
	t.Logf("%d of %d are taken for attacks:\n%s", len(blocked), len(all), strings.Join(blocked, "\n"))
	for id, names := range rules {
		slices.Sort(names)
		t.Logf("rule %d matches %d: %s", id, len(names), strings.Join(names, ", "))
	}
	if len(blocked)*1000 > len(all)*maxFalse {
		t.Errorf("%d of %d are more than 1 %%", len(blocked), len(all))
	}
}
