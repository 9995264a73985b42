// Package challenge asks visitors to show that they are not a flood: it makes the challenges, checks the answers and
// gives and checks the passes. It knows nothing of configuration; whoever uses it says what a request needs.
//
// Nothing is kept about a visitor: a challenge is a signed token, a pass a signed cookie. What is kept is bounded: which
// tokens were answered, and who came back without a cookie.
package challenge

import "edge.svc/caddy/exchange"

// Level is how hard a challenge is. A pass of a level is good for every level up to it.
type Level = exchange.Level

// The levels, in their order.
const (
	Normal    = exchange.Normal
	Cookie302 = exchange.Cookie302
	JS        = exchange.JS
	Pow       = exchange.Pow
	Captcha   = exchange.Captcha
)

// Demand is what somebody asks of a request.
type Demand = exchange.Demand
