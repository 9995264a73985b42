package cache

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
	"edge.svc/caddy/features/cache/freshness"
	"edge.svc/caddy/features/cache/purge"
	"edge.svc/caddy/features/cache/store"
)

// Response is the response stage that says what the cache did, and forgets what an unsafe request changed.
func Response(c *core.Core) exchange.ResponseStage {
	cache := Of(c)
	return func(x *exchange.Exchange, a *exchange.Answer) {
		if x.Plan == nil {
			return
		}
		s := part.Of(x.Plan)
		if s == nil {
			return
		}
		l := lookups.Peek(x)
		if l == nil {
			// An earlier stage responded.
			l = lookups.Of(x)
			l.word = Bypass
		}
		if l.keyed && x.In.Method == http.MethodHead && a.From == exchange.FromOrigin {
			cache.compare(l, a)
		}
		if freshness.Invalidates(x.In.Method, a.Status) && a.From == exchange.FromOrigin {
			cache.invalidate(x, s, a)
		}
		if !s.keepTags {
			delete(a.Header, "Cache-Tag")
		}
		if l.decided && l.rule != nil && l.rule.browserValue != nil {
			a.Header["Cache-Control"] = l.rule.browserValue
			delete(a.Header, "Expires")
		}
		word := l.word
		*exchange.CacheStatus.Of(x) = word.state()
		cache.counts.add(word)
		if s.hide {
			return
		}
		a.Header["X-Cache"] = wordValues[word]
		a.Header["Cache-Status"] = append(a.Header["Cache-Status"], l.status(word, x.In.Method))
	}
}

// status is this cache's member of Cache-Status (RFC 9211).
func (l *lookup) status(word Word, method string) string {
	const name = "edge; "
	end := ""
	switch {
	case l.stored:
		end = "; stored"
	case word != Hit && l.reason != "" && l.reason != freshness.Stored:
		end = "; detail=" + string(l.reason)
	}
	switch word {
	case Hit, Updating:
		if l.collapsed {
			return name + "fwd=miss; collapsed"
		}
		return name + "hit; ttl=" + strconv.FormatInt(int64(l.ttl/time.Second), 10)
	case Stale:
		status := ""
		if l.upstream != 0 {
			status = "; fwd-status=" + strconv.Itoa(l.upstream)
		}
		return name + "fwd=stale" + status + "; detail=stale-if-error"
	case Revalidated:
		return name + "fwd=stale; fwd-status=304" + end
	case Expired:
		return name + "fwd=stale" + end
	case Miss:
		return name + "fwd=miss" + end
	}
	if method != http.MethodGet && method != http.MethodHead {
		return name + "fwd=method"
	}
	return name + "fwd=bypass"
}

// compare deletes what is stored for a GET where the response to a HEAD shows another version, and updates it where it shows
// the same (RFC 9111 section 4.3.5).
func (c *Cache) compare(l *lookup, a *exchange.Answer) {
	if a.Status != http.StatusOK {
		return
	}
	o := l.look()
	if o == nil || o.Status != http.StatusOK {
		return
	}
	agrees, updates := freshness.HeadAgrees(o.Header, a.Header, strconv.FormatInt(sizeOf(o), 10))
	if !agrees {
		c.store.Remove(o)
		return
	}
	r := l.rules.decide(o.Status, sizeOf(o))
	if !updates || r == nil || r.bypass {
		return
	}
	header := freshness.Updated(o.Header, a.Header)
	now := c.now()
	v := freshness.Judge(http.MethodGet, l.x.In.Header, o.Status, header, &r.policy, now)
	if !v.Store() || !slices.Equal(o.Vary, freshness.VaryNames(header)) {
		c.store.Remove(o)
		return
	}
	m := *o.Meta
	m.Header, m.Received, m.InitialAge = freshness.Storable(header, &v), now, freshness.InitialAge(a.Header, l.began, now)
	m.Tags = purge.Tags(header["Cache-Tag"])
	hold(&m, &v, r)
	// Failures are counted; the response is validated again.
	_, _ = c.store.Refresh(o, &m)
}

// invalidate deletes what is stored for the target of an unsafe request, and for Location and Content-Location of its response
// on the same host (RFC 9111 section 4.4).
func (c *Cache) invalidate(x *exchange.Exchange, s *settings, a *exchange.Answer) {
	in := &x.In
	path := pathOf(&in.Target)
	if normal, ok := exchange.NormalPath(path); ok {
		path = normal
	}
	c.forget(s, x, path, in.Target.Query)
	for _, name := range [...]string{"Location", "Content-Location"} {
		for _, value := range a.Header[name] {
			base := url.URL{Scheme: in.Scheme, Host: in.HostRaw, Path: in.Target.Path}
			if u, err := base.Parse(value); err == nil && sameOrigin(&base, u) {
				c.forget(s, x, u.EscapedPath(), u.RawQuery)
			}
		}
	}
}

// sameOrigin reports whether two URLs have the same scheme, host and port (RFC 9110 section 4.3.1).
func sameOrigin(a, b *url.URL) bool {
	host, _ := core.NormalizeHost(a.Hostname())
	other, _ := core.NormalizeHost(b.Hostname())
	return a.Scheme == b.Scheme && host == other && portOf(a) == portOf(b)
}

func portOf(u *url.URL) string {
	switch port := u.Port(); {
	case port != "":
		return port
	case u.Scheme == "https":
		return "443"
	}
	return "80"
}

func (c *Cache) forget(s *settings, x *exchange.Exchange, path, query string) {
	for _, scheme := range [...]string{"http", "https"} {
		text := string(s.key.appendURL(nil, x, scheme, path, s.key.QueryOf(query)))
		hash := store.KeyOf(text, "").URL
		c.fills.doom(hash)
		c.store.RemoveURL(hash)
	}
}
