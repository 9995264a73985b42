package rules

import (
	"edge.svc/caddy/exchange"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
	"edge.svc/caddy/internal/ranges"
	"edge.svc/caddy/pages"
)

// blocked counts what rules blocked.
var blocked = exchange.NewCount("blocked.rule")

func (c *compiler) block(m *configv1.BlockAction) (action, error) {
	status := int(m.GetStatus())
	return func(q *request, r *rule) verdict {
		q.note(r, exchange.RuleBlocked)
		q.end(outcome{status: status, code: pages.PolicyDenied, mark: blocked})
		return stop
	}, oneOf("status", m.GetStatus(), 403, 451)
}

func logMatch(q *request, r *rule) verdict {
	q.note(r, exchange.RuleLogged)
	return goOn
}

// allow spares a request the rest of the list, and what Under Attack and CC mitigation ask; a challenge that a rule asked
// for before stays, and nothing else is spared.
func (c *compiler) allow() action {
	spelled := c.spelled
	return func(q *request, r *rule) verdict {
		if !spelled.plain(q) {
			return goOn
		}
		*exchange.RuleAllowed.Of(q.x) = true
		q.note(r, exchange.RuleApplied)
		return leaveScope
	}
}

// challenge asks for a level. Who has not shown it is challenged in the end, whatever rules after this one say: they run
// for those alone who have.
func (c *compiler) challenge(m *configv1.ChallengeAction) (action, error) {
	var check ranges.Check
	level := check.Level("type", m.GetType(), exchange.Normal)
	if level == exchange.Normal && check.Err == nil {
		check.Err = errNoValue
	}
	return func(q *request, r *rule) verdict {
		demand := exchange.RuleDemand.Of(q.x)
		*demand = demand.Or(exchange.Demand{Level: level})
		if q.rules.passes != nil && q.rules.passes.PassLevel(q.x) >= level {
			return q.applied(r)
		}
		q.note(r, exchange.RuleChallenged)
		return stop
	}, check.Err
}
