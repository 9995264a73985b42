package challenge

import "edge.svc/caddy/exchange"

// What is counted for a site and minute: challenges by their level, and what could not be challenged.
var (
	shownMarks, passedMarks = marksOf("challenge.shown."), marksOf("challenge.passed.")
	blockedMark             = exchange.NewCount("blocked.challenge")
)

func marksOf(prefix string) (marks [Captcha + 1]exchange.Count) {
	for level := Cookie302; level <= Captcha; level++ {
		marks[level] = exchange.NewCount(prefix + level.String())
	}
	return marks
}

// served counts a challenge that is shown.
func (c *Challenges) served(x *exchange.Exchange, level Level) {
	c.counters.served[level-1].Add(1)
	x.Mark(shownMarks[level])
}

// passed counts a challenge that was passed.
func (c *Challenges) passed(x *exchange.Exchange, level Level) {
	c.counters.passed[level-1].Add(1)
	x.Mark(passedMarks[level])
}
