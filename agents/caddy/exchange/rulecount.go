package exchange

import "hash/maphash"

// RuleCounts counts what became of requests under rules.
type RuleCounts interface {
	// Note counts one request under a rule, for the site of the exchange and the minute. What the node asks itself counts
	// nothing. It touches atomics alone, and allocates when it meets a rule for the first time.
	Note(x *Exchange, rule *RuleName, what RuleEvent)
}

// RuleEvent is what became of a request under a rule.
type RuleEvent uint8

// What is counted of rules. Each request counts once under a rule, but for rate limits, where only what is over counts.
const (
	// RuleLogged: a log rule matched.
	RuleLogged RuleEvent = iota + 1
	// RuleLimited: a rate limit refused the request.
	RuleLimited
	RuleBlocked
	RuleChallenged
	RuleRedirected
	// RuleApplied: a rule of any other kind matched and did what it says.
	RuleApplied
	// RuleOfWAF: a rule of the WAF's rule set matched, whatever became of the request. Its ID is its number.
	RuleOfWAF
)

// RuleName says which rule it is. Make it with NewRuleName when the rule is compiled.
type RuleName struct {
	Platform bool
	ID       string
	// Hash tells names apart quickly.
	Hash uint64
}

var ruleSeed = maphash.MakeSeed()

// NewRuleName names a rule of the platform or of a site.
func NewRuleName(platform bool, id string) *RuleName {
	hash := maphash.String(ruleSeed, id)
	if platform {
		hash = ^hash
	}
	return &RuleName{platform, id, hash}
}
