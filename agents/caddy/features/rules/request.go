package rules

import (
	"net/http"
	"time"

	"go.uber.org/zap"

	"edge.svc/caddy/exchange"
	"edge.svc/caddy/expr"
	"edge.svc/caddy/pages"
)

// request is an exchange as rules see it, for as long as the rules of one stage run.
type request struct {
	x      *exchange.Exchange
	answer *exchange.Answer
	rules  *Rules
	// What an evaluation asked for is not there, such as a database.
	missing bool
	// The request counts as the client sent it, not as rules left it.
	asked bool
	// Bytes that rules put into the header.
	grown int

	fullURI string
	joined  []joinedField
	// Looked up once, because many rules ask for them.
	userAgent, referer oftenField
	cookies            []string

	country located[string]
	system  located[system]

	due     []exchange.RateDue
	limited []limitDue
}

type system struct {
	number uint32
	name   string
}

// located is what a database says of the client, once it was asked.
type located[T any] struct {
	value        T
	asked, ready bool
}

func (q *request) reset() {
	clear(q.joined)
	clear(q.due)
	clear(q.limited)
	*q = request{joined: q.joined[:0], due: q.due[:0], limited: q.limited[:0]}
}

// run has the rules of a list act in their order, and reports whether that was the end of all rules.
func (q *request) run(rules []*rule) (ended bool) {
	for _, r := range rules {
		holds, failure := r.when.Holds(q)
		if why := q.why(failure); why != "" {
			if q.answer != nil {
				q.tell(r, "the condition of a rule failed: the rule is passed over", why)
				continue
			}
			return q.fail(r, why) == stop
		}
		if !holds {
			continue
		}
		switch r.do(q, r) {
		case leaveScope:
			return false
		case stop:
			return true
		}
	}
	return false
}

// why says why an evaluation has no result, "" when it has one.
func (q *request) why(failure expr.Failure) string {
	if q.missing {
		q.missing = false
		return "missing_data"
	}
	return failure.String()
}

// fail ends a request whose rules cannot be told: to pass over a rule could be to leave a door open.
func (q *request) fail(r *rule, why string) verdict {
	q.tell(r, "a rule failed: the request is refused", why)
	q.end(outcome{status: http.StatusServiceUnavailable, code: pages.PolicyUnavailable})
	return stop
}

// toldEvery is how often a rule is told of at most, in seconds.
const toldEvery = int64(time.Minute / time.Second)

// tell writes a line about a rule that failed, seldom, and nothing of the request.
func (q *request) tell(r *rule, message, why string) {
	now, last := q.x.Begun.Unix(), r.told.Load()
	if now >= last && now < last+toldEvery || !r.told.CompareAndSwap(last, now) {
		return
	}
	q.rules.core.Log().Warn(message, zap.String("rule", r.name.ID), zap.Bool("platform", r.name.Platform),
		zap.String("site", q.x.Plan.SiteID), zap.String("failure", why))
}

// note counts what became of the request under a rule.
func (q *request) note(r *rule, what exchange.RuleEvent) {
	if q.rules.counts != nil {
		q.rules.counts.Note(q.x, r.name, what)
	}
}

// applied counts a rule that did what it says, and goes on.
func (q *request) applied(r *rule) verdict {
	q.note(r, exchange.RuleApplied)
	return goOn
}
