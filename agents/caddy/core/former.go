package core

import (
	"path/filepath"

	"go.uber.org/zap"

	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
)

// ReadFormer reads a journal of the state folder in which the agent keeps what a former process held, record by record,
// and says whether it is to be used: one of another cluster is not. Damage is logged only, because the agent reports and
// repairs that journal itself; a torn tail is what a write in progress looks like.
func (c *Core) ReadFormer(name string, take func(*edgev1.JournalRecord)) bool {
	header, d := ReadJournal(filepath.Join(c.stateDir, name), take)
	if d.Text != "" && !d.Torn {
		c.log.Warn("a journal is damaged", zap.String("journal", name), zap.String("damage", d.Text))
	}
	return header != nil && c.IsOfCluster(header.GetClusterId())
}

// IsOfCluster says whether a file of this cluster is one of the configuration's. While there is no configuration nothing
// is known, and nothing served.
func (c *Core) IsOfCluster(id string) bool {
	c.notesMu.Lock()
	defer c.notesMu.Unlock()
	return c.clusterID == "" || id == c.clusterID
}
