package exchange

// Level is how much a visitor has to show before a request goes on: 0 nothing, up to 4 a captcha.
type Level uint8

// The levels, in the words of the specification.
const (
	Normal Level = iota
	Cookie302
	JS
	Pow
	Captcha
)

// Demand is what somebody asks of a request.
type Demand struct {
	Level Level
	// HighPow asks for the high-difficulty proof of work instead of a captcha.
	HighPow bool
}

// Or is the higher of two demands, d where they are equal.
func (d Demand) Or(other Demand) Demand {
	if other.Level > d.Level {
		return other
	}
	return d
}

var levelNames = [...]string{"normal", "cookie302", "js", "pow", "captcha"}

// String is the name the API uses.
func (l Level) String() string {
	if int(l) < len(levelNames) {
		return levelNames[l]
	}
	return "unknown"
}

// What features tell each other about an exchange.
var (
	// RuleDemand is of rules that matched, FloodDemand of CC mitigation, for the site or the path.
	RuleDemand, FloodDemand = NewFact[Demand](), NewFact[Demand]()
	// AllowListed says that the client is on an allow list, for all anybody knows.
	AllowListed = NewFact[bool]()
	// RuleAllowed says that an allow rule matched: it spares what Under Attack and CC mitigation ask, not what rules ask.
	RuleAllowed = NewFact[bool]()
	// Validation says that a certificate authority asks who controls the host: it has no cookies and follows nobody.
	Validation = NewFact[bool]()
	// UnknownHost says that the host is of no site, though a site may answer for it.
	UnknownHost = NewFact[bool]()
)
