package core

import (
	"maps"
	"slices"

	nodev1 "edge.svc/caddy/gen/svc/node/v1"
)

// laterError says that an entry fails for want of something that is no entry and still may come.
type laterError struct{ error }

func (e laterError) Unwrap() error { return e.error }

// Later marks why an entry does not compile as something that passes: the entry is kept for Retry. nil stays nil.
func Later(err error) error {
	if err == nil {
		return nil
	}
	return laterError{err}
}

// Retry compiles the entries of a kind once more that failed with Later, and has those take effect that compile now. It
// returns what Apply does; the position stays.
func (c *Core) Retry(kind string) (*nodev1.ConfigPosition, []*nodev1.FailedEntry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var ready []compiled
	for _, key := range slices.SortedFunc(maps.Keys(c.state.failed), compareKeys) {
		f := c.state.failed[key]
		if key.kind != kind || f.entry == nil {
			continue
		}
		// What still fails for the same reason is as it was.
		if again := c.compile(f.entry); again.err == nil || reasonText(again.err) != f.reason {
			ready = append(ready, again)
		}
	}
	if len(ready) > 0 {
		published := c.tables.Load()
		e := &Edit{Core: c, Tables: published.Clone(), state: c.state, published: published}
		for _, entry := range ready {
			e.put(entry)
		}
		e.settle()
		e.settleServed()
		c.publish(e.Tables)
	}
	return c.position, c.failedEntries()
}
