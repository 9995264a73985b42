package rules

import (
	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
	"edge.svc/caddy/pages"
)

// Response is the response stage of the phases that look at answers. What a site answers may be changed and compressed;
// of what the edge answers, only the header, and not what its answers need.
func Response(c *core.Core) exchange.ResponseStage {
	rules := Of(c)
	return func(x *exchange.Exchange, a *exchange.Answer) {
		if x.Plan == nil {
			return
		}
		platform, own := platformRules.Of(x.Tables), siteRules.Of(x.Plan)
		if !platform.looksAtAnswers() && !own.looksAtAnswers() || a.From == exchange.FromEdge && noBusinessOfRules(x, a) {
			return
		}
		q := rules.begin(x, a)
		q.run(platform.of(responseTransform))
		q.run(own.of(responseTransform))
		if a.From&exchange.FromSite != 0 {
			q.run(platform.of(compression))
			q.run(own.of(compression))
		}
		rules.end(q)
	}
}

func (p *program) looksAtAnswers() bool {
	return p != nil && len(p.phases[responseTransform])+len(p.phases[compression]) > 0
}

// noBusinessOfRules names the answers of the edge that belong to no site: of bans, under the reserved prefix, and of
// sites that answer nothing of their own.
func noBusinessOfRules(x *exchange.Exchange, a *exchange.Answer) bool {
	return x.Plan.Disabled || x.Plan.Unserved || !core.Guarded(x.Tables, x.Plan) || a.Code == pages.IPBanned || x.In.Target.Reserved()
}
