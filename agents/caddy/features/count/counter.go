package count

import (
	"net/http"
	"sync"
	"sync/atomic"

	"edge.svc/caddy/exchange"
)

// maxKeys is how many statuses and names a counter has room for in a process; further names count as other.
const maxKeys = 2000

// counter counts one site, or the node. It lies beside the plans of the site and outlives their versions. Its figures
// only grow until the one who flushes takes them. What every request reads comes first: with thousands of sites it is in
// no cache, and each line of memory is waited for.
type counter struct {
	exchange.Account
	requests atomic.Uint64
	// nil until something is listed.
	lists atomic.Pointer[lists]
	// By status and name: the first ones here, further ones in a table. A table is never changed: a new key makes a new
	// one, which shares the figures.
	first   [firstFigures]firstFigure
	keyed   atomic.Pointer[[]keyedFigure]
	latency [exchange.LatencyBuckets]smallFigure
	cached  cacheFigures
	fixed   [fixedCounts]smallFigure

	siteID string
	// Answers 5xx that no edge made.
	originErrors atomic.Uint64
	// Why a request failed last.
	cause atomic.Uint32
	fared fared
	grow  sync.Mutex
	rules ruleFigures
}

// smallFigure is a figure of which each counter has many. It is emptied each second, long before it is full.
type smallFigure = atomic.Uint32

// cacheFigures count what the cache did for a site.
type cacheFigures struct{ hits, misses, hitBytes atomic.Uint64 }

// answered counts a response that begins to leave.
func (f *cacheFigures) answered(state exchange.CacheState) {
	if state.Hit {
		f.hits.Add(1)
	} else if state.Miss {
		f.misses.Add(1)
	}
}

// firstFigures is for the statuses that most sites answer with most often.
const firstFigures = 4

type firstFigure struct {
	// 0 while it is free; it is given once.
	field atomic.Uint32
	n     atomic.Uint64
}

type keyedFigure struct {
	field field
	n     *atomic.Uint64
}

// add counts under a field of its own.
func (c *counter) add(f field) {
	n := c.find(f)
	if n == nil {
		n = c.make(f)
	}
	n.Add(1)
}

func (c *counter) find(f field) *atomic.Uint64 {
	for i := range c.first {
		switch at := &c.first[i]; field(at.field.Load()) {
		case f:
			return &at.n
		case 0:
			return nil
		}
	}
	if figures := c.keyed.Load(); figures != nil {
		for i := range *figures {
			if (*figures)[i].field == f {
				return (*figures)[i].n
			}
		}
	}
	return nil
}

func (c *counter) make(f field) *atomic.Uint64 {
	c.grow.Lock()
	defer c.grow.Unlock()
	if n := c.find(f); n != nil {
		return n
	}
	for i := range c.first {
		if at := &c.first[i]; at.field.Load() == 0 {
			at.field.Store(uint32(f))
			return &at.n
		}
	}
	var before []keyedFigure
	if figures := c.keyed.Load(); figures != nil {
		before = *figures
	}
	if len(before) >= maxKeys {
		if n := c.find(otherName); n != nil {
			return n
		}
		f = otherName
	}
	figures := append(before[:len(before):len(before)], keyedFigure{f, new(atomic.Uint64)})
	c.keyed.Store(&figures)
	return figures[len(figures)-1].n
}

// take empties the counter into put, and answers how many errors of origins were among the answers.
func (c *counter) take(put func(f field, n uint64)) (originErrors uint64) {
	received, sent := c.Take()
	give := func(f field, n uint64) {
		if n > 0 {
			put(f, n)
		}
	}
	give(fieldRequests, c.requests.Swap(0))
	give(fieldSent, sent)
	give(fieldReceived, received)
	c.cached.take(give)
	for i := range c.latency {
		if c.latency[i].Load() > 0 {
			give(fieldLatency+field(i), uint64(c.latency[i].Swap(0)))
		}
	}
	for i := range c.fixed {
		if c.fixed[i].Load() > 0 {
			give(fixedFields[i], uint64(c.fixed[i].Swap(0)))
		}
	}
	for i := range c.first {
		if at := &c.first[i]; at.n.Load() > 0 {
			give(field(at.field.Load()), at.n.Swap(0))
		}
	}
	if figures := c.keyed.Load(); figures != nil {
		for _, figure := range *figures {
			if figure.n.Load() > 0 {
				give(figure.field, figure.n.Swap(0))
			}
		}
	}
	if c.originErrors.Load() > 0 {
		originErrors = c.originErrors.Swap(0)
	}
	return originErrors
}

func (f *cacheFigures) take(give func(f field, n uint64)) {
	for _, each := range [...]struct {
		field field
		n     *atomic.Uint64
	}{{fieldCacheHits, &f.hits}, {fieldCacheMisses, &f.misses}, {fieldCacheHitBytes, &f.hitBytes}} {
		if each.n.Load() > 0 {
			give(each.field, each.n.Swap(0))
		}
	}
}

// refused counts a request that the server answered before any stage saw it.
func (c *counter) refused(status int) {
	c.requests.Add(1)
	c.add(statusField(status))
	if status >= http.StatusInternalServerError {
		c.add(nameField(edgeError("")))
	}
	c.Touch()
}
