package handshake

import (
	"container/list"
	"errors"
	"sync"
	"time"
)

// errPanicked says that parsing a certificate panicked.
var errPanicked = errors.New("cannot read the certificate")

// cacheBytes bounds the memory of certificates that are parsed.
const cacheBytes = 64 << 20

// triedBytes bounds those of which entries were tried: enough for a certificate of many sites to be parsed once.
const triedBytes = 1 << 20

// unusableBytes is what remembering a certificate takes that cannot be used.
const unusableBytes = 512

// cache holds certificates that were asked for, parsed. Each is parsed once, however many ask for it at a time; the
// one that was not asked for the longest goes when there is no room. One that cannot be used is remembered, too, so that
// asking for it again costs nothing.
type cache struct {
	pack *pack
	most int64
	now  func() time.Time

	mu    sync.Mutex
	held  map[fingerprint]*cached
	order list.List
	bytes int64
}

type cached struct {
	id   fingerprint
	name string
	// Closed when the rest is there.
	ready chan struct{}
	made  *certificate
	err   error

	// Under the lock of the cache.
	place *list.Element
	bytes int64
	used  time.Time
}

func newCache(pack *pack, most int64, now func() time.Time) *cache {
	return &cache{pack: pack, most: most, now: now, held: map[fingerprint]*cached{}}
}

// get returns a certificate; name is for reports.
func (c *cache) get(id fingerprint, name string) (*certificate, error) {
	now := c.now()
	c.mu.Lock()
	entry := c.held[id]
	if entry != nil {
		c.order.MoveToFront(entry.place)
		entry.used, entry.name = now, name
		c.mu.Unlock()
		<-entry.ready
		return entry.made, entry.err
	}
	entry = &cached{id: id, name: name, ready: make(chan struct{}), used: now}
	entry.place = c.order.PushFront(entry)
	c.held[id] = entry
	c.mu.Unlock()

	defer c.settle(entry)
	material, staple, err := c.pack.get(id)
	if err != nil {
		entry.err = err
		// Neither what is not there yet nor a disk that fails lasts.
		c.forget(entry)
		return nil, err
	}
	entry.made, entry.err = parse(id, material, staple)
	return entry.made, entry.err
}

func (c *cache) forget(entry *cached) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held[entry.id] == entry {
		c.remove(entry)
	}
}

// settle counts what an entry takes and makes room for it.
func (c *cache) settle(entry *cached) {
	if entry.made == nil && entry.err == nil {
		entry.err = errPanicked
	}
	close(entry.ready)
	size := int64(unusableBytes)
	if entry.made != nil {
		size = entry.made.size
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held[entry.id] != entry {
		return
	}
	entry.bytes = size
	c.bytes += size
	for c.bytes > c.most && c.order.Len() > 1 {
		c.remove(c.order.Back().Value.(*cached))
	}
}

// drop forgets a certificate of which the pack has something else now.
func (c *cache) drop(id fingerprint) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if entry := c.held[id]; entry != nil {
		c.remove(entry)
	}
}

func (c *cache) remove(entry *cached) {
	delete(c.held, entry.id)
	c.order.Remove(entry.place)
	c.bytes -= entry.bytes
}

// parsed is how many certificates are held.
func (c *cache) parsed() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.held)
}

// each calls f for every certificate that was asked for since a time, with what is wrong with it. Those that are being
// parsed are left out.
func (c *cache) each(since time.Time, f func(name string, made *certificate, err error)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for at := c.order.Front(); at != nil; at = at.Next() {
		entry := at.Value.(*cached)
		select {
		case <-entry.ready:
			if entry.used.After(since) {
				f(entry.name, entry.made, entry.err)
			}
		default:
		}
	}
}
