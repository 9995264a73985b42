package waf

import (
	"errors"
	"net/http"
	"runtime/debug"
	"strconv"

	"go.uber.org/zap"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
	"edge.svc/caddy/pages"
)

// What is counted for a site.
var (
	countMatched = exchange.NewCount("waf.matched")
	countAttack  = exchange.NewCount("waf.attack")
	countBlocked = exchange.NewCount("blocked.waf")
	countBusy    = exchange.NewCount("waf.busy")
	// Requests whose bodies went to the origin as they came.
	countUninspected = exchange.NewCount("waf.uninspected")
)

// Stage inspects requests of sites that want it. The head always is; a body is up to the site's limit, unless it is to go to
// the origin as it comes, and goes on untouched. A handshake of a WebSocket has no body: what follows it, once it was accepted, is no request.
func Stage(c *core.Core) exchange.Stage {
	e := component.Of(c)
	return func(x *exchange.Exchange) *exchange.Answer {
		s := part.Of(x.Plan)
		if s == nil || exchange.IsGRPC(x) {
			return nil
		}
		return e.stage(x, s)
	}
}

func (e *engine) stage(x *exchange.Exchange, s *settings) *exchange.Answer {
	if !x.Body.Exists() {
		key := keyOf(x, s)
		if v, ok := e.verdicts.get(key); ok {
			return e.decide(x, s, v)
		}
		v, err := e.run(x, s, look{})
		if err != nil {
			return e.fail(x, s, err)
		}
		e.verdicts.put(key, v)
		return e.decide(x, s, v)
	}
	body, err := e.look(x, s)
	if err != nil {
		return e.failBody(x, s, err)
	}
	v, err := e.run(x, s, body)
	if err != nil {
		return e.fail(x, s, err)
	}
	if v.unread {
		x.Mark(countUninspected)
		e.counters.uninspected.Add(1)
	}
	return e.decide(x, s, v)
}

// look keeps the beginning of a body, before anybody else waits for this request. Fields after a body that is longer than
// what is looked at are nobody's where attacks are blocked: they come when the origin has the body.
func (e *engine) look(x *exchange.Exchange, s *settings) (l look, err error) {
	if s.bodyLimit > 0 && x.Body.Streamed {
		x.Mark(countUninspected)
		e.counters.uninspected.Add(1)
	} else if s.bodyLimit > 0 {
		if l.whole, err = x.Body.Inspect(s.bodyLimit, e.room.Of(x.Plan.SiteID)); err != nil {
			return look{}, err
		}
		if x.Body.InspectedLength() > 0 {
			l.in, l.room = x.Body.Inspected(), e.room.Of(x.Plan.SiteID)
		}
	}
	if s.block && !l.whole {
		clear(x.Body.Trailer)
	}
	return l, nil
}

// failBody answers for a body that cannot be looked at. Where that is for want of room, nobody knows what is in it.
func (e *engine) failBody(x *exchange.Exchange, s *settings, err error) *exchange.Answer {
	if x.Body.Failed() {
		return pages.RespondToBody(x, err)
	}
	return e.fail(x, s, err)
}

var (
	errBusy  = errors.New("the WAF inspects too many requests at a time")
	errPanic = errors.New("a fault in the WAF stopped the inspection of a request")
)

// run inspects a request when it is its turn. A panic is the request's own.
func (e *engine) run(x *exchange.Exchange, s *settings, body look) (v verdict, err error) {
	rules, err := e.need()
	if err != nil {
		return v, err
	}
	held := e.queue.take(x.Context(), x, e.wait)
	if held == nil {
		return v, errBusy
	}
	defer func() {
		if held != nil {
			e.queue.giveBack(held)
		}
	}()
	defer func() {
		if p := recover(); p != nil {
			e.core.Log().Error("a panic was contained", zap.String("stage", "waf"), zap.String("site", x.Plan.SiteID), zap.Any("panic", p),
				zap.ByteString("stack", debug.Stack()))
			err = errPanic
		}
	}()
	e.counters.inspected.Add(1)
	return rules.inspect(x, s, body, func() bool {
		held = e.queue.yield(x.Context(), flowOf(x), held, e.wait)
		return held != nil
	})
}

// fail answers for a request that could not be inspected: where attacks are blocked it does not pass.
func (e *engine) fail(x *exchange.Exchange, s *settings, err error) *exchange.Answer {
	x.Mark(countBusy)
	switch err {
	case errBusy:
		e.counters.busy.Add(1)
	case errTime:
		e.counters.slow.Add(1)
	default:
		e.counters.failed.Add(1)
	}
	if !s.block {
		return nil
	}
	return pages.Respond(x, http.StatusServiceUnavailable, pages.WAFBusy)
}

// count counts the rules that matched, for the site.
func (e *engine) count(x *exchange.Exchange, rules []int) {
	if e.counts == nil {
		return
	}
	for _, id := range rules {
		name, known := e.names.Load(id)
		if !known {
			name, _ = e.names.LoadOrStore(id, exchange.NewRuleName(false, strconv.Itoa(id)))
		}
		e.counts.Note(x, name.(*exchange.RuleName), exchange.RuleOfWAF)
	}
}

// decide notes a verdict, and answers where the site blocks what is an attack.
func (e *engine) decide(x *exchange.Exchange, s *settings, v verdict) *exchange.Answer {
	if len(v.rules) == 0 && v.score < s.threshold {
		return nil
	}
	attack := v.score >= s.threshold
	outcome := exchange.WAFOutcome{Rules: v.rules, Score: v.score, Blocked: attack && s.block}
	*exchange.WAF.Of(x) = outcome
	if e.events != nil && e.sample.takes(x.Plan.SiteID, x.Begun.Unix()/60, attack) {
		e.events.WAFMatched(x, exchange.WAFEvent{WAFOutcome: outcome, Matches: v.matches, Seen: v.seen, Threshold: s.threshold})
	}
	x.Mark(countMatched)
	e.count(x, v.rules)
	if !attack {
		return nil
	}
	e.counters.attacks.Add(1)
	if !s.block {
		x.Mark(countAttack)
		return nil
	}
	e.counters.blocked.Add(1)
	x.Mark(countBlocked)
	return pages.Respond(x, http.StatusForbidden, pages.WAFBlocked)
}
