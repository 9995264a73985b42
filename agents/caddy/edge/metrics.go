package edge

import (
	"fmt"
	"io"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
)

const (
	// One of so many exchanges is timed, and only while somebody reads the figures.
	sampleEvery = 16
	watchedFor  = 2 * time.Minute
	// Buckets of time: up to 1 µs, 2 µs, 4 µs, … 2^(timeBuckets-2) µs, and more.
	timeBuckets = 22
)

// metrics are the figures of the stages. Nothing is timed while nobody reads them.
type metrics struct {
	stages []stageMetrics
	// Until when somebody is taken to be reading, in nanoseconds since 1970.
	watched atomic.Int64
	turn    atomic.Uint32
	// Since when figures are looked at; checked only once in a while.
	watching atomic.Bool
}

type stageMetrics struct {
	name string
	// Answers with a code of the edge: code -> *atomic.Uint64; others by the hundreds of their status.
	coded   sync.Map
	answers [10]atomic.Uint64
	times   [timeBuckets]atomic.Uint64
	total   atomic.Int64
}

func newMetrics(stages []stage) *metrics {
	m := &metrics{stages: make([]stageMetrics, len(stages))}
	for i := range stages {
		m.stages[i].name = stages[i].name
	}
	return m
}

// sample says whether the stages of an exchange are to be timed.
func (m *metrics) sample() bool {
	if !m.watching.Load() || m.turn.Add(1)%sampleEvery != 0 {
		return false
	}
	if time.Now().UnixNano() > m.watched.Load() {
		m.watching.Store(false)
		return false
	}
	return true
}

func (m *metrics) took(at int, d time.Duration) {
	s := &m.stages[at]
	s.times[min(bits.Len64(uint64(max(d.Microseconds(), 0))), timeBuckets-1)].Add(1)
	s.total.Add(int64(d))
}

// answered counts an answer of a stage.
func (m *metrics) answered(at int, a *exchange.Answer) {
	s := &m.stages[at]
	a.Stage = s.name
	code := a.Code
	switch {
	case a.Drop:
		code = "none"
	case code == "":
		s.answers[min(max(a.Status/100, 0), 9)].Add(1)
		return
	}
	n, ok := s.coded.Load(code)
	if !ok {
		n, _ = s.coded.LoadOrStore(code, new(atomic.Uint64))
	}
	n.(*atomic.Uint64).Add(1)
}

// figures are those of the orders that serve. A later load of Caddy's configuration counts on in the same.
type figures struct {
	core *core.Core
	mu   sync.Mutex
	// For the visitors' requests, and for the node's own.
	of [2]*metrics
}

var allFigures = core.NewComponent("stages", func(c *core.Core) *figures { return &figures{core: c} })

// metricsOf returns the figures of an order.
func metricsOf(c *core.Core, local bool, stages []stage) *metrics {
	f := allFigures.Of(c)
	f.mu.Lock()
	defer f.mu.Unlock()
	at := 0
	if local {
		at = 1
	}
	if f.of[at] == nil {
		f.of[at] = newMetrics(stages)
	}
	return f.of[at]
}

// WriteMetrics writes the figures of the visitors' requests.
func (f *figures) WriteMetrics(w io.Writer) {
	f.mu.Lock()
	m := f.of[0]
	f.mu.Unlock()
	if m != nil {
		m.write(w, f.core.Now())
	}
}

// write writes the figures in the text form of Prometheus, and has stages timed for a while.
func (m *metrics) write(w io.Writer, now time.Time) {
	m.watched.Store(now.Add(watchedFor).UnixNano())
	m.watching.Store(true)
	fmt.Fprint(w, "# HELP svc_edge_answers_total Responses by the stage that made them and code.\n# TYPE svc_edge_answers_total counter\n")
	for i := range m.stages {
		s := &m.stages[i]
		s.coded.Range(func(code, n any) bool {
			fmt.Fprintf(w, "svc_edge_answers_total{stage=%q,code=%q} %d\n", s.name, code, n.(*atomic.Uint64).Load())
			return true
		})
		for hundreds := range s.answers {
			if n := s.answers[hundreds].Load(); n > 0 {
				fmt.Fprintf(w, "svc_edge_answers_total{stage=%q,code=\"%dxx\"} %d\n", s.name, hundreds, n)
			}
		}
	}
	fmt.Fprintf(w, "# HELP svc_edge_stage_seconds Time in a stage, sampled while metrics are read.\n# TYPE svc_edge_stage_seconds histogram\n")
	for i := range m.stages {
		s := &m.stages[i]
		sum := uint64(0)
		for b := range s.times {
			sum += s.times[b].Load()
			if b < timeBuckets-1 {
				fmt.Fprintf(w, "svc_edge_stage_seconds_bucket{stage=%q,le=\"%g\"} %d\n", s.name, float64(uint64(1)<<b)/1e6, sum)
			}
		}
		fmt.Fprintf(w, "svc_edge_stage_seconds_bucket{stage=%q,le=\"+Inf\"} %d\nsvc_edge_stage_seconds_sum{stage=%q} %g\nsvc_edge_stage_seconds_count{stage=%q} %d\n",
			s.name, sum, s.name, time.Duration(s.total.Load()).Seconds(), s.name, sum)
	}
}
