package challenge

import (
	"errors"
	"net/http"
	"time"

	"edge.svc/caddy/exchange"
	"edge.svc/caddy/pages"
)

// Verify answers a POST to the verify endpoint: a pass and the way back for a right answer, a new challenge for a wrong
// one, the way back alone for one that is worth nothing, where the visitor is challenged anew.
func (c *Challenges) Verify(x *exchange.Exchange, v *Visit) *exchange.Answer {
	if err := x.Body.Bound(maxFormBytes, formPause); err != nil {
		return pages.Respond(x, http.StatusRequestEntityTooLarge, pages.TooLarge)
	}
	keys := c.keys.Load()
	if keys == nil {
		return pages.Respond(x, http.StatusServiceUnavailable, pages.ChallengeUnavailable)
	}
	body, _, err := x.Body.Look(maxFormBytes + 1)
	switch {
	case errors.Is(err, exchange.ErrBodyTooLarge):
		return pages.Respond(x, http.StatusRequestEntityTooLarge, pages.TooLarge)
	case errors.Is(err, exchange.ErrNoMemory):
		return pages.RespondBusy(x)
	case err != nil:
		return pages.Respond(x, http.StatusBadRequest, pages.BadRequest)
	}
	form := readForm(string(body))
	form.back = returnPath(form.back)

	b := bind(v.SiteID, v.Client, userAgent(x))
	now := c.now().Unix()
	t, key := checkToken(keys, &b, form.token, now)
	if key == nil {
		return goBack(x, form.back)
	}
	demand := Demand{Level: t.level, HighPow: t.kind == typePow}
	again := func(shown notice) *exchange.Answer {
		c.served(x, demand.Level)
		return c.show(x, v, keys, &b, demand, now, shown, form.back)
	}
	if t.kind == typeCaptcha && form.alternative == typePow {
		demand.HighPow = true
		return again(noNotice)
	}

	right := t.solves(key, form.token, form.answer)
	// An image could be guessed at again and again, so its first answer is its only one.
	if right || t.kind == typeCaptcha {
		switch c.spent.spend(t.nonce[:], t.expires, now) {
		case spentBefore:
			c.counters.replayed.Add(1)
			return goBack(x, form.back)
		case spentUnknown:
			c.counters.overflowed.Add(1)
			// One digest buys little; what costs more could be sold many times over.
			if t.kind != typeJS {
				return again(noNotice)
			}
		}
	}
	if !right {
		c.counters.failed.Add(1)
		return again(wrongAnswer)
	}
	if !c.madeHere(&t) {
		c.counters.fromElsewhere.Add(1)
	}
	c.passed(x, t.level)
	c.verified.add(c.verified.key(&b, v.Client, ""), now)
	level, life := t.level, v.PassTTL
	if held := bestPass(keys, &b, x.In.Header["Cookie"], now); held.level > level {
		// A lower answer must not prolong what a dearer one earned.
		level, life = held.level, time.Duration(held.expires-now)*time.Second
	}
	a := goBack(x, form.back)
	a.Header["Set-Cookie"] = passHeaders(keys.current, &b, level, now, life, v.Secure)
	return a
}

// formPause is the longest pause of a client in sending its answer.
const formPause = 10 * time.Second

// goBack leads the visitor back. The way is without a host: it is right behind every proxy, and stays on this site.
func goBack(x *exchange.Exchange, back string) *exchange.Answer {
	a := x.Respond(http.StatusSeeOther)
	a.Header["Location"] = []string{back}
	a.Header["Cache-Control"] = noStore
	return a
}
