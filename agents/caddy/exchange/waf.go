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

// WAFMatch is where a rule matched.
type WAFMatch struct {
	Rule int
	// Part is argument, cookie or header, and Name which; all is any other part.
	Part, Name string
	// Value is what matched, masked; "" unless the site wants it told.
	Value string
	// Points are what the rule's matches there add to the score.
	Points int
}

// WAFEvent is a request in which rules matched, without any value of it that could be read.
type WAFEvent struct {
	WAFOutcome
	// Matches are at most 32; Seen is how many there were.
	Matches   []WAFMatch
	Seen      int
	Threshold int
}

// WAFEvents keeps what is told of requests in which rules matched.
type WAFEvents interface {
	// WAFMatched keeps an event of the site and the client of an exchange until the console has it.
	WAFMatched(x *Exchange, e WAFEvent)
}

// WAF is the fact of it; a request that was not inspected has none.
var WAF = NewFact[WAFOutcome]()

// maxLoggedRules is how many rules of a request are told.
const maxLoggedRules = 16

// Logged are the rules that logs and events tell, at most 16.
func (o *WAFOutcome) Logged() []int { return o.Rules[:min(len(o.Rules), maxLoggedRules)] }
