// Package svcchallenge asks visitors to show that they are not a flood: it makes the challenges, checks the answers and
// gives and checks the passes. It knows nothing of configuration; whoever uses it says what a request needs.
//
// Nothing is kept about a visitor: a challenge is a signed token, a pass a signed cookie. What is kept is bounded: which
// tokens were answered, and who came back without a cookie.
package svcchallenge

// Level is how hard a challenge is. A pass of a level is good for every level up to it.
type Level uint8

// The levels, in their order.
const (
	Normal Level = iota
	Cookie302
	JS
	Pow
	Captcha
)

var levelNames = [...]string{"normal", "cookie302", "js", "pow", "captcha"}

// String is the name the API uses.
func (l Level) String() string {
	if int(l) < len(levelNames) {
		return levelNames[l]
	}
	return "unknown"
}
