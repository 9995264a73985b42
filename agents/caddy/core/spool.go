package core

import (
	"path/filepath"

	"edge.svc/caddy/internal/spool"
)

// Spool keeps request bodies until they are inspected or complete. All features share it.
var Spool = NewComponent("spool of request bodies", func(c *Core) *spool.Spool {
	return spool.New(filepath.Join(c.StateDir(), "spool"))
})
