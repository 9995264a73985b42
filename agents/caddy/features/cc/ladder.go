package cc

import "time"

// Below this share of its threshold a trigger is calm.
const calmRatio = 0.8

// ladder is the level of a site or path with its timers:
//
//	trigger ratio | action
//	above 1       | calm ends; held for EscalateAfter: one level up, at most MaxLevel
//	0.8 to 1      | neither holds nor is calm
//	below 0.8     | hold ends; calm for Cooldown: one level down
//
// A level above MaxLevel comes down to it at once.
type ladder struct {
	level         Level
	holding, calm bool
	since         time.Duration
}

// step takes the ladder one evaluation further and names the cause of a change of level, "" without one: "trigger",
// "cooldown" or "policy".
func (l *ladder) step(now time.Duration, ratio float64, t *Thresholds) string {
	cause := ""
	if l.level > t.MaxLevel {
		l.level = t.MaxLevel
		cause = metricPolicy
	}
	switch {
	case ratio > 1:
		if !l.holding {
			l.holding, l.calm, l.since = true, false, now
		}
		if now-l.since >= t.EscalateAfter && l.level < t.MaxLevel {
			l.level++
			l.since = now
			cause = causeTrigger
		}
	case ratio < calmRatio:
		if !l.calm {
			l.holding, l.calm, l.since = false, true, now
		}
		if now-l.since >= t.Cooldown && l.level > 0 {
			l.level--
			l.since = now
			cause = metricCooldown
		}
	default:
		l.holding, l.calm = false, false
	}
	return cause
}

// calmFor is how long the level has been held without the trigger.
func (l *ladder) calmFor(now time.Duration) time.Duration {
	if !l.calm {
		return 0
	}
	return now - l.since
}

// restore continues where a former process was.
func (l *ladder) restore(now time.Duration, level Level, calmFor time.Duration) {
	*l = ladder{level: level, calm: calmFor > 0, since: now - calmFor}
}
