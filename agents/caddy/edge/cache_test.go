package edge

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"

	"edge.svc/caddy/core"
	"edge.svc/caddy/features/cache"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
	nodev1 "edge.svc/caddy/gen/svc/node/v1"
	"edge.svc/caddy/internal/edgetest"
	"edge.svc/caddy/internal/ruletest"
)

// cachingEdge is an edge with one site that caches, before an origin.
type cachingEdge struct {
	*edge
	t testing.TB
	// The clock stands still, but for the shift.
	base   time.Time
	shift  atomic.Int64
	asked  atomic.Int64
	origin atomic.Pointer[http.HandlerFunc]
}

func always(change func(*configv1.CacheRule)) *configv1.CacheRule {
	r := &configv1.CacheRule{Priority: 10, Condition: ruletest.Encode(ruletest.True()), EdgeTtlSeconds: 3600}
	change(r)
	return r
}

func newCachingEdge(t testing.TB, change func(*configv1.SiteCache)) *cachingEdge {
	t.Helper()
	e := &cachingEdge{t: t, base: time.Now().Truncate(time.Second)}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e.asked.Add(1)
		w.Header().Set("Date", e.now().UTC().Format(http.TimeFormat))
		(*e.origin.Load())(w, r)
	}))
	t.Cleanup(server.Close)
	c := core.New(core.Options{StateDir: t.TempDir(), Values: map[string]any{"ban_capacity": 100, "ban_max_mib": 1},
		Now: e.now})
	e.edge = &edge{core: c}
	e.pipeline = newPipeline(c, zap.NewNop(), false)
	settings := &configv1.SiteCache{Rules: []*configv1.CacheRule{always(func(*configv1.CacheRule) {})}}
	change(settings)
	e.change(t,
		edgetest.Entry("site", "a", edgetest.Site(uint32(server.Listener.Addr().(*net.TCPAddr).Port), "a.com")),
		edgetest.Entry("origin-policy", "", &configv1.OriginPolicy{AllowedCidrs: []string{"127.0.0.0/8"}}),
		edgetest.Entry("site-cache", "a", settings),
	)
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() { cache.Of(c).Run(stop); close(ended) }()
	t.Cleanup(func() { close(stop); <-ended })
	e.until("the zone is ready", cache.Of(c).Ready)
	return e
}

func (e *cachingEdge) now() time.Time { return e.base.Add(time.Duration(e.shift.Load())) }

func (e *cachingEdge) until(says string, true func() bool) {
	e.t.Helper()
	for begun := time.Now(); !true(); time.Sleep(time.Millisecond) {
		if time.Since(begun) > time.Minute {
			e.t.Fatal("never: " + says)
		}
	}
}

func (e *cachingEdge) respond(f http.HandlerFunc) { e.origin.Store(&f) }

// get sends a request with headers "Name: value", and returns the response and what X-Cache says.
func (e *cachingEdge) get(method, target string, lines ...string) (*httptest.ResponseRecorder, string) {
	e.t.Helper()
	r := request(method, "a.com", target)
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Add(name, value)
	}
	w, aborted := e.send(r)
	if aborted {
		return w, "aborted"
	}
	return w, w.Header().Get("X-Cache")
}

// stored sends requests until one gets a stored response.
func (e *cachingEdge) stored(target string, lines ...string) {
	e.t.Helper()
	e.until(target+" is stored", func() bool { _, word := e.get("GET", target, lines...); return word == "HIT" })
}

func says(body string, lines ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		for _, line := range lines {
			name, value, _ := strings.Cut(line, ": ")
			w.Header().Add(name, value)
		}
		if tag := w.Header().Get("Etag"); tag != "" && r.Header.Get("If-None-Match") == tag {
			w.WriteHeader(304)
			return
		}
		_, _ = io.WriteString(w, body)
	}
}

func TestTheCacheServesWhatItStored(t *testing.T) {
	e := newCachingEdge(t, func(*configv1.SiteCache) {})
	e.respond(says("hello", "Cache-Control: max-age=60", `Etag: "v1"`, "Cache-Tag: red", "X-Own: 1"))
	w, word := e.get("GET", "/x")
	if word != "MISS" || w.Body.String() != "hello" || w.Header().Get("Cache-Tag") != "" {
		t.Error(word, w.Body, w.Header())
	}
	e.stored("/x")
	asked := e.asked.Load()
	e.shift.Add(int64(5 * time.Second))
	for _, c := range []struct {
		says, method string
		lines        []string
		status       int
		body         string
		header       string
	}{
		{"a GET", "GET", nil, 200, "hello", "Content-Length: 5"},
		{"a HEAD", "HEAD", nil, 200, "", "Content-Length: 5"},
		{"a validator", "GET", []string{`If-None-Match: W/"v1"`}, 304, "", "Content-Length: "},
		{"another validator", "GET", []string{`If-None-Match: "v2"`}, 200, "hello", ""},
		{"a range", "GET", []string{"Range: bytes=1-2"}, 206, "el", "Content-Range: bytes 1-2/5"},
		{"a range that is not there", "GET", []string{"Range: bytes=9-"}, 416, "", "Content-Range: bytes */5"},
		{"If-Range with another tag", "GET", []string{"Range: bytes=1-2", `If-Range: "v2"`}, 200, "hello", ""},
	} {
		w, word := e.get(c.method, "/x", c.lines...)
		name, value, _ := strings.Cut(c.header, ": ")
		if word != "HIT" || w.Code != c.status || w.Body.String() != c.body || name != "" && w.Header().Get(name) != value {
			t.Errorf("%s: %s %d %q %v", c.says, word, w.Code, w.Body, w.Header())
		}
		if age := w.Header().Get("Age"); age < "5" || len(age) > 1 {
			t.Errorf("%s: the age is %q", c.says, age)
		}
	}
	if e.asked.Load() != asked {
		t.Error("the origin was asked for what is stored")
	}
	if w, _ := e.get("GET", "/x"); w.Header().Get("Cache-Status") != "edge; hit; ttl=55" {
		t.Error(w.Header().Get("Cache-Status"))
	}
}

func TestWhatBypassesTheCache(t *testing.T) {
	e := newCachingEdge(t, func(m *configv1.SiteCache) {
		m.Key = &configv1.CacheKey{Cookies: []string{"lang"}}
		m.Rules = append([]*configv1.CacheRule{always(func(r *configv1.CacheRule) {
			r.Priority, r.Bypass, r.EdgeTtlSeconds = 5, true, 0
			r.Condition = ruletest.Encode(ruletest.Eq("http.request.uri.path", "/never"))
		})}, m.Rules...)
	})
	e.respond(says("hello", "Cache-Control: max-age=60"))
	for says, c := range map[string][]string{
		"a POST":                                     {"POST", "/x"},
		"a rule that bypasses":                       {"GET", "/never"},
		"Authorization without the flag":             {"GET", "/x", "Authorization: Basic x"},
		"a method override":                          {"GET", "/x", "X-HTTP-Method-Override: DELETE"},
		"a path in another spelling":                 {"GET", "/a/../x"},
		"an encoded unreserved character":            {"GET", "/%78"},
		"a cookie of the key that is ambiguous":      {"GET", "/x", "Cookie: lang=a; lang=b"},
		"a condition that a cache does not evaluate": {"GET", "/x", `If-Match: "a"`},
	} {
		for range 2 {
			if w, word := e.get(c[0], c[1], c[2:]...); word != "BYPASS" || w.Code != 200 {
				t.Errorf("%s: %s %d", says, word, w.Code)
			}
		}
	}
}

func TestResponsesThatAreNotStored(t *testing.T) {
	e := newCachingEdge(t, func(*configv1.SiteCache) {})
	for i, lines := range [][]string{
		{"Cache-Control: no-store"}, {"Cache-Control: private, max-age=9"}, {"Set-Cookie: a=b", "Cache-Control: max-age=9"}, {"Vary: *", "Cache-Control: max-age=9"},
		{"Cache-Control: max-age=0"},
	} {
		e.respond(says("hello", lines...))
		for range 3 {
			w, word := e.get("GET", fmt.Sprint("/n", i))
			if word != "MISS" || w.Body.String() != "hello" {
				t.Errorf("%v: %s %q", lines, word, w.Body)
			}
		}
	}
}

func TestAStaleResponseIsValidated(t *testing.T) {
	e := newCachingEdge(t, func(*configv1.SiteCache) {})
	e.respond(says("one", "Cache-Control: max-age=10", `Etag: "v1"`, "X-Version: 1"))
	e.stored("/x")
	e.shift.Add(int64(11 * time.Second))
	e.respond(says("one", "Cache-Control: max-age=10", `Etag: "v1"`, "X-Version: 2"))
	if w, word := e.get("GET", "/x"); word != "REVALIDATED" || w.Body.String() != "one" || w.Header().Get("X-Version") != "2" {
		t.Error(word, w.Body, w.Header())
	}
	if w, word := e.get("GET", "/x"); word != "HIT" || w.Header().Get("X-Version") != "2" {
		t.Error("after the validation:", word, w.Header())
	}
	e.shift.Add(int64(11 * time.Second))
	e.respond(says("two", "Cache-Control: max-age=10", `Etag: "v2"`))
	if w, word := e.get("GET", "/x"); word != "EXPIRED" || w.Body.String() != "two" {
		t.Error(word, w.Body)
	}
	e.stored("/x")
	if w, _ := e.get("GET", "/x"); w.Body.String() != "two" {
		t.Error(w.Body)
	}
}

func TestStaleResponses(t *testing.T) {
	e := newCachingEdge(t, func(m *configv1.SiteCache) {
		m.Rules[0].StaleWhileRevalidateSeconds, m.Rules[0].StaleIfErrorSeconds = 5, 60
	})
	e.respond(says("one", "Cache-Control: max-age=10"))
	e.stored("/x")
	e.shift.Add(int64(12 * time.Second))
	e.respond(says("two", "Cache-Control: max-age=10"))
	if w, word := e.get("GET", "/x"); word != "UPDATING" || w.Body.String() != "one" {
		t.Error(word, w.Body)
	}
	e.until("the response was fetched behind the client", func() bool { w, _ := e.get("GET", "/x"); return w.Body.String() == "two" })
	e.shift.Add(int64(30 * time.Second))
	e.respond(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) })
	if w, word := e.get("GET", "/x"); word != "STALE" || w.Code != 200 || w.Body.String() != "two" {
		t.Error("while the origin fails:", word, w.Code)
	}
	e.shift.Add(int64(time.Hour))
	if w, _ := e.get("GET", "/x"); w.Code != 503 {
		t.Error("after its time:", w.Code)
	}
}

func TestVariants(t *testing.T) {
	e := newCachingEdge(t, func(m *configv1.SiteCache) {
		m.Key = &configv1.CacheKey{Query: configv1.CacheQuery_CACHE_QUERY_EXCLUDE, QueryParams: []string{"utm_*"}, SortQuery: true, DeviceType: true, Headers: []string{"x-key"}, Cookies: []string{"lang"}}
	})
	e.respond(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		w.Header().Set("Vary", "X-Vary")
		fmt.Fprint(w, r.URL.RawQuery, r.Header["X-Vary"], r.Header["X-Key"], r.Header["Cookie"], r.Header["User-Agent"])
	})
	base := []string{"X-Vary: 1", "X-Key: 1", "Cookie: lang=en"}
	e.stored("/x?b=1&a=2", base...)
	for says, c := range map[string]struct {
		target string
		lines  []string
		hit    bool
	}{
		"the order of parameters":             {"/x?a=2&b=1", base, true},
		"a parameter that is left out":        {"/x?a=2&b=1&utm_source=z", base, true},
		"another cookie":                      {"/x?b=1&a=2", append(base[:3:3], "Cookie: other=1"), true},
		"another parameter":                   {"/x?b=1&a=3", base, false},
		"a field that the response varies by": {"/x?b=1&a=2", []string{"X-Vary: 2", "X-Key: 1", "Cookie: lang=en"}, false},
		"a header of the key":                 {"/x?b=1&a=2", []string{"X-Vary: 1", "X-Key: 2", "Cookie: lang=en"}, false},
		"a cookie of the key":                 {"/x?b=1&a=2", []string{"X-Vary: 1", "X-Key: 1", "Cookie: lang=de"}, false},
		"a phone":                             {"/x?b=1&a=2", append(base[:3:3], "User-Agent: iPhone"), false},
	} {
		if w, word := e.get("GET", c.target, c.lines...); (word == "HIT") != c.hit {
			t.Errorf("%s: %s %s", says, word, w.Body)
		}
	}
}

func TestCookiesGoToTheOneWhoseRequestBroughtThem(t *testing.T) {
	e := newCachingEdge(t, func(m *configv1.SiteCache) { m.Rules[0].CacheSetCookie = true })
	e.respond(says("hello", "Cache-Control: max-age=60", "Set-Cookie: a=b"))
	if w, word := e.get("GET", "/x"); word != "MISS" || w.Header().Get("Set-Cookie") != "a=b" {
		t.Error(word, w.Header())
	}
	e.stored("/x")
	if w, _ := e.get("GET", "/x"); w.Header().Get("Set-Cookie") != "" {
		t.Error("a hit has the cookie")
	}
}

func TestUnsafeMethodsInvalidateWhatIsStored(t *testing.T) {
	e := newCachingEdge(t, func(*configv1.SiteCache) {})
	e.respond(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		w.Header().Set("Content-Location", "/other")
		if r.Method == "DELETE" {
			w.WriteHeader(404)
		}
	})
	e.stored("/x")
	e.stored("/other")
	e.get("DELETE", "/x")
	if _, word := e.get("GET", "/x"); word != "HIT" {
		t.Error("an error invalidates:", word)
	}
	e.get("POST", "/x")
	for _, target := range []string{"/x", "/other"} {
		if _, word := e.get("GET", target); word != "MISS" {
			t.Error(target, word)
		}
	}
}

func TestPurgesMakeAbsent(t *testing.T) {
	e := newCachingEdge(t, func(*configv1.SiteCache) {})
	e.respond(says("hello", "Cache-Control: max-age=60", "Cache-Tag: Red, blue"))
	target := func(scope nodev1.PurgeScope, path string) *nodev1.Purge {
		return &nodev1.Purge{Targets: []*nodev1.PurgeTarget{{Scope: scope, SiteId: "a", Host: "a.com", Path: path}}}
	}
	for i, p := range []*nodev1.Purge{
		target(nodev1.PurgeScope_PURGE_SCOPE_URL, "/p/x"), target(nodev1.PurgeScope_PURGE_SCOPE_PREFIX, "/p"),
		target(nodev1.PurgeScope_PURGE_SCOPE_HOST, ""), {SiteIds: []string{"a"}}, {SiteIds: []string{"a"}, Tags: []string{"red"}},
	} {
		e.stored("/p/x")
		e.purge(uint64(i+1), p)
		if _, word := e.get("GET", "/p/x"); word != "MISS" {
			t.Errorf("%v: %s", p, word)
		}
	}
	status := e.core.Report()
	if at := status.GetPurges(); at.GetClusterId() != "c" || at.GetSequence() != 5 || status.GetCache().GetMaxBytes() != 10<<30 {
		t.Error(at, status.GetCache())
	}
}

// purge puts a purge in force, as the agent does.
func (e *cachingEdge) purge(sequence uint64, p *nodev1.Purge) {
	e.t.Helper()
	p.Epoch, p.Sequence = 1, sequence
	b, err := proto.Marshal(&nodev1.PurgeBatch{Purges: []*nodev1.Purge{p}})
	if err == nil {
		err = cache.Of(e.core).Purge(&edgev1.ApplyPurgesRequest{
			ClusterId: "c", Batches: [][]byte{b}, Place: &edgev1.PurgePlace{Epoch: 1, Sequence: sequence},
		})
	}
	if err != nil {
		e.t.Fatal(err)
	}
}

// One request asks the origin; the others get the response as it comes.
func TestRequestsShareAFill(t *testing.T) {
	e := newCachingEdge(t, func(*configv1.SiteCache) {})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _ = e.ServeHTTP(w, r, nil) }))
	t.Cleanup(server.Close)
	rest := make(chan struct{})
	const first = 100_000
	e.respond(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		w.Header().Set("Content-Length", fmt.Sprint(2*first))
		_, _ = io.WriteString(w, strings.Repeat("a", first))
		w.(http.Flusher).Flush()
		<-rest
		_, _ = io.WriteString(w, strings.Repeat("b", first))
	})
	var wait sync.WaitGroup
	var begun sync.WaitGroup
	begun.Add(10)
	for i := range 10 {
		wait.Go(func() {
			r, _ := http.NewRequest("GET", server.URL+"/x", nil)
			r.Host = "a.com"
			response, err := http.DefaultClient.Do(r)
			if err != nil {
				begun.Done()
				t.Error(err)
				return
			}
			defer response.Body.Close()
			body := bufio.NewReader(response.Body)
			_, _ = io.CopyN(io.Discard, body, first)
			begun.Done()
			if i == 0 {
				// One client leaves; the others do not mind.
				return
			}
			left, err := io.ReadAll(body)
			if err != nil || string(left) != strings.Repeat("b", first) {
				t.Error(len(left), err)
			}
		})
	}
	begun.Wait()
	close(rest)
	wait.Wait()
	if e.asked.Load() != 1 {
		t.Errorf("the origin was asked %d times", e.asked.Load())
	}
	e.stored("/x")
}

func TestRequestsAfterAPurgeDoNotJoinAnEarlierFill(t *testing.T) {
	e := newCachingEdge(t, func(*configv1.SiteCache) {})
	begun, rest := make(chan struct{}), make(chan struct{})
	e.respond(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		close(begun)
		<-rest
		_, _ = io.WriteString(w, "old")
	})
	ended := make(chan string)
	go func() { w, _ := e.get("GET", "/x"); ended <- w.Body.String() }()
	<-begun
	e.purge(1, &nodev1.Purge{SiteIds: []string{"a"}})
	e.respond(says("new", "Cache-Control: max-age=60"))
	if w, word := e.get("GET", "/x"); word != "MISS" || w.Body.String() != "new" {
		t.Error(word, w.Body)
	}
	close(rest)
	if old := <-ended; old != "old" {
		t.Error(old)
	}
	for range 5 {
		if w, _ := e.get("GET", "/x"); w.Body.String() != "new" {
			t.Error("what left before the purge is served")
		}
	}
}

func TestTheBrowserTTLIsTheRules(t *testing.T) {
	e := newCachingEdge(t, func(m *configv1.SiteCache) {
		m.Rules[0].BrowserTtlSeconds, m.KeepCacheTag = 30, true
	})
	e.respond(says("hello", "Cache-Control: max-age=60", "Cache-Tag: a", "Expires: x"))
	for _, want := range []string{"MISS", "HIT"} {
		e.until(want, func() bool {
			w, word := e.get("GET", "/x")
			if w.Header().Get("Cache-Control") != "max-age=30" || w.Header().Get("Expires") != "" || w.Header().Get("Cache-Tag") != "a" {
				t.Fatal(word, w.Header())
			}
			return word == want
		})
	}
	e.respond(says("hello", "Cache-Control: private"))
	if w, _ := e.get("GET", "/private"); w.Header().Get("Cache-Control") != "private" {
		t.Error(w.Header())
	}
}

// A response that is larger than what an abandoned fill goes on for arrives whole, again and again.
func TestLargeResponsesArriveWhole(t *testing.T) {
	e := newCachingEdge(t, func(*configv1.SiteCache) {})
	const size = 20 << 20
	body := strings.Repeat("0123456789abcdef", size/16)
	e.respond(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		w.Header().Set("Content-Length", fmt.Sprint(size))
		_, _ = io.WriteString(w, body)
	})
	for i := range 3 {
		w, word := e.get("GET", fmt.Sprint("/large", i))
		if word != "MISS" || w.Body.String() != body {
			t.Fatalf("%s with %d bytes", word, w.Body.Len())
		}
	}
	e.stored("/large0")
	if w, word := e.get("GET", "/large0", "Range: bytes=1048570-1048585"); word != "HIT" || w.Body.String() != body[1048570:1048586] {
		t.Error(word, w.Body.Len())
	}
}

func TestAnErrorDoesNotTakeThePlaceOfWhatServesOnError(t *testing.T) {
	e := newCachingEdge(t, func(m *configv1.SiteCache) { m.Rules[0].StaleIfErrorSeconds = 600 })
	e.respond(says("one", "Cache-Control: max-age=10"))
	e.stored("/x")
	e.shift.Add(int64(20 * time.Second))
	e.respond(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		w.WriteHeader(500)
	})
	for range 3 {
		if w, word := e.get("GET", "/x"); word != "STALE" || w.Body.String() != "one" {
			t.Error(word, w.Code)
		}
	}
}

func TestUnknownHostsDoNotShareResponsesWithThoseOfTheSite(t *testing.T) {
	e := newCachingEdge(t, func(m *configv1.SiteCache) { m.Key = &configv1.CacheKey{IgnoreHost: true} })
	e.change(t, edgetest.Entry("unknown-hosts", "", &configv1.UnknownHosts{UnknownHost: configv1.UnknownHostAction_UNKNOWN_HOST_ACTION_SITE, DefaultSiteId: "a"}))
	e.respond(says("one", "Cache-Control: max-age=60"))
	r := request("GET", "evil.com", "/x")
	if w, _ := e.send(r); w.Header().Get("X-Cache") != "MISS" {
		t.Error(w.Code, w.Header())
	}
	if _, word := e.get("GET", "/x"); word != "MISS" {
		t.Error(word)
	}
}
