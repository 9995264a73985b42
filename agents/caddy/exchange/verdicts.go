package exchange

// What logs tell of an exchange beside its request, its response, Origin and WAF. A verdict that no stage came to is not
// known.
var (
	// Matched is the rules that matched.
	Matched = NewFact[MatchedRules]()
	// Ban is the ban that the client was refused for.
	Ban = NewFact[BanVerdict]()
	// BlockListed says that the client is on a block list. AllowListed is its counterpart.
	BlockListed = NewFact[bool]()
	// Challenged is what was asked of the client.
	Challenged = NewFact[ChallengeVerdict]()
	// GRPC says that the request is one of gRPC, to a site that has it on.
	GRPC = NewFact[bool]()
	// Uncounted says that the request is none of a visitor, and so in no statistics.
	Uncounted = NewFact[bool]()
)

// IsUncounted reports whether the request is in no statistics.
func IsUncounted(x *Exchange) bool {
	is, _ := Uncounted.Known(x)
	return is
}

// IsGRPC reports whether the request is one of gRPC, to a site that has it on.
func IsGRPC(x *Exchange) bool {
	is, _ := GRPC.Known(x)
	return is
}

// MatchedRules are the rules of the site and the platform that matched, in their order.
type MatchedRules struct {
	// Total counts those that are not told, too.
	Total int
	first [maxLoggedRules]MatchedRule
}

// MatchedRule is a rule, and what became of the request under it.
type MatchedRule struct {
	Rule  *RuleName
	Event RuleEvent
}

// Add notes one more.
func (m *MatchedRules) Add(rule *RuleName, event RuleEvent) {
	if m.Total < len(m.first) {
		m.first[m.Total] = MatchedRule{rule, event}
	}
	m.Total++
}

// Logged are the rules that logs tell, at most 16.
func (m *MatchedRules) Logged() []MatchedRule { return m.first[:min(m.Total, len(m.first))] }

// BanVerdict is a ban.
type BanVerdict struct {
	// Site says that it is of the site, not of all.
	Site bool
}

// ChallengeVerdict is what was asked of a client, and what it had.
type ChallengeVerdict struct {
	Demand Demand
	// Pass is the level of the client's pass.
	Pass Level
	// Met says that the pass was enough.
	Met bool
}
