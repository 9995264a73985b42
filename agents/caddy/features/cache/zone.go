package cache

import (
	"errors"
	"time"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
)

// zone is the disk space of the cluster's nodes. The zero value is the default.
type zone struct {
	maxBytes int64
	inactive time.Duration
}

var (
	zoneSetting = exchange.NewSetting("cache-zone", zone{})
	errZone     = errors.New("the cache zone has a value that is not allowed")
)

func init() { core.SettingKind("cache-zone", zoneSetting, compileZone) }

func compileZone(m *configv1.CacheZone) (zone, error) {
	if m.GetMaxSizeGb() < 1 || m.GetMaxSizeGb() > 65536 || m.GetInactiveDays() < 1 || m.GetInactiveDays() > 90 {
		return zone{}, errZone
	}
	return zone{int64(m.GetMaxSizeGb()) << 30, time.Duration(m.GetInactiveDays()) * 24 * time.Hour}, nil
}

// limit has the store keep to the zone of the configuration.
func (c *Cache) limit(t *exchange.Tables) {
	z := zoneSetting.Of(t)
	c.store.SetLimits(z.maxBytes, z.inactive)
}
