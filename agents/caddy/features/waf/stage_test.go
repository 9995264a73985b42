package waf

import (
	"context"
	"errors"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
)

// newEngine is one of its own, with the rules of all tests.
func newEngine(t testing.TB) *engine {
	t.Helper()
	shared, err := component.Of(sharedCore()).need()
	if err != nil {
		t.Fatal(err)
	}
	e := component.Of(core.New(core.Options{StateDir: t.TempDir()}))
	e.build = func(time.Duration) (*ruleSet, error) {
		rules := *shared
		return &rules, nil
	}
	return e
}

// What cannot be inspected does not pass where attacks are blocked, and is counted; where they are only noted it goes on as
// it came.
func TestRequestsThatCannotBeInspected(t *testing.T) {
	for name, hinder := range map[string]func(*engine){
		"all permits are held": func(e *engine) {
			e.queue = newQueue(0)
			e.queue.reserved.Store(0)
		},
		"no time for patterns": func(e *engine) {
			made := e.build
			e.build = func(d time.Duration) (*ruleSet, error) {
				rules, err := made(d)
				rules.patternTime = 1
				return rules, err
			}
		},
		"a panic": func(e *engine) {
			e.build = func(time.Duration) (*ruleSet, error) { return &ruleSet{patternTime: time.Hour}, nil }
		},
		"no rules": func(e *engine) {
			e.build = func(time.Duration) (*ruleSet, error) { return nil, errors.New("no rules") }
		},
		"no room for bodies":    func(e *engine) { e.room.Memory.Most, e.room.Files.Most = 0, 0 },
		"little room":           func(e *engine) { e.room.Memory.Most, e.room.Files.Most = 40<<10, 200<<10 },
		"no folder for bodies":  func(e *engine) { e.room.Memory.Most, e.room.Folder = 0, "/dev/null/waf" },
		"nothing hinders it":    func(*engine) {},
		"nothing hinders files": func(e *engine) { e.room.Memory.Most = 0 },
	} {
		for _, mode := range []configv1.WafMode{configv1.WafMode_WAF_MODE_BLOCK, configv1.WafMode_WAF_MODE_DETECT} {
			e := newEngine(t)
			s := settingsOf(t, func(m *configv1.SiteWaf) { m.Mode, m.RequestBodyLimit = mode, 1<<20 })
			e.wait = time.Millisecond
			hinder(e)
			body := "q=" + strings.Repeat("word+", 60_000)
			x := asked("POST", "/", body, "Content-Type: text/plain")
			x.SetContext(context.Background())
			a, busy := e.stage(x, s), slices.Contains(x.TakeMarks(), countBusy)
			hindered := !strings.HasPrefix(name, "nothing")
			if refused := a != nil && a.Status == http.StatusServiceUnavailable && a.Header.Get("X-Svc-Error") == "waf-busy"; refused != (hindered && s.block) || (a == nil) == refused || busy != hindered {
				t.Errorf("%s, %v: %+v, counted %v", name, mode, a, busy)
			}
			if got, err := io.ReadAll(&x.Body); string(got) != body || err != nil {
				t.Errorf("%s, %v: the origin gets %d of %d bytes, %v", name, mode, len(got), len(body), err)
			}
			x.Reset()
			if e.room.Memory.Held() != 0 || e.room.Files.Held() != 0 || name != "all permits are held" && heldOf(e.queue) != 0 {
				t.Errorf("%s, %v: %d bytes, %d in files and %d permits are held", name, mode, e.room.Memory.Held(), e.room.Files.Held(), heldOf(e.queue))
			}
		}
	}
}

// watched says at each reading how many permits are held.
type watched struct {
	io.Reader
	engine *engine
	held   int
}

func (w *watched) Read(p []byte) (int, error) {
	w.held = max(w.held, heldOf(w.engine.queue))
	return w.Reader.Read(p[:min(len(p), 10)])
}

// Whoever waits for a slow body keeps no other request from being inspected.
func TestSlowBodiesHoldNoPermit(t *testing.T) {
	e := newEngine(t)
	body := &watched{Reader: strings.NewReader("q=" + strings.Repeat("word+", 100)), engine: e}
	x := askedOf("POST", "/", body, form)
	defer x.Reset()
	if a := e.stage(x, settingsOf(t, asIs)); a != nil || body.held != 0 || e.counters.inspected.Load() != 1 {
		t.Errorf("%+v, %d permits are held", a, body.held)
	}
}

// Whatever one site holds, there is room for another.
func TestNoSiteTakesTheRoomOfOthers(t *testing.T) {
	e := newEngine(t)
	e.room.Memory.Most, e.room.Files.Most = 256<<10, 4<<20
	s := settingsOf(t, func(m *configv1.SiteWaf) { m.RequestBodyLimit = 1 << 20 })
	body := strings.Repeat("word ", 100_000)
	send := func(site string) (*exchange.Exchange, error) {
		x := asked("POST", "/", body, "Content-Type: text/plain")
		x.Plan = &exchange.Plan{SiteID: site}
		_, err := e.look(x, s)
		return x, err
	}
	var held []*exchange.Exchange
	for range 20 {
		x, err := send("greedy")
		if held = append(held, x); err != nil && err != exchange.ErrNoRoom {
			t.Fatal(err)
		}
	}
	if _, err := send("greedy"); err != exchange.ErrNoRoom {
		t.Errorf("a site takes all that there is: %v", err)
	}
	for _, site := range []string{"modest", "other"} {
		x, err := send(site)
		if err != nil {
			t.Errorf("%s: %v", site, err)
		}
		x.Reset()
	}
	for _, x := range held {
		x.Reset()
	}
	if x, err := send("greedy"); err != nil {
		t.Errorf("nothing was given back: %v", err)
	} else {
		x.Reset()
	}
}

// Rules are there while a site wants them, and what they took is given back afterwards.
func TestRulesComeAndGo(t *testing.T) {
	e := newEngine(t)
	builds := 0
	gone := make(chan int, 2)
	build := e.build
	e.build = func(d time.Duration) (*ruleSet, error) {
		builds++
		rules, err := build(d)
		runtime.AddCleanup(rules, func(n int) { gone <- n }, builds)
		return rules, err
	}
	e.releaseUnused(time.Now())
	if builds != 0 || e.rules.Load() != nil {
		t.Fatal("rules that nobody asked for")
	}
	s := settingsOf(t, asIs)
	for range 2 {
		if a := e.stage(asked("GET", "/", ""), s); a != nil {
			t.Error(a)
		}
	}
	used := time.Unix(e.used.Load(), 0)
	if e.releaseUnused(used.Add(keepUnused)); builds != 1 || e.rules.Load() == nil || len(e.verdicts.young) == 0 {
		t.Error("rules went that somebody may want again")
	}
	if e.releaseUnused(used.Add(keepUnused + time.Second)); e.rules.Load() != nil || len(e.verdicts.young) != 0 {
		t.Error("rules stay that nobody wants")
	}
	for collected := false; !collected; {
		runtime.GC()
		select {
		case <-gone:
			collected = true
		case <-time.After(10 * time.Millisecond):
		}
	}
	if a := e.stage(asked("GET", "/", ""), s); a != nil || builds != 2 {
		t.Errorf("%v, built %d times", a, builds)
	}
}
