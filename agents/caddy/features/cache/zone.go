package cache

import (
	"errors"
	"fmt"
	"maps"
	"time"

	"google.golang.org/protobuf/proto"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
)

// zone is the disk space of the cluster's nodes. The zero value is the default.
type zone struct {
	maxBytes int64
	inactive time.Duration
}

const maxSizeGb = 65536

var (
	zoneSetting = exchange.NewSetting("cache-zone", zone{})
	// Sizes of single nodes in bytes, by their ids.
	sizes   = exchange.NewSetting("node-cache", map[string]int64(nil))
	errZone = errors.New("the cache zone has a value that is not allowed")
)

func init() {
	core.SettingKind("cache-zone", zoneSetting, compileZone)
	core.RegisterKind(core.Kind{Name: "node-cache", Compile: compileSize, Remove: removeSize})
}

func compileZone(m *configv1.CacheZone) (zone, error) {
	if m.GetMaxSizeGb() < 1 || m.GetMaxSizeGb() > maxSizeGb || m.GetInactiveDays() < 1 || m.GetInactiveDays() > 90 {
		return zone{}, errZone
	}
	return zone{int64(m.GetMaxSizeGb()) << 30, time.Duration(m.GetInactiveDays()) * 24 * time.Hour}, nil
}

func compileSize(_ *core.Core, id string, body []byte) (core.Change, error) {
	m := &configv1.NodeCache{}
	if err := proto.Unmarshal(body, m); err != nil {
		return nil, fmt.Errorf("the body holds no size of a cache: %w", err)
	}
	if m.GetMaxSizeGb() < 1 || m.GetMaxSizeGb() > maxSizeGb {
		return nil, errZone
	}
	return func(e *core.Edit) { setSize(e, id, int64(m.GetMaxSizeGb())<<30) }, nil
}

func removeSize(e *core.Edit, id string) { setSize(e, id, 0) }

// setSize gives a node a size of its own; 0 is none.
func setSize(e *core.Edit, id string, bytes int64) {
	next := maps.Clone(sizes.Of(e.Tables))
	if next == nil {
		next = map[string]int64{}
	}
	if next[id] = bytes; bytes == 0 {
		delete(next, id)
	}
	sizes.Set(e.Tables, next)
}

// limit has the store keep to the zone of the configuration.
func (c *Cache) limit(nodeID string, t *exchange.Tables) {
	z := zoneSetting.Of(t)
	if own := sizes.Of(t)[nodeID]; own > 0 {
		z.maxBytes = own
	}
	c.store.SetLimits(z.maxBytes, z.inactive)
}
