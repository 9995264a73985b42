package waf

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"sync"

	"edge.svc/caddy/exchange"
)

const (
	// What each of the two generations of verdicts takes in memory.
	maxVerdictBytes = 1 << 20
	// What one takes without its lists, and what a place of a match takes without its name.
	verdictBytes, matchBytes = 168, 72
)

// verdictKey is the digest of everything that a verdict follows from.
type verdictKey [sha256.Size]byte

// verdicts are those of requests without a body. Rules read neither the clock nor the client's address, so that the same
// request has the same verdict. What is used stays: it moves from the old generation into the young one.
type verdicts struct {
	mu         sync.Mutex
	young, old map[verdictKey]verdict
	// What the young generation takes.
	bytes int
	hits  uint64
}

// size is about what a verdict takes in memory.
func (v *verdict) size() int {
	bytes := verdictBytes + 8*cap(v.rules) + matchBytes*cap(v.matches)
	for _, m := range v.matches {
		bytes += len(m.Name)
	}
	return bytes
}

func (c *verdicts) get(key verdictKey) (v verdict, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if v, ok = c.young[key]; !ok {
		if v, ok = c.old[key]; !ok {
			return v, false
		}
		c.keep(key, v)
	}
	c.hits++
	return v, true
}

func (c *verdicts) put(key verdictKey, v verdict) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keep(key, v)
}

func (c *verdicts) keep(key verdictKey, v verdict) {
	bytes := v.size()
	if c.young == nil || c.bytes+bytes > maxVerdictBytes {
		c.young, c.old, c.bytes = make(map[verdictKey]verdict), c.young, 0
	}
	if _, known := c.young[key]; !known {
		c.young[key] = v
		c.bytes += bytes
	}
}

func (c *verdicts) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.young, c.old, c.bytes = nil, nil, 0
}

var keyRooms = sync.Pool{New: func() any { return new([]byte) }}

// keyOf makes the key of a request: settings, method, target, protocol, host and header, each with its length, so that no
// two requests are written alike.
func keyOf(x *exchange.Exchange, s *settings) verdictKey {
	room := keyRooms.Get().(*[]byte)
	defer keyRooms.Put(room)
	b := append((*room)[:0], s.id[:]...)
	b = appendPart(b, x.Method())
	b = appendPart(b, x.Target().Raw)
	b = appendPart(b, x.In.Proto)
	b = appendPart(b, x.In.HostRaw)
	var known [32]string
	names := known[:0]
	for name := range x.In.Header {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		b = appendPart(b, name)
		values := x.In.Header[name]
		b = binary.AppendUvarint(b, uint64(len(values)))
		for _, v := range values {
			b = appendPart(b, v)
		}
	}
	*room = b
	return sha256.Sum256(b)
}

func appendPart(b []byte, text string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}
