package handshake

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"go.uber.org/zap"

	nodev1 "edge.svc/caddy/gen/svc/node/v1"
)

const ticketKeys = "session-ticket-keys.json"

// ticketFile is the file in which the agent keeps the keys of session tickets.
type ticketFile struct {
	ClusterID string `json:"clusterId"`
	// Decimal.
	Version string `json:"version"`
	Keys    struct {
		Next, Current, Previous []byte
	} `json:"keys"`
}

// errTicketFile says that a file holds no keys that can be used, and no more: a parser's words may quote a secret.
var errTicketFile = errors.New("cannot read the file of session ticket keys")

// restoreTickets gives a new process the keys that the agent keeps: it sends them again, but need not be there. Those of
// another cluster are not used.
func (t *Terminator) restoreTickets() {
	keys, cluster, err := readTicketKeys(filepath.Join(t.core.StateDir(), ticketKeys))
	if err == nil && keys != nil && t.core.IsOfCluster(cluster) {
		err = t.tickets.set(keys)
	}
	if err != nil {
		t.core.Log().Warn("cannot read the session ticket keys from disk; the agent will send them", zap.Error(err))
	}
}

// readTicketKeys reads the keys that the agent keeps and the cluster they are of; nil without a file.
func readTicketKeys(path string) (keys *nodev1.SessionTicketKeys, clusterID string, _ error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", err
	}
	var file ticketFile
	if json.Unmarshal(text, &file) != nil {
		return nil, "", errTicketFile
	}
	version, err := strconv.ParseUint(file.Version, 10, 64)
	if err != nil {
		return nil, "", errTicketFile
	}
	return &nodev1.SessionTicketKeys{
		Version: version, Next: file.Keys.Next, Current: file.Keys.Current, Previous: file.Keys.Previous,
	}, file.ClusterID, nil
}
