package freshness

import (
	"math"
	"net/http"
	"net/textproto"
	"strings"
	"time"
)

// maxSeconds is what larger numbers of seconds count as (RFC 9111 section 1.2.2).
const maxSeconds = math.MaxInt32

// Control has the cache directives of a message. A time is Absent or at least 0; one that is not valid is 0, so that the
// response is stale (RFC 9111 section 4.2.1).
type Control struct {
	// Present says that the field is there, with any directive.
	Present bool

	NoStore, Public, MustRevalidate, ProxyRevalidate, MustUnderstand, OnlyIfCached bool
	// NoCache and Private are without a list of fields; the fields of such lists are in canonical form.
	NoCache, Private             bool
	NoCacheFields, PrivateFields []string

	MaxAge, SMaxAge, StaleWhileRevalidate, StaleIfError, MinFresh time.Duration
	// MaxStale is the largest possible time for the directive without a value.
	MaxStale time.Duration
}

func noControl() Control {
	return Control{MaxAge: Absent, SMaxAge: Absent, StaleWhileRevalidate: Absent, StaleIfError: Absent, MinFresh: Absent, MaxStale: Absent}
}

// ParseControl reads the lines of Cache-Control (RFC 9111 section 5.2). Names have no case. Of a directive that comes more
// than once, the first time counts (section 4.2.1), and every list of fields.
func ParseControl(lines []string) Control {
	c := noControl()
	for member := range members(lines) {
		name, value, hasValue := strings.Cut(member, "=")
		c.Present = true
		c.take(strings.ToLower(name), value, hasValue)
	}
	return c
}

func (c *Control) take(name, value string, hasValue bool) {
	switch name {
	case "no-store":
		c.NoStore = true
	case "public":
		c.Public = true
	case "must-revalidate":
		c.MustRevalidate = true
	case "proxy-revalidate":
		c.ProxyRevalidate = true
	case "must-understand":
		c.MustUnderstand = true
	case "only-if-cached":
		c.OnlyIfCached = true
	case "no-cache":
		takeFields(&c.NoCache, &c.NoCacheFields, value, hasValue)
	case "private":
		takeFields(&c.Private, &c.PrivateFields, value, hasValue)
	case "max-age":
		first(&c.MaxAge, seconds(value))
	case "s-maxage":
		first(&c.SMaxAge, seconds(value))
	case "stale-while-revalidate":
		first(&c.StaleWhileRevalidate, seconds(value))
	case "stale-if-error":
		first(&c.StaleIfError, seconds(value))
	case "min-fresh":
		first(&c.MinFresh, seconds(value))
	case "max-stale":
		if hasValue {
			first(&c.MaxStale, seconds(value))
		} else {
			first(&c.MaxStale, maxSeconds*time.Second)
		}
	}
}

func first(directive *time.Duration, to time.Duration) {
	if *directive < 0 {
		*directive = to
	}
}

// seconds reads delta-seconds, as a token or quoted (RFC 9111 section 5.2: recipients ought to accept both forms). Anything
// else is 0.
func seconds(value string) time.Duration {
	if strings.HasPrefix(value, `"`) {
		value, _ = unquote(value)
	}
	n, ok := number(value)
	if !ok {
		return 0
	}
	return time.Duration(n) * time.Second
}

// number reads digits alone. Larger numbers are maxSeconds.
func number(text string) (n int64, ok bool) {
	for i := range len(text) {
		c := text[i]
		if c < '0' || c > '9' {
			return 0, false
		}
		n = min(n*10+int64(c-'0'), maxSeconds)
	}
	return n, text != ""
}

// takeFields reads the list of a directive that may name fields. A list that is not valid counts as none: that forbids more.
func takeFields(all *bool, fields *[]string, value string, hasValue bool) {
	list := value
	if strings.HasPrefix(value, `"`) {
		var ok bool
		if list, ok = unquote(value); !ok {
			*all = true
			return
		}
	}
	found := false
	for name := range strings.SplitSeq(list, ",") {
		if name = trim(name); name == "" {
			continue
		}
		if !isToken(name) {
			*all = true
			return
		}
		found = true
		*fields = append(*fields, textproto.CanonicalMIMEHeaderKey(name))
	}
	if !hasValue || !found {
		*all = true
	}
}

// controlOf is what governs a response: CDN-Cache-Control where it is valid (RFC 9213 section 2.2), else Cache-Control.
// targeted says that it is the former, so that Expires does not count either.
func controlOf(h http.Header) (c Control, targeted bool) {
	if lines := h["Cdn-Cache-Control"]; lines != nil {
		if c, ok := ParseTargeted(lines); ok {
			return c, true
		}
	}
	return ParseControl(h["Cache-Control"]), false
}
