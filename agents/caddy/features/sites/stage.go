package sites

import (
	"net/http"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
	"edge.svc/caddy/pages"
)

// Find is the stage that finds the site of the host. On a port that it is not bound to a site is unknown, but for questions
// of certificate authorities, which come to port 80 alone.
func Find(*core.Core) exchange.Stage {
	return func(x *exchange.Exchange) *exchange.Answer {
		host, kind := core.NormalizeHost(x.In.HostRaw)
		if kind != core.HostInvalid {
			x.In.Host = host
			if plan := core.PlanOfHost(x.Tables, host); plan != nil && reachable(x, plan) {
				x.Plan = plan
			}
		}
		if x.Plan == nil {
			*exchange.UnknownHost.Of(x) = true
		}
		return nil
	}
}

func reachable(x *exchange.Exchange, plan *exchange.Plan) bool {
	port, overTLS := x.In.NamedPort, x.In.TLS != nil
	if core.ServesPort(plan, port, overTLS) {
		return true
	}
	validation, _ := exchange.Validation.Known(x)
	return validation && port == core.HTTPPort && !overTLS
}

// AnswerUnknown is the stage for hosts of no site: they get the page, no answer at all, or the default site.
func AnswerUnknown(*core.Core) exchange.Stage {
	return func(x *exchange.Exchange) *exchange.Answer {
		if x.Plan != nil {
			return nil
		}
		setting := Unknown.Of(x.Tables)
		action := setting.Host
		if _, kind := core.NormalizeHost(x.In.HostRaw); kind == core.HostAddress {
			action = setting.Address
		}
		switch action {
		case configv1.UnknownHostAction_UNKNOWN_HOST_ACTION_CLOSE:
			return x.Drop()
		case configv1.UnknownHostAction_UNKNOWN_HOST_ACTION_SITE:
			if x.Plan = DefaultSite(x.Tables); x.Plan != nil {
				return nil
			}
		}
		return pages.Respond(x, http.StatusNotFound, pages.UnknownHost)
	}
}

// Disabled is the stage that answers for sites that are switched off, and for those that this node cannot serve as they
// are meant: they need what it lacks, or what guards them does not compile.
func Disabled(*core.Core) exchange.Stage {
	return func(x *exchange.Exchange) *exchange.Answer {
		if x.Plan.Disabled {
			return pages.Respond(x, http.StatusServiceUnavailable, pages.SiteDisabled)
		}
		if x.Plan.Unserved || !core.Guarded(x.Tables, x.Plan) {
			return pages.Respond(x, http.StatusServiceUnavailable, pages.PolicyUnavailable)
		}
		return nil
	}
}
