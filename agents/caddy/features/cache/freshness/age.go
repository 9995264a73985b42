package freshness

import (
	"net/http"
	"time"
)

// InitialAge is the age of a response when it came (RFC 9111 section 4.2.3, corrected_initial_age): the field Age and the
// time since the request, or the time since Date, whichever is more.
func InitialAge(h http.Header, requested, received time.Time) time.Duration {
	corrected := ageIn(h) + max(received.Sub(requested), 0)
	apparent := time.Duration(0)
	if date, ok := dateIn(h, "Date", received); ok {
		// Both clocks are of whole seconds, so a part of one is no age.
		apparent = max(received.Truncate(time.Second).Sub(date), 0)
	}
	return min(max(apparent, corrected), maxSeconds*time.Second)
}

// Age is the current age of a stored response (section 4.2.3).
func Age(initial time.Duration, received, now time.Time) time.Duration {
	return min(initial+max(now.Sub(received), 0), maxSeconds*time.Second)
}

// Use is what a stored response is good for.
type Use uint8

// The uses.
const (
	// Fresh responses are sent as they are.
	Fresh Use = iota
	// StaleWhileValidating are sent, and validated by a request of the edge's own.
	StaleWhileValidating
	// Validate first; StaleOnError says whether the response may be sent if that fails.
	Validate
)

// Held is what a stored response says of its use.
type Held struct {
	InitialAge time.Duration
	Received   time.Time

	Lifetime, StaleWhileRevalidate, StaleIfError time.Duration
	NoCache                                      bool
}

// Use decides what a stored response is good for (RFC 9111 section 4, RFC 5861).
func (h *Held) Use(now time.Time) (use Use, age time.Duration) {
	age = Age(h.InitialAge, h.Received, now)
	switch {
	case h.NoCache:
		return Validate, age
	case age < h.Lifetime:
		return Fresh, age
	case age < h.Lifetime+h.StaleWhileRevalidate:
		return StaleWhileValidating, age
	}
	return Validate, age
}

// StaleOnError reports whether the response may be sent when the origin fails.
func (h *Held) StaleOnError(now time.Time) bool {
	return !h.NoCache && Age(h.InitialAge, h.Received, now) < h.Lifetime+max(h.StaleIfError, h.StaleWhileRevalidate)
}

// IsError reports whether a status of an origin is an error for stale-if-error (RFC 5861 section 4).
func IsError(status int) bool {
	switch status {
	case 500, 502, 503, 504:
		return true
	}
	return false
}

// Wish is what the cache directives of a request ask for, for a caller that honors them.
type Wish struct {
	// NoStore, NoCache and OnlyIfCached are the directives of these names; Pragma counts where Cache-Control is missing.
	NoStore, NoCache, OnlyIfCached bool

	maxAge, minFresh, maxStale time.Duration
}

// WishOf reads the cache directives of a request (RFC 9111 section 5.2.1 and 5.4).
func WishOf(request http.Header) Wish {
	c := ParseControl(request["Cache-Control"])
	w := Wish{c.NoStore, c.NoCache || len(c.NoCacheFields) > 0, c.OnlyIfCached, c.MaxAge, c.MinFresh, c.MaxStale}
	if len(request["Cache-Control"]) == 0 && HasToken(request["Pragma"], "no-cache") {
		w.NoCache = true
	}
	return w
}

// Accepts narrows the use of a stored response to what the request asks for. mustRevalidate forbids that it is sent stale.
func (w *Wish) Accepts(use Use, age time.Duration, h *Held, mustRevalidate bool) Use {
	left := h.Lifetime - age
	switch {
	case w.NoCache, w.maxAge >= 0 && age > w.maxAge, w.minFresh >= 0 && left < w.minFresh:
		return Validate
	case use != Fresh && !h.NoCache && !mustRevalidate && w.maxStale >= 0 && -left <= w.maxStale:
		return Fresh
	}
	return use
}
