package cache

import (
	"net/http"
	"net/url"
	"strconv"
	"time"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
	"edge.svc/caddy/features/cache/freshness"
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
		l, known := lookups.Known(x)
		if known && l.keyed && x.In.Method == http.MethodHead && a.From == exchange.FromOrigin {
			cache.compare(&l, a)
		}
		if freshness.Invalidates(x.In.Method, a.Status) && a.From == exchange.FromOrigin {
			cache.invalidate(x, s, a)
		}
		if !s.keepTags {
			delete(a.Header, "Cache-Tag")
		}
		if known && l.decided && l.rule != nil && l.rule.browserValue != nil {
			a.Header["Cache-Control"] = l.rule.browserValue
			delete(a.Header, "Expires")
		}
		word := Bypass
		if known {
			word = l.word
		}
		*exchange.CacheStatus.Of(x) = word.state()
		x.Mark(wordCounts[word])
		cache.counts.add(word)
		if s.hide {
			return
		}
		a.Header["X-Cache"] = wordValues[word]
		a.Header["Cache-Status"] = append(a.Header["Cache-Status"], l.status(word))
	}
}

// status is this cache's member of Cache-Status (RFC 9211).
func (l *lookup) status(word Word) string {
	const name = "edge; "
	stored := ""
	if l.stored {
		stored = "; stored"
	}
	switch word {
	case Hit, Updating:
		return name + "hit; ttl=" + strconv.FormatInt(int64(l.ttl/time.Second), 10)
	case Stale:
		return name + "hit; fwd=stale; ttl=" + strconv.FormatInt(int64(l.ttl/time.Second), 10)
	case Revalidated:
		return name + "hit; fwd=stale; fwd-status=304"
	case Expired:
		return name + "fwd=stale" + stored
	case Miss:
		return name + "fwd=uri-miss" + stored
	}
	return name + "fwd=bypass"
}

// compare deletes what is stored for a GET where the response to a HEAD shows another version (RFC 9111 section 4.3.5).
func (c *Cache) compare(l *lookup, a *exchange.Answer) {
	if a.Status != http.StatusOK {
		return
	}
	if o := c.find(&l.key, &l.x.In, &l.x.Out); o != nil && !freshness.HeadAgrees(o.Header, a.Header, strconv.FormatInt(o.Length, 10)) {
		c.store.Remove(o)
	}
}

// invalidate deletes what is stored for the target of an unsafe request, and for Location and Content-Location of its response
// on the same host (RFC 9111 section 4.4).
func (c *Cache) invalidate(x *exchange.Exchange, s *settings, a *exchange.Answer) {
	in := &x.In
	c.forget(s, x, pathOf(&in.Target), in.Target.Query)
	for _, name := range [...]string{"Location", "Content-Location"} {
		for _, value := range a.Header[name] {
			base := url.URL{Scheme: in.Scheme, Host: in.Host, Path: in.Target.Path}
			u, err := base.Parse(value)
			if host, _ := core.NormalizeHost(hostOf(u, err)); err == nil && host == in.Host {
				c.forget(s, x, u.EscapedPath(), u.RawQuery)
			}
		}
	}
}

func hostOf(u *url.URL, err error) string {
	if err != nil {
		return ""
	}
	return u.Hostname()
}

func (c *Cache) forget(s *settings, x *exchange.Exchange, path, query string) {
	for _, scheme := range [...]string{"http", "https"} {
		text := string(s.key.appendURL(nil, x, scheme, path, s.key.QueryOf(query)))
		hash := store.KeyOf(text, "").URL
		c.fills.doom(hash)
		c.store.RemoveURL(hash)
	}
}
