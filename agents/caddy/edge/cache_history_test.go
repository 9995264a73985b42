package edge

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
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
)

// Seconds that histories take in all, and the seed of the first one; by default one that is different each time.
const (
	historySeconds = "CACHE_HISTORY_SECONDS"
	historySeed    = "CACHE_HISTORY_SEED"
)

// resource is what the origin has at a URL, and what the model knows of it.
type resource struct {
	host, path, query, tag string

	mu sync.Mutex
	// The origin has this version now. No response may be of one below least.
	version, least int
	// Requests that reach the origin wait for it; nil for none.
	gate chan struct{}
}

func (r *resource) target() string {
	if r.query == "" {
		return r.path
	}
	return r.path + "?" + r.query
}

// history is a node before an origin, through purges, deaths and gaps.
type history struct {
	*cachingEdge
	random    *rand.Rand
	resources []*resource
	port      uint32
	dir       string
	stop      func()
	online    bool
	// The feed of purges, and for each the versions that it was about.
	feed  []*nodev1.Purge
	about []map[*resource]int
	// What the node has of it.
	applied int
	waiting sync.WaitGroup
	mu      sync.Mutex
	hits    int
	faults  []string
	did     []string
}

func newHistory(t *testing.T, seed uint64) *history {
	h := &history{cachingEdge: &cachingEdge{t: t, base: time.Now().Truncate(time.Second)}, random: rand.New(rand.NewPCG(seed, 0)), dir: t.TempDir(), online: true}
	for _, host := range []string{"a.com", "b.com"} {
		for i, path := range []string{"/p/0", "/p/1", "/p/0/x", "/q/0", "/q/1"} {
			h.resources = append(h.resources, &resource{host: host, path: path, tag: fmt.Sprint("t", i%3)})
		}
		h.resources = append(h.resources, &resource{host: host, path: "/p/0", query: "a=1", tag: "t1"})
	}
	server := httptest.NewServer(http.HandlerFunc(h.serve))
	t.Cleanup(server.Close)
	h.port = uint32(server.Listener.Addr().(*net.TCPAddr).Port)
	h.start()
	return h
}

func (h *history) find(host, target string) *resource {
	for _, r := range h.resources {
		if r.host == host && r.target() == target {
			return r
		}
	}
	return nil
}

// serve is the origin.
func (h *history) serve(w http.ResponseWriter, request *http.Request) {
	r := h.find(request.Host, request.RequestURI)
	r.mu.Lock()
	version, gate := r.version, r.gate
	r.mu.Unlock()
	if gate != nil {
		<-gate
	}
	tag := fmt.Sprintf(`"%d"`, version)
	for name, value := range map[string]string{"Cache-Control": "max-age=60, stale-while-revalidate=60, stale-if-error=600", "Cache-Tag": r.tag, "Etag": tag, "Date": h.now().UTC().Format(http.TimeFormat)} {
		w.Header().Set(name, value)
	}
	switch {
	case request.Method == "POST":
	case request.Header.Get("If-None-Match") == tag:
		w.WriteHeader(304)
	default:
		_, _ = io.WriteString(w, strconv.Itoa(version))
	}
}

// start starts a process on the folder.
func (h *history) start() {
	c := core.New(core.Options{StateDir: h.dir, Values: map[string]any{"ban_capacity": 100, "ban_max_mib": 1}, Now: h.now})
	h.edge = &edge{core: c}
	h.pipeline = newPipeline(c, zap.NewNop(), false)
	h.change(h.t,
		edgetest.Entry("site", "a", edgetest.Site(h.port, "a.com", "b.com")),
		edgetest.Entry("origin-policy", "", &configv1.OriginPolicy{AllowedCidrs: []string{"127.0.0.0/8"}}),
		edgetest.Entry("site-cache", "a", &configv1.SiteCache{Rules: []*configv1.CacheRule{always(func(*configv1.CacheRule) {})}}),
	)
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() { cache.Of(c).Run(stop); close(ended) }()
	h.stop = func() { close(stop); <-ended }
	h.until("the zone is ready", cache.Of(c).Ready)
	if h.online {
		h.catchUp()
	}
}

// catchUp gives the node what it missed, as an agent does.
func (h *history) catchUp() {
	h.applied = 0
	if at := h.core.Report().GetPurges(); at.GetClusterId() == "c" {
		h.applied = int(at.GetSequence())
	}
	if h.applied == len(h.feed) {
		return
	}
	b, err := proto.Marshal(&nodev1.PurgeBatch{Purges: h.feed[h.applied:]})
	if err == nil {
		err = cache.Of(h.core).Purge(&edgev1.ApplyPurgesRequest{ClusterId: "c", Batches: [][]byte{b}, Place: &edgev1.PurgePlace{Epoch: 1, Sequence: uint64(len(h.feed))}})
	}
	if err != nil {
		h.t.Fatal(err)
	}
	for _, about := range h.about[h.applied:] {
		for r, version := range about {
			r.atLeast(version)
		}
	}
	h.applied = len(h.feed)
}

func (r *resource) atLeast(version int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.least = max(r.least, version)
}

// some is a resource, rather often one whose origin takes its time: much can go wrong there.
func (h *history) some() *resource {
	slow := h.slow()
	if len(slow) > 0 && h.random.IntN(2) == 0 {
		return slow[h.random.IntN(len(slow))]
	}
	return h.resources[h.random.IntN(len(h.resources))]
}

func (h *history) slow() (slow []*resource) {
	for _, r := range h.resources {
		r.mu.Lock()
		if r.gate != nil {
			slow = append(slow, r)
		}
		r.mu.Unlock()
	}
	return slow
}

// purge issues a purge; a node that is online applies it at once.
func (h *history) purge() {
	r := h.some()
	p := &nodev1.Purge{Epoch: 1, Sequence: uint64(len(h.feed) + 1)}
	target := &nodev1.PurgeTarget{SiteId: "a", Host: r.host}
	var concerns func(*resource) bool
	switch h.random.IntN(5) {
	case 0:
		target.Scope, target.Path, target.Query = nodev1.PurgeScope_PURGE_SCOPE_URL, r.path, r.query
		concerns = func(o *resource) bool { return o == r }
	case 1:
		target.Scope, target.Path = nodev1.PurgeScope_PURGE_SCOPE_PREFIX, r.path[:3]
		concerns = func(o *resource) bool { return o.host == r.host && strings.HasPrefix(o.path, r.path[:3]) }
	case 2:
		target.Scope = nodev1.PurgeScope_PURGE_SCOPE_HOST
		concerns = func(o *resource) bool { return o.host == r.host }
	case 3:
		target, p.SiteIds = nil, []string{"a"}
		concerns = func(*resource) bool { return true }
	case 4:
		target, p.SiteIds, p.Tags = nil, []string{"a"}, []string{r.tag}
		concerns = func(o *resource) bool { return o.tag == r.tag }
	}
	if target != nil {
		p.Targets = []*nodev1.PurgeTarget{target}
	}
	about := map[*resource]int{}
	for _, o := range h.resources {
		if concerns(o) {
			o.mu.Lock()
			about[o] = o.version
			o.mu.Unlock()
		}
	}
	h.feed, h.about = append(h.feed, p), append(h.about, about)
	if h.online {
		h.catchUp()
	}
}

// ask sends a request, and compares the version that comes with what the model allowed when it left. It waits for the
// response unless the origin does.
func (h *history) ask(r *resource, method string, lines ...string) {
	r.mu.Lock()
	least, waits := r.least, r.gate != nil
	r.mu.Unlock()
	handler, ended := h.edge, make(chan struct{})
	did := len(h.did)
	h.waiting.Go(func() {
		defer close(ended)
		request := request(method, r.host, r.target())
		for _, line := range lines {
			name, value, _ := strings.Cut(line, ": ")
			request.Header.Set(name, value)
		}
		w, aborted := handler.send(request)
		if method != "GET" || aborted {
			return
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		text := w.Body.String()
		if w.Code == 304 {
			text = strings.Trim(w.Header().Get("Etag"), `W/"`)
		}
		if w.Header().Get("X-Cache") == "HIT" {
			h.hits++
		}
		if version, err := strconv.Atoi(text); err != nil || version < least {
			h.faults = append(h.faults, fmt.Sprintf("%s%s, step %d: %d %q %v, want at least version %d", r.host, r.target(), did, w.Code, w.Body, w.Header(), least))
		}
	})
	if !waits {
		<-ended
	}
}

// open lets all requests at the origin go on, and asks for the same once more.
func (h *history) open() {
	slow := h.slow()
	for _, r := range slow {
		r.mu.Lock()
		close(r.gate)
		r.gate = nil
		r.mu.Unlock()
	}
	h.waiting.Wait()
	for _, r := range slow {
		h.ask(r, "GET")
	}
}

// die ends the process. Nothing of what it has not written is left; what it is writing may be half there.
func (h *history) die() {
	next := h.t.TempDir()
	if err := os.CopyFS(next, os.DirFS(h.dir)); err != nil && !os.IsNotExist(err) {
		h.t.Fatal(err)
	}
	h.open()
	h.stop()
	h.dir = next
	h.start()
}

// step does one thing. What it says is for people who look for a fault.
func (h *history) step() string {
	r := h.some()
	switch n := h.random.IntN(100); {
	case n < 45:
		h.ask(r, "GET")
		return "ask " + r.host + r.target()
	case n < 50:
		h.ask(r, "GET", "If-None-Match: \"0\"")
		return "ask with a condition " + r.host + r.target()
	case n < 65:
		r.mu.Lock()
		r.version++
		r.mu.Unlock()
		return "change " + r.host + r.target()
	case n < 80:
		h.purge()
		return fmt.Sprint("purge ", h.feed[len(h.feed)-1])
	case n < 84:
		// The origin takes its time.
		r.mu.Lock()
		if r.gate == nil {
			r.gate = make(chan struct{})
		}
		r.mu.Unlock()
		h.ask(r, "GET")
		return "ask slowly " + r.host + r.target()
	case n < 88:
		h.open()
		return "let all requests end"
	case n < 91:
		h.shift.Add(int64(h.random.IntN(100)) * int64(time.Second))
		return "time goes by"
	case n < 94:
		h.online = !h.online
		if h.online {
			h.catchUp()
		}
		return fmt.Sprint("online is ", h.online)
	case n < 96:
		h.open()
		r.mu.Lock()
		version := r.version
		r.mu.Unlock()
		h.ask(r, "POST")
		r.atLeast(version)
		return "post to " + r.host + r.target()
	case n < 98:
		h.die()
		return "die"
	case n < 99:
		h.open()
		h.stop()
		h.start()
		return "restart"
	}
	// The file of the purges is damaged while the process is away.
	h.open()
	h.stop()
	files, _ := filepath.Glob(filepath.Join(h.dir, "cache", "purges*"))
	for _, file := range files {
		if b, err := os.ReadFile(file); err == nil && len(b) > 0 {
			b[h.random.IntN(len(b))] ^= 1 << h.random.IntN(8)
			_ = os.WriteFile(file, b, 0o600)
		}
	}
	h.start()
	return fmt.Sprint("damage of ", len(files), " files")
}

// Random histories of fills, purges, deaths, restarts and gaps: nothing older than its purge is served.
func TestNothingOlderThanItsPurgeIsServed(t *testing.T) {
	seconds, err := strconv.Atoi(os.Getenv(historySeconds))
	if err != nil {
		seconds = 3
	}
	seed, err := strconv.ParseUint(os.Getenv(historySeed), 10, 64)
	if err != nil {
		seed = rand.Uint64()
	}
	hits := 0
	until := time.Now().Add(time.Duration(seconds) * time.Second)
	for first := true; first || time.Now().Before(until); first, seed = false, seed+1 {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			h := newHistory(t, seed)
			for len(h.did) < 300 && len(h.faults) == 0 {
				h.did = append(h.did, h.step())
			}
			h.open()
			h.stop()
			hits += h.hits
			for _, fault := range h.faults {
				t.Errorf("%s\n%s", fault, strings.Join(h.did, "\n"))
			}
		})
	}
	if hits == 0 {
		t.Error("nothing was ever served from the cache")
	}
}
