package freshness

import (
	"net/http"
	"slices"
	"time"
)

// Policy is what the deciding rule of a site says.
type Policy struct {
	// Override ignores Cache-Control, CDN-Cache-Control and Expires of the origin.
	Override bool
	// TTL takes the place of what the origin says with Override, else of what it does not say.
	TTL time.Duration
	// HasStatuses says that the rule lists statuses, which it compared already. Without a list, 200, 203, 206, 300, 301 and 308
	// are stored.
	HasStatuses bool
	// How long a stale response may be served while it is validated, and if that fails. 0 adds nothing.
	StaleWhileRevalidate, StaleIfError time.Duration
	// Authorized also stores responses to requests with Authorization; SetCookie those with Set-Cookie.
	Authorized, SetCookie bool
}

// Reason says why a response is stored or not.
type Reason string

// The reasons.
const (
	Stored        Reason = "stored"
	ByMethod      Reason = "method"
	ByStatus      Reason = "status"
	ByNoStore     Reason = "no-store"
	ByPrivate     Reason = "private"
	ByAuthorized  Reason = "authorization"
	BySetCookie   Reason = "set-cookie"
	ByVary        Reason = "vary"
	ByNoLifetime  Reason = "no-lifetime"
	ByNoValidator Reason = "no-validator"
	ByRequest     Reason = "request-no-store"
)

// Verdict is what becomes of a response.
type Verdict struct {
	Reason Reason
	// Lifetime is how long the response is fresh, counted from its age 0 (RFC 9111 section 4.2.1).
	Lifetime time.Duration
	// How long after its lifetime it may be served stale; 0 for not at all.
	StaleWhileRevalidate, StaleIfError time.Duration
	// NoCache asks for a validation before each use; MustRevalidate for one before each use as stale.
	NoCache, MustRevalidate bool
	// Withheld are the fields that are not stored, in canonical form.
	Withheld []string
	// Decided says that the rule caches the response at all: the TTL of browsers is the rule's.
	Decided bool
}

// Store reports whether the response is stored.
func (v *Verdict) Store() bool { return v.Reason == Stored }

// Judge decides about the response to a request of a client (RFC 9111 section 3). now is when the response came.
func Judge(method string, request http.Header, status int, response http.Header, p *Policy, now time.Time) Verdict {
	if method != http.MethodGet {
		return Verdict{Reason: ByMethod}
	}
	if status < 200 || status == http.StatusNotModified {
		return Verdict{Reason: ByStatus}
	}
	if varies(response["Vary"]) == variesByAll {
		return Verdict{Reason: ByVary}
	}
	if len(response["Set-Cookie"]) > 0 && !p.SetCookie {
		return Verdict{Reason: BySetCookie}
	}
	authorized := len(request["Authorization"]) > 0
	if authorized && !p.Authorized {
		return Verdict{Reason: ByAuthorized}
	}
	if p.Override {
		return p.overriding(status)
	}
	c, targeted := controlOf(response)
	return p.respecting(c, targeted, authorized, status, response, now)
}

func (p *Policy) overriding(status int) Verdict {
	if !p.HasStatuses && !byDefault(status) {
		return Verdict{Reason: ByStatus}
	}
	if p.TTL <= 0 {
		return Verdict{Reason: ByNoLifetime}
	}
	return Verdict{Reason: Stored, Decided: true, Lifetime: p.TTL, StaleWhileRevalidate: p.StaleWhileRevalidate, StaleIfError: p.StaleIfError}
}

func (p *Policy) respecting(c Control, targeted, authorized bool, status int, h http.Header, now time.Time) Verdict {
	switch {
	case !p.HasStatuses && !byDefault(status):
		return Verdict{Reason: ByStatus}
	case c.MustUnderstand && !understood(status):
		return Verdict{Reason: ByStatus}
	case c.NoStore && !c.MustUnderstand:
		// RFC 9111 section 5.2.2.3: a status that is understood takes the effect of no-store away.
		return Verdict{Reason: ByNoStore}
	case c.Private:
		return Verdict{Reason: ByPrivate}
	case authorized && !c.Public && !c.MustRevalidate && c.SMaxAge < 0:
		// RFC 9111 section 3.5.
		return Verdict{Reason: ByAuthorized}
	}
	v := Verdict{Reason: Stored, NoCache: c.NoCache, Decided: !c.NoCache}
	v.Withheld = append(slices.Clip(c.NoCacheFields), c.PrivateFields...)
	v.MustRevalidate = c.MustRevalidate || c.ProxyRevalidate || c.NoCache || c.SMaxAge >= 0
	explicit := true
	switch {
	case c.SMaxAge >= 0:
		v.Lifetime = c.SMaxAge
	case c.MaxAge >= 0:
		v.Lifetime = c.MaxAge
	case !targeted && len(h["Expires"]) > 0:
		v.Lifetime = expires(h, now)
	case c.NoCache:
	case c.Present:
		return Verdict{Reason: ByNoLifetime}
	default:
		explicit = false
		v.Lifetime = p.TTL
	}
	v.stale(c, p)
	if v.Lifetime <= 0 && !explicit {
		return Verdict{Reason: ByNoLifetime}
	}
	if (v.Lifetime <= 0 || v.NoCache) && !HasValidator(h) && v.StaleWhileRevalidate <= 0 && v.StaleIfError <= 0 {
		return Verdict{Reason: ByNoValidator, Decided: v.Decided}
	}
	return v
}

// stale sets for how long a stale response may be served: as the origin says (RFC 5861), else as the rule says. Directives
// that forbid it win (RFC 9111 section 4.2.4), but s-maxage does not take back what the origin itself says beside it.
func (v *Verdict) stale(c Control, p *Policy) {
	if c.MustRevalidate || c.ProxyRevalidate || c.NoCache {
		return
	}
	v.StaleWhileRevalidate, v.StaleIfError = c.StaleWhileRevalidate, c.StaleIfError
	if v.StaleWhileRevalidate < 0 && c.SMaxAge < 0 && v.Lifetime > 0 {
		v.StaleWhileRevalidate = p.StaleWhileRevalidate
	}
	if v.StaleIfError < 0 && c.SMaxAge < 0 && v.Lifetime > 0 {
		v.StaleIfError = p.StaleIfError
	}
	v.StaleWhileRevalidate, v.StaleIfError = max(v.StaleWhileRevalidate, 0), max(v.StaleIfError, 0)
}

// expires is the lifetime that Expires gives (RFC 9111 section 5.3): from Date, or from when the response came. It is 0 where
// the field is not valid or comes twice.
func expires(h http.Header, now time.Time) time.Duration {
	until, ok := dateIn(h, "Expires", now)
	if !ok {
		return 0
	}
	from, ok := dateIn(h, "Date", now)
	if !ok {
		from = now
	}
	return min(max(until.Sub(from), 0), maxSeconds*time.Second)
}

// byDefault reports whether a rule without a list of statuses stores a status.
func byDefault(status int) bool {
	switch status {
	case 200, 203, 206, 300, 301, 308:
		return true
	}
	return false
}

// understood reports whether this cache knows what the caching of a status asks for (RFC 9111 section 5.2.2.3).
func understood(status int) bool {
	return http.StatusText(status) != "" && status != http.StatusPartialContent
}

// Refuses reports whether a request asks that its response is not stored (RFC 9111 section 5.2.1.5).
func Refuses(request http.Header) bool { return ParseControl(request["Cache-Control"]).NoStore }
