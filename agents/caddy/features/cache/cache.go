package cache

import (
	"net"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
	"edge.svc/caddy/features/cache/freshness"
	"edge.svc/caddy/features/cache/purge"
	"edge.svc/caddy/features/cache/store"
	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
)

// Reasons beside those of package freshness.
const (
	byRule freshness.Reason = "rule"
	byRoom freshness.Reason = "room"
)

// Cache is the cache of a core.
type Cache struct {
	log         *zap.Logger
	clock       func() time.Time
	origin      exchange.Fetcher
	store       *store.Store
	marks       *purge.Marks
	purges      *purge.File
	fills       fills
	uncacheable markers
	// Responses that do not come in slices.
	whole  markers
	counts counters
	// Has the store keep to the zone of the configuration.
	limits func()
	// Closed once a site caches.
	needed chan struct{}
	need   sync.Once
}

// folder is where the zone is, below the state folder.
const folder = "cache"

// cacheDir is the folder of the zone, "" for one below the state folder.
var cacheDir = core.NewOption("cache_dir", "", nil)

var component = core.NewComponent("cache", func(c *core.Core) *Cache {
	dir := cacheDir.Of(c)
	if dir == "" {
		dir = filepath.Join(c.StateDir(), folder)
	}
	cache := &Cache{log: c.Log(), clock: c.Clock(), origin: core.Find[exchange.Fetcher](c), marks: purge.New(), fills: fills{byKey: map[string]*fill{}}, needed: make(chan struct{})}
	cache.store = store.New(store.Options{Dir: dir, Now: cache.clock, Damaged: func(id uint64, err error) {
		c.Log().Warn("a file of the cache is not what was stored; it is deleted", zap.Uint64("file", id), zap.Error(err))
	}})
	var err error
	if cache.purges, err = purge.Open(dir, cache.marks); err != nil {
		cache.log.Error("the purges cannot be read; nothing that is stored is served", zap.Error(err))
	}
	cache.limits = func() { cache.limit(c.NodeID(), c.Tables()) }
	cache.limits()
	c.OnChange(cache.limits)
	return cache
})

// Of returns the cache of a core.
func Of(c *core.Core) *Cache { return component.Of(c) }

// Restore has the store keep to the zone: the journals have said which node this is.
func (c *Cache) Restore() { c.limits() }

// Run has the store take its zone and look after it, once a site caches.
func (c *Cache) Run(stop <-chan struct{}) {
	select {
	case <-c.needed:
		if err := c.purges.Keep(); err != nil {
			c.log.Error("the purges cannot be written; nothing that is stored now is served after a restart", zap.Error(err))
		}
		c.store.Run(stop)
	case <-stop:
	}
}

// Ready reports whether responses are stored.
func (c *Cache) Ready() bool { return c.store.Ready() }

// Purge puts purges of a cluster in force, and on disk. It costs the same whatever is stored.
func (c *Cache) Purge(r *edgev1.ApplyPurgesRequest) error {
	return c.purges.Apply(r.GetClusterId(), r.GetBatches(), r.GetPlace())
}

func (c *Cache) now() time.Time {
	if c.clock == nil {
		return time.Now()
	}
	return c.clock()
}

// find returns the stored response for a request, nil where there is none that a purge left.
func (c *Cache) find(key *requestKey, in *exchange.Inbound, out *exchange.Outbound) *store.Object {
	field := sent(in, out)
	_, rest, _ := strings.Cut(key.text, store.Separator)
	o := c.store.Find(key.hash.URL, key.text, func(vary []string) uint64 {
		if len(vary) == 0 {
			return key.hash.Variant
		}
		return store.VariantOf(rest, string(freshness.AppendVariant(nil, vary, field)))
	})
	if o == nil {
		return nil
	}
	if len(o.Vary) > 0 && o.Variant != string(freshness.AppendVariant(nil, o.Vary, field)) {
		return nil
	}
	if c.absent(o.Meta, key) {
		c.store.Remove(o)
		return nil
	}
	return o
}

// absent reports whether a purge concerns a response.
func (c *Cache) absent(m *store.Meta, key *requestKey) bool {
	return c.purged(m.Position, m.Site, m.Host, m.Path, m.Tags, key)
}

func (c *Cache) purged(at store.Position, site, host, path string, tags []string, key *requestKey) bool {
	return c.marks.Absent(&purge.Stored{Position: at, Site: site, Host: host, Path: path, Query: key.query, Tags: tags,
		AnyHost: key.settings.ignoreHost, Key: key.settings})
}

// plainHost is the host that origins are told in a fill: that of the key, and a port only if the request came to it.
func plainHost(in *exchange.Inbound) string {
	if _, port, err := net.SplitHostPort(in.HostRaw); err == nil {
		return net.JoinHostPort(in.Host, port)
	}
	if strings.IndexByte(in.Host, ':') >= 0 {
		return "[" + in.Host + "]"
	}
	return in.Host
}
