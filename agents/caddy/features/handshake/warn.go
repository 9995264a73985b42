package handshake

import (
	"fmt"
	"slices"
	"time"
)

const (
	// Certificates that were asked for within this time are warned of.
	recently = time.Hour
	// And so many of each kind are named.
	maxWarnings = 10
)

// warnings names certificates that clients ask for and that have expired or cannot be used.
func (t *Terminator) warnings() []string {
	now := t.core.Now()
	var expired, unusable []string
	t.cache.each(now.Add(-recently), func(name string, made *certificate, err error) {
		switch {
		case err != nil:
			unusable = append(unusable, fmt.Sprintf("certificate %q cannot be used: %v", name, err))
		case now.After(made.plain.Leaf.NotAfter):
			expired = append(expired, fmt.Sprintf("certificate %q expired %s and is still given to clients", name, made.plain.Leaf.NotAfter.UTC().Format(time.DateOnly)))
		}
	})
	return slices.Concat(named(expired, "certificates expired and are still given to clients"), named(unusable, "certificates cannot be used"))
}

// named bounds a list of warnings.
func named(list []string, what string) []string {
	slices.Sort(list)
	if len(list) <= maxWarnings {
		return list
	}
	return append(list[:maxWarnings:maxWarnings], fmt.Sprintf("%d %s, %d of them are named", len(list), what, maxWarnings))
}
