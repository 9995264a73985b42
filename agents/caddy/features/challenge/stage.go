package challenge

import (
	"net/http"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
	"edge.svc/caddy/pages"
)

// Stage challenges a request that has not the highest level that anybody asks of it. Of equal demands the first one says
// which challenge it is.
func Stage(c *core.Core) exchange.Stage {
	challenges := Of(c)
	return func(x *exchange.Exchange) *exchange.Answer {
		protection := ProtectionOf(x.Plan)
		demand := demandOf(x, protection)
		if demand.Level == Normal {
			return nil
		}
		visit := visitOf(x, protection)
		a := challenges.Admit(x, &visit, demand)
		*exchange.Challenged.Of(x) = exchange.ChallengeVerdict{Demand: demand, Pass: challenges.PassLevel(x), Met: a == nil}
		return a
	}
}

func demandOf(x *exchange.Exchange, protection *Protection) (demand Demand) {
	if platform := Platform.Of(x.Tables); platform.UnderAttack {
		demand.Level = platform.Challenge
	}
	if x.Overrides.UnderAttack.Or(protection.UnderAttack) {
		demand = demand.Or(Demand{Level: protection.Challenge})
	}
	demand = demand.Or(floodOf(x))
	if demand.Level > Normal {
		listed, _ := exchange.AllowListed.Known(x)
		allowed, _ := exchange.RuleAllowed.Known(x)
		validation, _ := exchange.Validation.Known(x)
		if listed || allowed || validation {
			demand = Demand{}
		}
	}
	// Rules ask for what they were written for, whoever it is.
	rules, _ := exchange.RuleDemand.Known(x)
	return rules.Or(demand)
}

// floodOf is what CC mitigation asks, as far as rules let it: it was counted before they were asked.
func floodOf(x *exchange.Exchange) Demand {
	flood, _ := exchange.FloodDemand.Known(x)
	if x.Overrides.CC == exchange.Off {
		return Demand{}
	}
	if most := x.Overrides.CCMaxLevel; most > Normal && flood.Level > most {
		flood = Demand{Level: most}
	}
	return flood
}

func visitOf(x *exchange.Exchange, p *Protection) Visit {
	return Visit{
		SiteID: x.Plan.SiteID, Client: x.In.Client, Secure: x.In.Secure(), RequestID: x.In.ID,
		PassTTL: p.PassTTL, PowBits: p.PowDifficulty, PowHighBits: p.PowHighDifficulty,
	}
}

// Reserved is the stage that answers what is under the reserved prefix. Nothing of it ever reaches an origin.
func Reserved(c *core.Core) exchange.Stage {
	challenges := Of(c)
	return func(x *exchange.Exchange) *exchange.Answer {
		if !x.In.Target.Reserved() {
			return nil
		}
		switch path, method := x.In.Target.Path, x.In.Method; {
		case path == VerifyPath && method == http.MethodPost:
			visit := visitOf(x, ProtectionOf(x.Plan))
			return challenges.Verify(x, &visit)
		case path == WorkerPath && (method == http.MethodGet || method == http.MethodHead):
			return challenges.Worker(x)
		}
		return pages.Respond(x, http.StatusNotFound, pages.NotFound)
	}
}
