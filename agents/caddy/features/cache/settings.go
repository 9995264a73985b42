package cache

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
	"edge.svc/caddy/features/cache/freshness"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
)

const kind = "site-cache"

// settings are those of a site, immutable.
type settings struct {
	rules    []rule
	key      keySettings
	keepTags bool
	slices   bool
	hide     bool
}

// rule decides about the responses to requests for which its condition holds.
type rule struct {
	priority     uint32
	when         exchange.Condition
	statuses     []uint32
	least, most  uint64
	bypass       bool
	policy       freshness.Policy
	browser      uint32
	browserValue []string
}

var part = core.PartOf(kind, "cache", compile)

const (
	maxRules    = 64
	maxStatuses = 16
	maxPriority = 10_000
	maxTTL      = 31_536_000
	maxStale    = 2_592_000
)

var errCondition = errors.New("this program has nothing that evaluates conditions")

func compile(c *core.Core, _ string, m *configv1.SiteCache) (*settings, error) {
	if len(m.GetRules()) == 0 {
		return nil, nil
	}
	if len(m.GetRules()) > maxRules {
		return nil, fmt.Errorf("the entry has %d cache rules; the maximum is %d", len(m.GetRules()), maxRules)
	}
	conditions := core.Find[exchange.Conditions](c)
	if conditions == nil {
		return nil, errCondition
	}
	s := &settings{keepTags: m.GetKeepCacheTag(), slices: m.GetRangeSlice(), hide: m.GetHideXCache()}
	for i, message := range m.GetRules() {
		if i > 0 && message.GetPriority() <= s.rules[i-1].priority {
			return nil, errors.New("the cache rules are not in the order of their priorities")
		}
		r, err := compileRule(conditions, message)
		if err != nil {
			return nil, fmt.Errorf("cache rule %d: %w", message.GetPriority(), err)
		}
		s.rules = append(s.rules, r)
	}
	var err error
	if s.key, err = compileKey(m.GetKey()); err != nil {
		return nil, err
	}
	Of(c).need.Do(func() { close(Of(c).needed) })
	return s, nil
}

func compileRule(conditions exchange.Conditions, m *configv1.CacheRule) (rule, error) {
	switch {
	case m.GetPriority() > maxPriority, len(m.GetStatusCodes()) > maxStatuses, m.GetEdgeTtlSeconds() > maxTTL,
		m.GetBrowserTtlSeconds() > maxTTL, m.GetStaleWhileRevalidateSeconds() > maxStale, m.GetStaleIfErrorSeconds() > maxStale:
		return rule{}, errors.New("a value is not allowed")
	}
	when, err := conditions.AskedCondition(m.GetCondition())
	if err != nil {
		return rule{}, err
	}
	r := rule{
		priority: m.GetPriority(), when: when, statuses: slices.Clone(m.GetStatusCodes()),
		least: m.GetMinSizeBytes(), most: m.GetMaxSizeBytes(), bypass: m.GetBypass(), browser: m.GetBrowserTtlSeconds(),
		policy: freshness.Policy{
			Override: m.GetOverrideOrigin(), TTL: seconds(m.GetEdgeTtlSeconds()), HasStatuses: len(m.GetStatusCodes()) > 0,
			StaleWhileRevalidate: seconds(m.GetStaleWhileRevalidateSeconds()), StaleIfError: seconds(m.GetStaleIfErrorSeconds()),
			Authorized: m.GetCacheAuthorized(), SetCookie: m.GetCacheSetCookie(),
		},
	}
	if r.policy.Override && r.policy.TTL == 0 {
		r.policy.StaleWhileRevalidate, r.policy.StaleIfError = 0, 0
	}
	if r.browser > 0 {
		r.browserValue = []string{fmt.Sprint("max-age=", r.browser)}
	}
	return r, nil
}

func seconds(n uint32) time.Duration { return time.Duration(n) * time.Second }

// ofResponse reports whether the rule has conditions on the response.
func (r *rule) ofResponse() bool { return len(r.statuses) > 0 || r.least > 0 || r.most > 0 }

// fits reports whether the conditions on the response hold. size is that of the whole representation in bytes, -1 for unknown.
func (r *rule) fits(status int, size int64) bool {
	if status == 206 {
		status = 200
	}
	if len(r.statuses) > 0 && !slices.Contains(r.statuses, uint32(status)) {
		return false
	}
	if r.least == 0 && r.most == 0 {
		return true
	}
	return size >= 0 && uint64(size) >= r.least && (r.most == 0 || uint64(size) <= r.most)
}

// chain has the rules that may decide about one request, up to the first that decides about any response.
type chain struct {
	settings *settings
	at       [maxRules]uint8
	n        int
}

// chainOf evaluates the conditions. decided is false where one of them cannot be told.
func (s *settings) chainOf(x *exchange.Exchange) (c chain, decided bool) {
	c.settings = s
	for i := range s.rules {
		holds, decided := s.rules[i].when.Holds(x)
		if !decided {
			return c, false
		}
		if !holds {
			continue
		}
		c.at[c.n] = uint8(i)
		if c.n++; !s.rules[i].ofResponse() {
			break
		}
	}
	return c, true
}

// may reports whether a rule of the chain stores, with the flag for Authorization where authorized is set.
func (c *chain) may(authorized bool) bool {
	for _, i := range c.at[:c.n] {
		if r := &c.settings.rules[i]; !r.bypass && (!authorized || r.policy.Authorized) {
			return true
		}
	}
	return false
}

// decide returns the rule that decides about a response, nil for none.
func (c *chain) decide(status int, size int64) *rule {
	for _, i := range c.at[:c.n] {
		if r := &c.settings.rules[i]; r.fits(status, size) {
			return r
		}
	}
	return nil
}
