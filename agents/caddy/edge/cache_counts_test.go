package edge

import (
	"net/http"
	"testing"

	configv1 "edge.svc/caddy/gen/svc/config/v1"
	nodev1 "edge.svc/caddy/gen/svc/node/v1"
)

func TestHitsMissesAndBytesOfHitsAreCounted(t *testing.T) {
	e := newCachingEdge(t, func(s *configv1.SiteCache) {
		s.Rules[0].StaleIfErrorSeconds, s.Rules[0].EdgeTtlSeconds = 3600, 60
	})
	e.respond(says("hello", `Etag: "v1"`))
	e.stored("/x")
	acknowledged := uint64(0)
	drained := func() *nodev1.SiteMinute {
		sums := map[string]*nodev1.SiteMinute{"a": {}}
		drainInto(e.edge, sums, &acknowledged)
		return sums["a"]
	}
	drained()
	for _, c := range []struct {
		says, method, target string
		prepare              func()
		word                 string
		hits, misses         uint64
	}{
		{"a response that is not there", "GET", "/y", func() {}, "MISS", 0, 1},
		{"a stored one", "GET", "/x", func() {}, "HIT", 1, 0},
		{"the header of a stored one", "HEAD", "/x", func() {}, "HIT", 1, 0},
		{"a method that is not cached", "POST", "/z", func() {}, "BYPASS", 0, 0},
		{"one that the origin confirms", "GET", "/x", func() { e.shift.Add(61e9) }, "REVALIDATED", 1, 0},
		{"a new version", "GET", "/x", func() { e.shift.Add(61e9); e.respond(says("world", `Etag: "v2"`)) }, "EXPIRED", 0, 1},
		{"a stale one for an error", "GET", "/x", func() { e.shift.Add(61e9); e.respond(failing) }, "STALE", 1, 0},
	} {
		c.prepare()
		w, word := e.get(c.method, c.target)
		n := drained()
		if word != c.word || n.CacheHits != c.hits || n.CacheMisses != c.misses || n.CacheHitBytes != c.hits*n.BytesSent || n.BytesSent == 0 {
			t.Errorf("%s: %s %d, %v", c.says, word, w.Code, n)
		}
	}
}

func failing(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) }
