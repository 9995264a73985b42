package rules

import (
	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
	"edge.svc/caddy/pages"
)

// Of returns the rules of a core.
func Of(c *core.Core) *Rules { return component.Of(c) }

// Stage is the stage of all phases before an origin is asked. Its responses are deferred: a client over its rate has to be
// counted first. What another stage refuses already meets no rules. The node's own requests meet no rule that denies,
// and are counted nowhere.
func Stage(c *core.Core) exchange.Stage {
	rules := Of(c)
	return func(x *exchange.Exchange) *exchange.Answer {
		platform, own, redirects := platformRules.Of(x.Tables), siteRules.Of(x.Plan), bulkRedirects.Of(x.Tables).of(x.Plan.SiteID)
		if platform == nil && own == nil && redirects.Len() == 0 || x.HasDeferred() {
			return nil
		}
		q := rules.begin(x, nil)
		q.decide(platform, own, redirects)
		rules.end(q)
		return nil
	}
}

// requestPhases are in the order in which they run.
var requestPhases = [...]struct {
	phase
	denies bool
}{
	{requestTransform, false}, {redirect, false}, {config, false}, {wafCustom, true}, {rateLimit, true}, {cache, false}, {origin, false},
}

func (q *request) decide(platform, own *program, redirects sources) {
	for _, at := range requestPhases {
		if q.x.Local && at.denies {
			continue
		}
		if q.run(platform.of(at.phase)) || q.run(own.of(at.phase)) {
			return
		}
		switch at.phase {
		case redirect:
			if q.redirectInBulk(redirects) {
				return
			}
		case rateLimit:
			if len(q.due) > 0 && q.refuseLimited() {
				return
			}
		}
	}
}

// outcome is the response that rules defer.
type outcome struct {
	status   int
	code     string
	location string
	// Value of Retry-After; nil for none.
	retryAfter []string
	mark       exchange.Count
}

var outcomes = exchange.NewFact[outcome]()

// end defers a response.
func (q *request) end(o outcome) {
	*outcomes.Of(q.x) = o
	q.x.Defer(giveOutcome)
}

func giveOutcome(x *exchange.Exchange) *exchange.Answer {
	o, _ := outcomes.Known(x)
	if o.mark != exchange.OtherCount {
		x.Mark(o.mark)
	}
	if o.location != "" {
		a := x.Respond(o.status)
		a.Header["Location"] = []string{o.location}
		return a
	}
	a := pages.Respond(x, o.status, o.code)
	if o.retryAfter != nil {
		a.Header["Retry-After"] = o.retryAfter
	}
	return a
}
