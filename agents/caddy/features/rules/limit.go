package rules

import (
	"net/http"
	"strconv"

	"edge.svc/caddy/exchange"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
	"edge.svc/caddy/internal/ranges"
	"edge.svc/caddy/pages"
)

// limited counts what rate limits refused.
var limited = exchange.NewCount("blocked.rate-limit")

// limit is a rate limit.
type limit struct {
	rate   *exchange.RateRule
	status int
	// Value of Retry-After.
	after []string
}

// limitDue is a limit that a request falls under, and its rule.
type limitDue struct {
	rule  *rule
	limit *limit
}

var limitedBy = map[configv1.RateLimitKey]exchange.RateBy{
	configv1.RateLimitKey_RATE_LIMIT_KEY_ADDRESS: exchange.RateByAddress,
	configv1.RateLimitKey_RATE_LIMIT_KEY_HOST:    exchange.RateByHost,
	configv1.RateLimitKey_RATE_LIMIT_KEY_JA4:     exchange.RateByJA4,
	configv1.RateLimitKey_RATE_LIMIT_KEY_HEADER:  exchange.RateByHeader,
}

// rateLimit has a request count under the limit once all limits are known that it falls under.
func (c *compiler) rateLimit(m *configv1.RateLimitAction) (action, error) {
	var check ranges.Check
	most := check.Number("limit", m.GetLimit(), 1, 100_000)
	window := check.Number("window_seconds", m.GetWindowSeconds(), 1, 3600)
	if err := oneOf("status", m.GetStatus(), 429, 403); err != nil && check.Err == nil {
		check.Err = err
	}
	if check.Err != nil {
		return nil, check.Err
	}
	by := limitedBy[m.GetKey()]
	switch {
	case by == 0:
		return nil, errUnknown
	case (by == exchange.RateByHeader) != (m.GetHeader() != ""), by == exchange.RateByHeader && !isHeaderName(m.GetHeader()):
		return nil, errHeader
	}
	header := http.CanonicalHeaderKey(m.GetHeader())
	l := &limit{
		rate:   exchange.NewRateRule(c.platform, c.id, by, m.GetHeader(), most, window),
		status: int(m.GetStatus()), after: []string{strconv.Itoa(int(window))},
	}
	return func(q *request, r *rule) verdict {
		var due exchange.RateDue
		switch by {
		case exchange.RateByAddress:
			due = l.rate.DueOfAddress(q.x.In.Client)
		case exchange.RateByHost:
			due = l.rate.DueOfText(q.x.In.Host)
		case exchange.RateByHeader:
			due = l.rate.DueOfText(q.requestHeader(header))
		default:
			// Nobody has a fingerprint without HTTPS: those count together.
			due = l.rate.DueOfText(q.x.In.JA4())
		}
		q.due, q.limited = append(q.due, due), append(q.limited, limitDue{r, l})
		return goOn
	}, nil
}

// refuseLimited counts the request under all limits that it falls under, unless it is over one of them.
func (q *request) refuseLimited() (refused bool) {
	if q.rules.limits == nil {
		return q.fail(q.limited[0].rule, "missing_data") == stop
	}
	over := q.rules.limits.Admit(q.x.Plan, q.due)
	if over < 0 {
		return false
	}
	by := q.limited[over]
	q.note(by.rule, exchange.RuleLimited)
	q.end(outcome{status: by.limit.status, code: pages.PolicyDenied, retryAfter: by.limit.after, mark: limited})
	return true
}
