package rules

import (
	"edge.svc/caddy/exchange"
	"edge.svc/caddy/expr"
)

// askedCondition is a condition of other settings on the request as the client sent it.
type askedCondition struct {
	rules *Rules
	when  *expr.Condition
}

// AskedCondition compiles a condition that reads no response, see exchange.Conditions.
func (r *Rules) AskedCondition(encoded []byte) (exchange.Condition, error) {
	c := compiler{phase: cache}
	when, err := c.condition(encoded)
	if err != nil {
		return nil, err
	}
	return &askedCondition{r, when}, nil
}

// Holds evaluates the condition.
func (c *askedCondition) Holds(x *exchange.Exchange) (holds, decided bool) {
	q := c.rules.begin(x, nil)
	q.asked = true
	holds, failure := c.when.Holds(q)
	decided = q.why(failure) == ""
	c.rules.end(q)
	return holds, decided
}

// target is the target as rules before left it, or as the client sent it.
func (q *request) target() *exchange.Target {
	if q.asked {
		return &q.x.In.Target
	}
	return q.x.Target()
}
