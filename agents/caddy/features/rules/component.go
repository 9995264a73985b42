package rules

import (
	"sync"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
)

// Rules is what the rules of a core ask others for. What nobody in the program can do is nil.
type Rules struct {
	core   *core.Core
	lists  exchange.IPLists
	geo    exchange.Geo
	limits exchange.RateLimits
	counts exchange.RuleCounts
	passes exchange.Passes

	requests sync.Pool
}

var component = core.NewComponent("rules", func(c *core.Core) *Rules {
	return &Rules{
		core:  c,
		lists: core.Find[exchange.IPLists](c), geo: core.Find[exchange.Geo](c),
		limits: core.Find[exchange.RateLimits](c), counts: core.Find[exchange.RuleCounts](c),
		passes:   core.Find[exchange.Passes](c),
		requests: sync.Pool{New: func() any { return new(request) }},
	}
})

// begin looks at an exchange as rules see it. a is nil while there is no answer.
func (r *Rules) begin(x *exchange.Exchange, a *exchange.Answer) *request {
	q := r.requests.Get().(*request)
	q.x, q.answer, q.rules = x, a, r
	return q
}

// end gives back what begin gave. What panicked before is not used again.
func (r *Rules) end(q *request) {
	q.reset()
	r.requests.Put(q)
}
