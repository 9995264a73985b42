package challenge

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"go.uber.org/zap"

	"edge.svc/caddy/core"
)

const challengeKeys = "challenge-keys.json"

// keptKeys gives a new process the keys that the agent keeps. The agent sends them again when it finds the process, but
// it need not be there.
type keptKeys struct{ core *core.Core }

var _ = core.NewComponent("kept challenge keys", func(c *core.Core) *keptKeys { return &keptKeys{c} })

// Restore reads the keys when the process starts. Those of another cluster are not used.
func (k *keptKeys) Restore() {
	keys, cluster, err := ReadKeys(filepath.Join(k.core.StateDir(), challengeKeys))
	if err == nil && keys.Current != nil && k.core.IsOfCluster(cluster) {
		err = Of(k.core).SetKeys(keys)
	}
	if err != nil {
		k.core.Log().Warn("cannot read the challenge keys from disk; the agent will send them", zap.Error(err))
	}
}

// keyFile is the file in which the agent keeps the challenge keys.
type keyFile struct {
	ClusterID string `json:"clusterId"`
	// Decimal.
	Version string `json:"version"`
	Keys    struct {
		Next, Current, Previous *struct {
			ID     string `json:"id"`
			Secret []byte `json:"secret"`
		}
	} `json:"keys"`
}

// ErrKeyFile says that a file holds no challenge keys that can be used. It says no more: a parser's words may quote what
// it could not read, and that may be a secret.
var ErrKeyFile = errors.New("cannot read the file of challenge keys")

// ReadKeys reads the keys that the agent keeps and the cluster they are of. Without a file there are none, which is no
// error.
func ReadKeys(path string) (keys Keys, clusterID string, err error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Keys{}, "", nil
	}
	if err != nil {
		return Keys{}, "", err
	}
	var file keyFile
	if json.Unmarshal(text, &file) != nil {
		return Keys{}, "", ErrKeyFile
	}
	if keys.Version, err = strconv.ParseUint(file.Version, 10, 64); err != nil {
		return Keys{}, "", ErrKeyFile
	}
	if key := file.Keys.Next; key != nil {
		keys.Next = &Key{ID: key.ID, Secret: key.Secret}
	}
	if key := file.Keys.Current; key != nil {
		keys.Current = &Key{ID: key.ID, Secret: key.Secret}
	}
	if key := file.Keys.Previous; key != nil {
		keys.Previous = &Key{ID: key.ID, Secret: key.Secret}
	}
	return keys, file.ClusterID, nil
}
