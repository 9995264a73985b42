package store

import (
	"bytes"
	"net/http"
	"testing"
	"time"
)

// zone runs a store in a folder, until the end of the test or until it is stopped.
type zone struct {
	*Store
	stop  chan struct{}
	ended chan struct{}
}

func run(t testing.TB, o Options) *zone {
	t.Helper()
	return runStore(t, New(o))
}

func runStore(t testing.TB, s *Store) *zone {
	t.Helper()
	z := &zone{s, make(chan struct{}), make(chan struct{})}
	go func() { s.Run(z.stop); close(z.ended) }()
	t.Cleanup(z.end)
	return z
}

func (z *zone) end() {
	select {
	case <-z.stop:
	default:
		close(z.stop)
	}
	<-z.ended
}

func until(t testing.TB, says string, true func() bool) {
	t.Helper()
	for begun := time.Now(); !true(); time.Sleep(time.Millisecond) {
		if time.Since(begun) > time.Minute {
			t.Fatal("never: " + says)
		}
	}
}

func open(t testing.TB, dir string) *zone {
	t.Helper()
	z := run(t, Options{Dir: dir})
	until(t, "the zone is taken", z.Ready)
	return z
}

func metaOf(key string) *Meta {
	return &Meta{Key: key, Site: "s", Host: "a.com", Path: "/x", Position: Position{3, 1, 2}, Status: 200, Lifetime: time.Minute,
		Header: http.Header{"Etag": {`"` + key + `"`}, "X": {"1", "2"}}, Received: time.UnixMilli(1e12), Tags: []string{"a"}}
}

// put stores a body under a key.
func (z *zone) put(t testing.TB, m *Meta, body []byte) *Object {
	t.Helper()
	w := z.Create()
	if w == nil {
		t.Fatal("nothing is stored")
	}
	defer w.Release()
	for len(body) > 0 {
		n := min(len(body), 10_000)
		if err := w.Write(body[:n]); err != nil {
			t.Fatal(err)
		}
		body = body[n:]
	}
	o, err := w.Commit(KeyOf(m.Key, m.Variant), m, nil)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func (z *zone) get(key string) *Object {
	return z.Find(KeyOf(key, "").URL, key, func(vary []string) uint64 { return KeyOf(key, "").Variant })
}

type gathered struct{ bytes.Buffer }

func (g *gathered) Write(p []byte) error { _, _ = g.Buffer.Write(p); return nil }
func (g *gathered) Flush() error         { return nil }

// body is what a response would have of an object; what came before a failure counts, too.
func body(o *Object, from, length int64) ([]byte, error) {
	b, err := o.Open(from)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	g := &gathered{}
	err = b.CopyTo(g, from, length)
	return g.Bytes(), err
}

// pattern is a body in which no two chunks are the same.
func pattern(n int) []byte {
	b := make([]byte, n)
	x := uint32(n) + 1
	for i := range b {
		x ^= x << 13
		x ^= x >> 17
		x ^= x << 5
		b[i] = byte(x)
	}
	return b
}
