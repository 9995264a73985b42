package edge

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	configv1 "edge.svc/caddy/gen/svc/config/v1"
	nodev1 "edge.svc/caddy/gen/svc/node/v1"
)

const mebi = 1 << 20

func slicing(t testing.TB) *cachingEdge {
	return newCachingEdge(t, func(m *configv1.SiteCache) { m.RangeSlice = true })
}

// version is a body that is another one at every place than that of another version.
func version(name byte, size int) string {
	b := []byte(strings.Repeat("0123456789abcdef", size/16+1)[:size])
	for i := range b {
		b[i] = b[i]*3 + name*7 + byte(i>>16)
	}
	return string(b)
}

// ranged serves a body with ranges and conditions, as http.ServeContent does.
func ranged(body, tag string, lines ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		w.Header().Set("Content-Type", "video/mp4")
		if tag != "" {
			w.Header().Set("Etag", tag)
		}
		for _, line := range lines {
			name, value, _ := strings.Cut(line, ": ")
			w.Header().Set(name, value)
		}
		http.ServeContent(w, r, "", time.Time{}, strings.NewReader(body))
	}
}

func TestResponsesInSlices(t *testing.T) {
	const size = 3*mebi + 17
	body := version('a', size)
	e := slicing(t)
	e.respond(ranged(body, `"v1"`))
	e.stored("/x", "Range: bytes=0-9")
	if e.asked.Load() != 1 {
		t.Errorf("%d requests for a part of one slice", e.asked.Load())
	}
	for _, c := range []struct {
		says, method string
		lines        []string
		status       int
		body, header string
		word         string
		asks         int64
	}{
		{"the first slice", "GET", []string{"Range: bytes=5-1048575"}, 206, body[5:mebi], "Content-Range: bytes 5-1048575/3145745", "HIT", 0},
		{"the last slice", "GET", []string{"Range: bytes=-20"}, 206, body[size-20:], "Content-Length: 20", "MISS", 2},
		{"the last slice again", "GET", []string{"Range: bytes=3145728-"}, 206, body[3*mebi:], "Content-Range: bytes 3145728-3145744/3145745", "HIT", 0},
		{"all", "GET", nil, 200, body, "Content-Length: 3145745", "HIT", 1},
		{"all again", "GET", nil, 200, body, "Content-Type: video/mp4", "HIT", 0},
		{"a part of several slices", "GET", []string{"Range: bytes=1048570-2097160", `If-Range: "v1"`}, 206, body[1048570:2097161], "Content-Length: 1048591", "HIT", 0},
		{"several ranges", "GET", []string{"Range: bytes=0-1,5-6"}, 200, body, "", "HIT", 0},
		{"If-Range with another tag", "GET", []string{"Range: bytes=0-1", `If-Range: "v2"`}, 200, body, "", "HIT", 0},
		{"a validator", "GET", []string{`If-None-Match: "v1"`}, 304, "", "", "HIT", 0},
		{"a range that is not there", "GET", []string{"Range: bytes=9999999-"}, 416, "", "Content-Range: bytes */3145745", "HIT", 0},
		{"a HEAD", "HEAD", nil, 200, "", "Content-Length: 3145745", "HIT", 0},
	} {
		asked := e.asked.Load()
		w, word := e.get(c.method, "/x", c.lines...)
		if w.Code != c.status || w.Body.String() != c.body || word != c.word {
			t.Errorf("%s: %d %s with %d bytes of %d", c.says, w.Code, word, w.Body.Len(), len(c.body))
		}
		if name, value, _ := strings.Cut(c.header, ": "); c.header != "" && w.Header().Get(name) != value {
			t.Errorf("%s: %s is %q", c.says, name, w.Header().Get(name))
		}
		// A slice is stored shortly after the client has it.
		if asks := e.asked.Load() - asked; asks > c.asks {
			t.Errorf("%s: %d requests to the origin", c.says, asks)
		}
		e.settled()
	}
	e.shift.Add(int64(70 * time.Second))
	asked := e.asked.Load()
	if w, word := e.get("GET", "/x"); word != "REVALIDATED" || w.Body.String() != body || e.asked.Load() != asked+1 {
		t.Errorf("%s after %d requests", word, e.asked.Load()-asked)
	}
	for i, p := range []*nodev1.Purge{
		{Targets: []*nodev1.PurgeTarget{{Scope: nodev1.PurgeScope_PURGE_SCOPE_URL, SiteId: "a", Host: "a.com", Path: "/x"}}},
		{SiteIds: []string{"a"}},
	} {
		e.purge(uint64(i+1), p)
		asked = e.asked.Load()
		if w, word := e.get("GET", "/x"); word != "MISS" || w.Body.String() != body || e.asked.Load() != asked+4 {
			t.Errorf("%s after a purge, %d requests", word, e.asked.Load()-asked)
		}
		e.settled()
	}
	e.respond(ranged(body, `"v1"`))
	_, _ = e.get("POST", "/x")
	asked = e.asked.Load()
	if w, word := e.get("GET", "/x", "Range: bytes=0-0"); word != "MISS" || w.Body.String() != body[:1] || e.asked.Load() != asked+1 {
		t.Errorf("%s after a POST", word)
	}
}

func TestResponsesThatDoNotComeInSlices(t *testing.T) {
	const size = 2*mebi + 5
	body := version('a', size)
	plain := func(tag string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Cache-Control", "max-age=60")
			w.Header().Set("Etag", tag)
			w.Header().Set("Content-Length", fmt.Sprint(size))
			_, _ = io.WriteString(w, body)
		}
	}
	for says, c := range map[string]struct {
		origin http.HandlerFunc
		body   string
		asks   int64
	}{
		"no ranges at the origin":       {plain(`"v1"`), body, 1},
		"a weak tag":                    {ranged(body, `W/"v1"`), body, 2},
		"no tag":                        {ranged(body, ""), body, 2},
		"a response of less than 1 MiB": {ranged(body[:99], ""), body[:99], 1},
		"an empty response":             {ranged("", `"v1"`), "", 1},
	} {
		t.Run(says, func(t *testing.T) {
			e := slicing(t)
			e.respond(c.origin)
			for _, want := range []string{"MISS", "HIT"} {
				w, word := e.get("GET", "/x")
				if word != want || w.Code != 200 || w.Body.String() != c.body || w.Header().Get("Content-Range") != "" {
					t.Errorf("%s %d with %d bytes", word, w.Code, w.Body.Len())
				}
				e.stored("/x")
			}
			if e.asked.Load() != c.asks {
				t.Errorf("%d requests to the origin", e.asked.Load())
			}
		})
	}
	t.Run("private", func(t *testing.T) {
		e := slicing(t)
		e.respond(ranged(body, `"v1"`, "Cache-Control: private"))
		for range 2 {
			if w, word := e.get("GET", "/x"); word != "MISS" || w.Body.String() != body {
				t.Error(word, w.Body.Len())
			}
			if w, word := e.get("GET", "/y", "Range: bytes=1048570-1048580"); word != "MISS" || w.Code != 206 || w.Body.String() != body[1048570:1048581] {
				t.Error(word, w.Code, w.Body.Len())
			}
		}
	})
	t.Run("a private slice", func(t *testing.T) {
		e := slicing(t)
		e.respond(ranged(body, `"v1"`))
		e.stored("/x", "Range: bytes=0-0")
		e.respond(ranged(body, `"v1"`, "Cache-Control: private"))
		for range 2 {
			if w, word := e.get("GET", "/x"); word != "HIT" || w.Body.String() != body {
				t.Error(word, w.Body.Len())
			}
			e.settled()
		}
		if n := e.asked.Load(); n != 5 {
			t.Errorf("%d requests to the origin", n)
		}
	})
	t.Run("for many at once", func(t *testing.T) {
		e := slicing(t)
		e.respond(ranged(body, `W/"v1"`))
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				if w, _ := e.get("GET", "/x"); w.Body.String() != body {
					t.Error(w.Body.Len())
				}
			})
		}
		all.Wait()
		if n := e.asked.Load(); n != 2 {
			t.Errorf("%d requests to the origin", n)
		}
	})
}

func TestSlicesOfTwoVersionsAreNeverMixed(t *testing.T) {
	const size = 3 * mebi
	one, two := version('a', size), version('b', size)
	for says, c := range map[string]struct {
		lines []string
		from  int
	}{"a slice that is not stored": {[]string{"Range: bytes=2097152-"}, 2 * mebi}, "all": {nil, 0}} {
		t.Run(says, func(t *testing.T) {
			e := slicing(t)
			e.respond(ranged(one, `"v1"`))
			e.stored("/x", "Range: bytes=0-0")
			e.respond(ranged(two, `"v2"`))
			w, word := e.get("GET", "/x", c.lines...)
			if got := w.Body.String(); got != two[c.from:] && (word != "aborted" || !strings.HasPrefix(one[c.from:], got)) {
				t.Errorf("%s with %d bytes", word, len(got))
			}
			for range 2 {
				if w, word := e.get("GET", "/x", c.lines...); w.Body.String() != two[c.from:] {
					t.Errorf("then %s with %d bytes", word, w.Body.Len())
				}
			}
		})
	}
}
