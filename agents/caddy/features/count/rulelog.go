package count

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"go.uber.org/zap"

	"edge.svc/caddy/exchange"
)

const (
	// Rules of sites that are remembered for the lines of one minute, and lines of one minute.
	maxLogRules = 10_000
	maxLogLines = 500
)

// ruleLog says once a minute which log rules matched, by their ids alone. It is not for several goroutines.
type ruleLog struct {
	minute  int64
	matches map[loggedRule]uint64
	// Lines of minutes that are over.
	lines []ruleLine
	// Rules of which no line is there.
	left int
}

type loggedRule struct {
	siteID string
	ruleKey
}

type ruleLine struct {
	loggedRule
	minute   int64
	requests uint64
}

// note takes over what settled.
func (l *ruleLog) note(siteID string, minute int64, rule ruleKey, event exchange.RuleEvent, n uint64) {
	if event != exchange.RuleLogged || siteID == "" {
		return
	}
	key := loggedRule{siteID, rule}
	if _, known := l.matches[key]; !known && len(l.matches) >= maxLogRules {
		l.left++
		return
	}
	if l.matches == nil {
		l.matches = map[loggedRule]uint64{}
	}
	l.matches[key] += n
}

// close makes lines of a minute that is over.
func (l *ruleLog) close(minute int64) {
	if minute == l.minute {
		return
	}
	keys := slices.SortedFunc(maps.Keys(l.matches), func(a, b loggedRule) int {
		return cmp.Or(cmp.Compare(l.matches[b], l.matches[a]), cmp.Compare(a.siteID, b.siteID), cmp.Compare(a.id, b.id))
	})
	room := max(maxLogLines-len(l.lines), 0)
	for _, key := range keys[:min(len(keys), room)] {
		l.lines = append(l.lines, ruleLine{key, l.minute, l.matches[key]})
	}
	l.left += max(len(keys)-room, 0)
	l.minute, l.matches = minute, nil
}

// take returns the lines that are to be written, and of how many rules there is none.
func (l *ruleLog) take() (lines []ruleLine, left int) {
	lines, left = l.lines, l.left
	l.lines, l.left = nil, 0
	return lines, left
}

// writeLines writes what is known of minutes that are over.
func (s *Stats) writeLines() {
	s.mu.Lock()
	lines, left := s.ruleLog.take()
	s.mu.Unlock()
	for _, line := range lines {
		s.log.Info("a log rule matched", zap.String("site", line.siteID), zap.String("rule", line.id), zap.Bool("platform", line.platform),
			zap.Uint64("requests", line.requests), zap.Time("minute", time.Unix(line.minute, 0).UTC()))
	}
	if left > 0 {
		s.log.Info("more log rules matched than may be logged in a second", zap.Int("rules", left))
	}
}
