package waf

import (
	"fmt"
	"io"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"edge.svc/caddy/exchange"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
	"edge.svc/caddy/internal/address"
)

// heldOf is how many permits of an engine's queue are handed out.
func heldOf(q *queue) int {
	return min(runtime.GOMAXPROCS(0), maxBudgets/4) + 1 - int(q.general.Load()+q.reserved.Load())
}

func flowFrom(site, client string, body bool) flow {
	return flow{site, address.NetworkOf(netip.MustParseAddr(client)), body}
}

// Sites take turns, then the networks of a site; within a network requests come in their order.
func TestSitesAndNetworksTakeTurns(t *testing.T) {
	q := newQueue(0)
	q.reserved.Store(0)
	var waiters []*node
	for i, f := range []flow{
		flowFrom("a", "192.0.2.1", true), flowFrom("a", "192.0.2.2", true), flowFrom("a", "192.0.2.3", true),
		flowFrom("a", "198.51.100.1", true), flowFrom("b", "192.0.2.1", true), flowFrom("a", "2001:db8::1", true),
	} {
		q.mu.Lock()
		waiters = append(waiters, q.enqueue(f, i == 2))
		q.mu.Unlock()
	}
	var order []int
	for range waiters {
		q.giveBack(&q.general)
		for i, w := range waiters {
			select {
			case <-w.ready:
				order = append(order, i)
			default:
			}
		}
	}
	if got := fmt.Sprint(order); got != "[2 4 3 5 0 1]" || q.waiting.Load() != 0 || len(q.bodies.children) != 0 {
		t.Errorf("%s, %d wait, %v", got, q.waiting.Load(), q.bodies.children)
	}
}

// While bodies flood one site, no request without a body of another is refused.
func TestAFloodedSiteRefusesNoneOfAnother(t *testing.T) {
	e := newEngine(t)
	s := settingsOf(t, func(m *configv1.SiteWaf) { m.RequestBodyLimit, m.ParanoiaLevel = 1<<20, 2 })
	body := "q=" + strings.Repeat("word+", 200_000)
	var over atomic.Bool
	var flood sync.WaitGroup
	for range 8 * runtime.GOMAXPROCS(0) {
		flood.Go(func() {
			for !over.Load() {
				x := asked("POST", "/", body, form)
				e.stage(x, s)
				x.Reset()
			}
		})
	}
	until(t, func() bool { return e.queue.waiting.Load() > 0 })
	for i := range 50 {
		x := asked("GET", fmt.Sprintf("/?page=%d", i), "")
		x.Plan = &exchange.Plan{SiteID: "b"}
		if a := e.stage(x, s); a != nil {
			t.Errorf("request %d of another site: %d", i, a.Status)
		}
		x.Reset()
	}
	over.Store(true)
	flood.Wait()
}

// begun says when it is read first.
type begun struct {
	io.Reader
	once func()
}

func (b *begun) Read(p []byte) (int, error) { b.once(); return b.Reader.Read(p) }

func (b *begun) Seek(int64, int) (int64, error) { return 0, io.ErrUnexpectedEOF }

// A long inspection gives its permit to another site between two rounds.
func TestLongInspectionsYield(t *testing.T) {
	e := newEngine(t)
	e.wait = time.Minute
	e.queue = newQueue(1)
	s := settingsOf(t, asIs)
	rules, err := e.need()
	if err != nil {
		t.Fatal(err)
	}
	var long atomic.Bool
	other := make(chan bool, 1)
	start := sync.OnceFunc(func() {
		go func() {
			x := asked("POST", "/", "q=word", form)
			x.Plan = &exchange.Plan{SiteID: "b"}
			e.stage(x, s)
			other <- long.Load()
			x.Reset()
		}()
		until(t, func() bool { return e.queue.waiting.Load() == 1 })
	})
	x := asked("POST", "/", "x", form)
	defer x.Reset()
	held := e.queue.take(x.Context(), x, e.wait)
	_, err = rules.inspect(x, s, look{in: &begun{strings.NewReader("q=" + strings.Repeat("word+", 80_000)), start}, whole: true}, func() bool {
		held = e.queue.yield(x.Context(), flowOf(x), held, e.wait)
		return held != nil
	})
	long.Store(true)
	e.queue.giveBack(held)
	if err != nil || <-other || e.queue.yields.Load() == 0 {
		t.Errorf("%v, %d yields: the other site waited for all of a long body", err, e.queue.yields.Load())
	}
}

func until(t *testing.T, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it never comes")
		}
	}
}

func BenchmarkFreePermit(b *testing.B) {
	q := newQueue(2)
	x := asked("GET", "/", "")
	for b.Loop() {
		q.giveBack(q.take(x.Context(), x, time.Second))
	}
}
