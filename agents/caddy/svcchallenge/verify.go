package svcchallenge

import (
	"errors"
	"io"
	"net/http"
	"sync"

	"edge.svc/caddy/svcerrors"
)

var forms = sync.Pool{New: func() any { return new([maxFormBytes + 1]byte) }}

var errTooLarge = errors.New("the form is too large")

// Verify answers a POST to the verify endpoint: a pass and the way back for a right answer, a new challenge for a wrong
// one, the way back alone for one that is worth nothing, where the visitor is challenged anew.
func (c *Challenges) Verify(w http.ResponseWriter, r *http.Request, v *Visit) {
	svcerrors.BoundBody(w, r)
	if r.ContentLength > maxFormBytes {
		svcerrors.Write(w, r, http.StatusRequestEntityTooLarge, svcerrors.TooLarge)
		return
	}
	keys := c.keys.Load()
	if keys == nil {
		svcerrors.Write(w, r, http.StatusServiceUnavailable, svcerrors.ChallengeUnavailable)
		return
	}
	form, err := receive(r)
	if err != nil {
		if errors.Is(err, errTooLarge) {
			svcerrors.Write(w, r, http.StatusRequestEntityTooLarge, svcerrors.TooLarge)
		} else {
			svcerrors.Write(w, r, http.StatusBadRequest, svcerrors.BadRequest)
		}
		return
	}
	form.back = returnPath(form.back)

	b := bind(v.SiteID, v.Client, userAgent(r))
	now := c.now().Unix()
	t, key := checkToken(keys, &b, form.token, now)
	if key == nil {
		goBack(w, form.back)
		return
	}
	demand := Demand{Level: t.level, HighPow: t.kind == typePow}
	again := func(shown notice) {
		c.counters.served[demand.Level-1].Add(1)
		c.show(w, r, v, keys, &b, demand, now, shown, form.back)
	}
	if t.kind == typeCaptcha && form.alternative == typePow {
		demand.HighPow = true
		again(noNotice)
		return
	}

	right := t.solves(key, form.token, form.answer)
	// An image could be guessed at again and again, so its first answer is its only one.
	if right || t.kind == typeCaptcha {
		switch c.spent.spend(t.nonce[:], t.expires, now) {
		case spentBefore:
			c.counters.replayed.Add(1)
			goBack(w, form.back)
			return
		case spentUnknown:
			c.counters.overflowed.Add(1)
			// One digest buys little; what costs more could be sold many times over.
			if t.kind != typeJS {
				again(noNotice)
				return
			}
		}
	}
	if !right {
		c.counters.failed.Add(1)
		again(wrongAnswer)
		return
	}
	if !c.madeHere(&t) {
		c.counters.fromElsewhere.Add(1)
	}
	c.counters.passed[t.level-1].Add(1)
	c.verified.add(c.verified.key(&b, v.Client, ""), now)
	held, _ := bestPass(keys, &b, r.Header["Cookie"], now)
	w.Header()["Set-Cookie"] = []string{passHeader(keys.current, &b, max(t.level, held), now, v.PassTTL, v.Secure)}
	goBack(w, form.back)
}

// receive reads the form.
func receive(r *http.Request) (answerForm, error) {
	buffer := forms.Get().(*[maxFormBytes + 1]byte)
	defer forms.Put(buffer)
	n, err := io.ReadFull(r.Body, buffer[:])
	switch {
	case err == nil:
		return answerForm{}, errTooLarge
	case err == io.EOF, err == io.ErrUnexpectedEOF:
		return readForm(string(buffer[:n])), nil
	}
	return answerForm{}, err
}

// goBack leads the visitor back. The way is without a host: it is right behind every proxy, and stays on this site.
func goBack(w http.ResponseWriter, back string) {
	h := w.Header()
	h["Location"] = []string{back}
	h["Cache-Control"] = noStore
	h["Content-Length"] = zero
	w.WriteHeader(http.StatusSeeOther)
}
