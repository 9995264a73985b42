package exchange

// WAFOutcome is what inspecting a request found.
type WAFOutcome struct {
	// Rules are the ids of the rules that matched, each once, in their order. The slice is shared: nobody changes it.
	Rules []int
	// Score is the sum of what they weigh.
	Score int
	// Blocked says that the request was refused for it.
	Blocked bool
}

// WAF is the fact of it; a request that was not inspected has none.
var WAF = NewFact[WAFOutcome]()

// maxLoggedRules is how many rules of a request are told.
const maxLoggedRules = 16

// Logged are the rules that logs and events tell, at most 16.
func (o *WAFOutcome) Logged() []int { return o.Rules[:min(len(o.Rules), maxLoggedRules)] }
