package edgetest

import (
	"testing"

	configv1 "edge.svc/caddy/gen/svc/config/v1"
	nodev1 "edge.svc/caddy/gen/svc/node/v1"
)

// Applier is a core. It is named here by what it does, because the tests of the core use this package.
type Applier interface {
	Position() *nodev1.ConfigPosition
	Apply(base, target *nodev1.ConfigPosition, upserts []*configv1.Entry, deletes []*configv1.EntryKey, unserved ...*configv1.EntryKey) (*nodev1.ConfigPosition, []*nodev1.FailedEntry, error)
}

// Change applies entries and deletes to whatever a core holds, and returns what fails now.
func Change(t testing.TB, c Applier, upserts []*configv1.Entry, deletes ...*configv1.EntryKey) []*nodev1.FailedEntry {
	t.Helper()
	base := c.Position()
	_, failed, err := c.Apply(base, Position(base.GetRevision()+1), upserts, deletes)
	if err != nil {
		t.Fatal(err)
	}
	return failed
}
