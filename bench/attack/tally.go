package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// tally counts what happens within a second.
type tally struct {
	mu   sync.Mutex
	now  second
	took []time.Duration
}

// second is one line of the report.
type second struct {
	Second int    `json:"second"`
	Phase  string `json:"phase"`
	Flood  struct {
		Sent    int            `json:"sent"`
		Skipped int            `json:"skipped"`
		Failed  int            `json:"failed"`
		Answers map[string]int `json:"answers"`
	} `json:"flood"`
	Visitors struct {
		Visits     int            `json:"visits"`
		Failed     int            `json:"failed"`
		Failures   map[string]int `json:"failures"`
		Challenges map[string]int `json:"challenges"`
		TookMs     []float64      `json:"tookMs"`
	} `json:"visitors"`
}

func (t *tally) flood(a answer, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f := &t.now.Flood
	f.Sent++
	if err != nil {
		f.Failed++
		return
	}
	add(&f.Answers, a.outcome())
}

func (t *tally) skipped() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.now.Flood.Skipped++
}

func (t *tally) visit(took time.Duration, challenges []string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	v := &t.now.Visitors
	v.Visits++
	for _, c := range challenges {
		add(&v.Challenges, c)
	}
	if err != nil {
		v.Failed++
		add(&v.Failures, err.Error())
		return
	}
	v.TookMs = append(v.TookMs, float64(took.Microseconds())/1000)
}

func add(counts *map[string]int, name string) {
	if *counts == nil {
		*counts = map[string]int{}
	}
	(*counts)[name]++
}

// take returns what was counted since the last call.
func (t *tally) take() second {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.now
	t.now = second{}
	return s
}

// write writes one second for people or for programs.
func (s *second) write(out io.Writer, asJSON bool) {
	if asJSON {
		_ = json.NewEncoder(out).Encode(s)
		return
	}
	text := fmt.Sprintf("%4d s", s.Second)
	if f := s.Flood; f.Sent+f.Skipped > 0 {
		text += fmt.Sprintf("  flood %5d/s: %s", f.Sent, listed(f.Answers))
		if f.Failed > 0 {
			text += fmt.Sprintf(", %d without an answer", f.Failed)
		}
		if f.Skipped > 0 {
			text += fmt.Sprintf(", %d not sent", f.Skipped)
		}
	}
	if v := s.Visitors; v.Visits > 0 {
		text += fmt.Sprintf("  visitors: %d of %d got through", v.Visits-v.Failed, v.Visits)
		if len(v.TookMs) > 0 {
			text += fmt.Sprintf(", slowest %.0f ms", slices.Max(v.TookMs))
		}
		if len(v.Challenges) > 0 {
			text += ", solved " + listed(v.Challenges)
		}
		if v.Failed > 0 {
			text += ", failed: " + listed(v.Failures)
		}
	}
	fmt.Fprintln(out, text)
}

func listed(counts map[string]int) string {
	names := slices.SortedFunc(maps.Keys(counts), func(a, b string) int { return counts[b] - counts[a] })
	parts := make([]string, 0, len(names))
	for _, name := range names {
		parts = append(parts, fmt.Sprintf("%d× %s", counts[name], name))
	}
	return strings.Join(parts, ", ")
}
