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
	fills       fills
	uncacheable markers
	counts      counters
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
	cache.limit(c.Tables())
	c.OnChange(func() { cache.limit(c.Tables()) })
	return cache
})

// Of returns the cache of a core.
func Of(c *core.Core) *Cache { return component.Of(c) }

// Run has the store take its zone and look after it, once a site caches.
func (c *Cache) Run(stop <-chan struct{}) {
	select {
	case <-c.needed:
		c.store.Run(stop)
	case <-stop:
	}
}

// Ready reports whether responses are stored.
func (c *Cache) Ready() bool { return c.store.Ready() }

// Purge makes absent what marks concern. It costs the same whatever is stored.
func (c *Cache) Purge(marks ...purge.Mark) { c.marks.Add(marks...) }

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
	return c.marks.Absent(&purge.Stored{Position: m.Position, Site: m.Site, Host: m.Host, Path: m.Path, Query: key.query, Tags: m.Tags})
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
