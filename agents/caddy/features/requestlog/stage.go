package requestlog

import (
	"sync"
	"sync/atomic"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
)

// maxForced is how many rows a second a site has beside those of its sample.
const maxForced = 100

// pace counts the forced rows of a site in a second: the second in the upper bits, the count in the lower ones.
type pace struct{ state atomic.Uint64 }

var paces = exchange.NewLive[pace]("request logs")

// take reports whether one more fits into the second.
func (p *pace) take(second int64) bool {
	for {
		before := p.state.Load()
		next := uint64(second)<<16 | 1
		if before>>16 == uint64(second) {
			if before&0xffff >= maxForced {
				return false
			}
			next = before + 1
		}
		if p.state.CompareAndSwap(before, next) {
			return true
		}
	}
}

var rowBuffers = sync.Pool{New: func() any { return new([]byte) }}

// Finish logs an exchange that is over. It costs a site that logs nothing three loads.
func Finish(c *core.Core) exchange.FinishStage {
	log := Of(c)
	return func(x *exchange.Exchange) {
		if x.Plan == nil || x.Local {
			return
		}
		s := part.Of(x.Plan)
		if t := log.tailOf(x.Plan.SiteID); t != nil && !exchange.IsUncounted(x) {
			log.show(t, x, settingsOf(s))
		}
		if s == nil {
			if !x.Overrides.HasLogSampleRate || x.Overrides.LogSampleRate == 0 {
				return
			}
			s = none
		}
		if !exchange.IsUncounted(x) {
			log.finish(x, s)
		}
	}
}

func settingsOf(s *settings) *settings {
	if s == nil {
		return none
	}
	return s
}

func (l *Log) finish(x *exchange.Exchange, s *settings) {
	rate := s.rate
	if x.Overrides.HasLogSampleRate {
		rate = x.Overrides.LogSampleRate
	}
	var why refusal
	if s.blocked {
		why = refusalOf(x)
	}
	now := l.now()
	forced := why.reason != "" || s != none && logged(x)
	switch {
	case forced && paceOf(x.Plan).take(now.Unix()):
		rate = exchange.SampleParts
	case rate == 0 || !x.Sampled(rate):
		if forced {
			l.lose(x.Plan.SiteID)
		}
		return
	}
	if why.reason == "" {
		why = refusalOf(x)
	}
	room := rowBuffers.Get().(*[]byte)
	*room = l.appendRow((*room)[:0], x, s, rate, why, now)
	l.put(x.Plan.SiteID, *room)
	rowBuffers.Put(room)
}

func paceOf(p *exchange.Plan) *pace {
	at := paces.Of(p)
	if at == nil {
		at = paces.Put(p, new(pace))
	}
	return at
}

// logged reports whether a log rule matched.
func logged(x *exchange.Exchange) bool {
	if _, known := exchange.Matched.Known(x); !known {
		return false
	}
	for _, m := range exchange.Matched.Of(x).Logged() {
		if m.Event == exchange.RuleLogged {
			return true
		}
	}
	return false
}
