package origin

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	configv1 "edge.svc/caddy/gen/svc/config/v1"
)

// until waits for a condition.
func until(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !condition(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}

// An origin that hangs has no more connections than it may. What is beyond waits for as long as a connection may take, and
// is refused then. Another origin serves meanwhile.
func TestAnOriginThatHangsHoldsItsShareAlone(t *testing.T) {
	const most, requests = 3, 10
	var open atomic.Int64
	release := make(chan struct{})
	hanging := httpOrigin(t, func(w http.ResponseWriter, _ *http.Request) {
		open.Add(1)
		<-release
		_, _ = io.WriteString(w, "late")
	})
	quick := httpOrigin(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "quick") })
	wait := func(p *configv1.OriginPool) { p.ConnectTimeoutMs = 300 }
	e := newEdge(t, settings(wait), originAt("hanging", addressOf(hanging)))
	e.transports.capacity.most = most
	other, err := Compile("other", []*configv1.Origin{originAt("quick", addressOf(quick))}, settings(wait), e.state)
	if err != nil {
		t.Fatal(err)
	}
	hangs := e.pool.Load()
	var all sync.WaitGroup
	var mu sync.Mutex
	answers := map[string]int{}
	get := func() (int, string) {
		response, err := http.Get(e.URL)
		if err != nil {
			t.Error(err)
			return 0, ""
		}
		defer response.Body.Close()
		body, _ := io.ReadAll(response.Body)
		return response.StatusCode, string(body)
	}
	for range requests {
		all.Go(func() {
			status, body := get()
			mu.Lock()
			defer mu.Unlock()
			answers[http.StatusText(status)+" "+body]++
		})
	}
	c := &e.transports.capacity
	until(t, "the others are refused", func() bool { return c.refused.Load() == requests-most })
	if n := open.Load(); n != most || c.inUse.Load() != most {
		t.Errorf("%d connections, %d count", n, c.inUse.Load())
	}
	e.pool.Store(other)
	if status, body := get(); status != http.StatusOK || body != "quick" {
		t.Errorf("another origin: %d %s", status, body)
	}
	e.pool.Store(hangs)
	close(release)
	all.Wait()
	if answers["OK late"] != most || answers["Service Unavailable edge: origin-busy"] != requests-most {
		t.Errorf("%v", answers)
	}
	if status, body := get(); status != http.StatusOK || body != "late" {
		t.Errorf("after it: %d %s", status, body)
	}
	until(t, "nothing is in use", func() bool { return c.inUse.Load() == 0 && c.waiting.Load() == 0 })
	if e.state.down(originKey{site: "site", origin: "hanging"}, time.Now()) {
		t.Error("an origin without room counts as a failed one")
	}
	var metrics strings.Builder
	e.transports.WriteMetrics(&metrics)
	if !strings.Contains(metrics.String(), "svc_edge_origin_connections_refused_total 7\n") {
		t.Error(metrics.String())
	}
}

// Where an origin has no room, another one of the site is asked, without a wait.
func TestWhatFindsNoRoomGoesToTheNextOrigin(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	first := httpOrigin(t, func(http.ResponseWriter, *http.Request) { <-release })
	second := httpOrigin(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "second") })
	backup := originAt("second", addressOf(second))
	backup.Backup = true
	e := newEdge(t, settings(), originAt("first", addressOf(first)), backup)
	c := &e.transports.capacity
	c.most = 1
	ctx, cancel := context.WithCancel(t.Context())
	var held sync.WaitGroup
	held.Go(func() {
		request, _ := http.NewRequestWithContext(ctx, http.MethodGet, e.URL, nil)
		if response, err := http.DefaultClient.Do(request); err == nil {
			response.Body.Close()
		}
	})
	until(t, "the first one is full", func() bool { return c.inUse.Load() == 1 })
	response, err := http.Get(e.URL)
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(response.Body)
	response.Body.Close()
	if string(body) != "second" || c.refused.Load() != 0 {
		t.Errorf("%s, %d refused", body, c.refused.Load())
	}
	// A client that is gone gives its place back.
	cancel()
	held.Wait()
	until(t, "nothing is in use", func() bool { return c.inUse.Load() == 0 })
}

// A place goes to whom waits for longest; whoever is gone waits no more.
func TestPlacesGoInTheirOrder(t *testing.T) {
	c := &capacity{most: 1}
	o := &origin{dial: newDialKey("a.test", 80, plain, "")}
	place, err := c.enter(t.Context(), o, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = c.enter(t.Context(), o, 0); err != errFull {
		t.Error(err)
	}
	gone, cancel := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() {
		_, err := c.enter(gone, o, time.Hour)
		left <- err
	}()
	until(t, "one waits", func() bool { return c.waiting.Load() == 1 })
	order := make(chan int, 2)
	var all sync.WaitGroup
	for i := range 2 {
		all.Go(func() {
			p, err := c.enter(t.Context(), o, time.Hour)
			if err != nil {
				t.Error(err)
				return
			}
			order <- i
			c.leave(p)
		})
		until(t, "all wait", func() bool { return int(c.waiting.Load()) == 2+i })
	}
	cancel()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	c.leave(place)
	all.Wait()
	if one, other := <-order, <-order; one != 0 || other != 1 {
		t.Errorf("%d, %d", one, other)
	}
	if s := &c.shards[o.shard]; c.inUse.Load() != 0 || len(s.inUse) != 0 || len(s.spare) != 1 {
		t.Errorf("%d in use", c.inUse.Load())
	}
}
