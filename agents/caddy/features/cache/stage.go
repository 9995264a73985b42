package cache

import (
	"context"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
	"edge.svc/caddy/features/cache/freshness"
	"edge.svc/caddy/features/cache/store"
	"edge.svc/caddy/pages"
)

// maxWait is how long a request waits for the response to another one's.
const maxWait = 10 * time.Second

// Stage responds from the store, or has the store filled. Requests that the cache does not concern go on to the origin.
func Stage(c *core.Core) exchange.Stage {
	cache := Of(c)
	return func(x *exchange.Exchange) *exchange.Answer {
		s := part.Of(x.Plan)
		if s == nil || x.In.Upgrade || exchange.IsGRPC(x) {
			return nil
		}
		l := lookups.Of(x)
		*l = lookup{cache: cache, settings: s, x: x, word: Bypass}
		return l.respond()
	}
}

// lookup is one request on its way through the cache.
type lookup struct {
	cache    *Cache
	settings *settings
	x        *exchange.Exchange
	rules    chain
	key      requestKey
	// What X-Cache says; the reason for Cache-Status, and the rule that decided about the response.
	word   Word
	reason freshness.Reason
	// The status of the origin where a stale response takes its place, 0 for none.
	upstream int
	// When a HEAD came.
	began  time.Time
	rule   *rule
	ttl    time.Duration
	stored bool
	// The cache caches the response, so that the TTL for browsers is the rule's.
	decided bool
	keyed   bool
	// The response is that of another request.
	collapsed bool
}

var lookups = exchange.NewFact[lookup]()

// respond returns the response, nil for a request that bypasses.
func (l *lookup) respond() *exchange.Answer {
	x := l.x
	head := x.In.Method == http.MethodHead
	if x.In.Method != http.MethodGet && !head || !plain(x) || x.Overrides.CacheBypass == exchange.On {
		return nil
	}
	rules, decided := l.settings.chainOf(x)
	if !decided {
		return pages.Respond(x, http.StatusServiceUnavailable, pages.PolicyUnavailable)
	}
	authorized := len(x.In.Header["Authorization"]) > 0
	if l.rules = rules; !rules.may(authorized) {
		return nil
	}
	if rules.n == 1 && l.settings.rules[rules.at[0]].bypass {
		return nil
	}
	var ok bool
	if l.key, ok = l.settings.key.of(x); !ok {
		return nil
	}
	l.keyed = true
	if head {
		l.began = l.cache.now()
	}
	o := l.find(authorized)
	if o == nil && head {
		// A HEAD is no reason to fetch a body.
		return nil
	}
	for attempt := 0; attempt < 3; attempt++ {
		if o != nil {
			a, done, there := l.fromStore(o)
			if done {
				return a
			}
			if !there {
				// What cannot be read need not be validated.
				o = nil
			}
		}
		a, again := l.fetch(o, attempt == 2)
		if !again {
			return a
		}
		o = l.find(authorized)
	}
	return nil
}

func (l *lookup) find(authorized bool) *store.Object {
	o := l.look()
	if o != nil && authorized && o.Flags&flagAuthorized == 0 {
		return nil
	}
	return o
}

// look returns what is stored for the request, whole or in slices.
func (l *lookup) look() *store.Object {
	o := l.cache.find(&l.key, &l.x.In, &l.x.Out)
	if o == nil && l.settings.slices {
		key := l.key.sliced()
		o = l.cache.find(&key, &l.x.In, &l.x.Out)
	}
	return o
}

// plain reports whether the request is one of which the key says everything.
func plain(x *exchange.Exchange) bool {
	in := &x.In
	if x.Body.Exists() || x.Out.Method != "" || in.Target.Ambiguous || freshness.HasPrecondition(in.Header) {
		return false
	}
	if path := pathOf(&in.Target); path == "" || path[0] != '/' {
		return false
	} else if normal, ok := exchange.NormalPath(path); !ok || normal != path {
		return false
	} else if len(in.Target.Raw) == len(path)+1 {
		// An empty query is in no key.
		return false
	}
	// RFC 9110 section 9.1: an origin that honors these takes the request for another.
	for _, name := range [...]string{"X-Http-Method-Override", "X-Http-Method", "X-Method-Override", "X-Original-Url", "X-Rewrite-Url"} {
		if len(in.Header[name]) > 0 {
			return false
		}
	}
	// The origin does not get the fields that Connection names.
	for _, line := range in.Header["Connection"] {
		if !strings.EqualFold(line, "keep-alive") && !strings.EqualFold(line, "close") {
			return false
		}
	}
	_, port, err := net.SplitHostPort(in.HostRaw)
	return err != nil || port == strconv.Itoa(int(in.Port))
}

// ofPart reports whether a request has a condition or asks for a part of the response.
func ofPart(request http.Header) bool {
	return len(request["Range"]) > 0 || len(request["If-None-Match"]) > 0 || len(request["If-Modified-Since"]) > 0
}

func heldOf(m *store.Meta) freshness.Held {
	return freshness.Held{InitialAge: m.InitialAge, Received: m.Received, Lifetime: m.Lifetime,
		StaleWhileRevalidate: m.StaleWhileRevalidate, StaleIfError: m.StaleIfError, NoCache: m.Flags&flagNoCache != 0}
}

// fromStore responds with what is stored if it may be used as it is. there is false where it turns out that it cannot be read.
func (l *lookup) fromStore(o *store.Object) (a *exchange.Answer, done, there bool) {
	held := heldOf(o.Meta)
	switch use, _ := held.Use(l.cache.now()); use {
	case freshness.Fresh:
		a, done = l.serve(o, Hit)
		return a, done, done
	case freshness.StaleWhileValidating:
		l.validateBehind(o)
		a, done = l.serve(o, Updating)
		return a, done, done
	}
	return nil, l.x.In.Method == http.MethodHead, true
}

// validateBehind validates what is stored, by a request of the edge's own, unless one is under way.
func (l *lookup) validateBehind(o *store.Object) {
	f, leads := l.cache.fills.join(l.key.text, l.joinable, func() *fill { return l.cache.begin(l.x, l.key, l.rules, o, true) })
	if !leads {
		return
	}
	exchange.Go("validating a stored response", func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
		f.run(ctx)
		if f.growing != nil {
			f.growing.settle(true)
			<-f.stored
		} else {
			f.discard()
		}
		cancel()
	}, func() {})
}

// joinable reports whether the request may have the response of a fill: none that left before a purge that concerns it.
func (l *lookup) joinable(f *fill) bool {
	if f.doomed() {
		return false
	}
	return !l.cache.purged(f.position, f.site, l.key.host, l.key.path, nil, &l.key)
}

// fetch responds with what the origin says now. again asks to look into the store once more. stale may be nil. alone forbids
// to wait for others.
func (l *lookup) fetch(stale *store.Object, alone bool) (a *exchange.Answer, again bool) {
	c := l.cache
	lead := func(shared bool) *fill { return c.begin(l.x, l.key, l.rules, stale, shared) }
	marked := c.uncacheable.marked(l.key.hash, c.now())
	if marked && stale == nil && ofPart(l.x.In.Header) {
		// Nothing will be stored, so the origin may send as little as it can.
		l.word = Miss
		return nil, false
	}
	if alone || marked {
		f := lead(false)
		f.run(context.Background())
		return l.lead(f), false
	}
	f, leads := c.fills.join(l.key.text, l.joinable, func() *fill { return lead(true) })
	if leads {
		f.run(context.Background())
		return l.lead(f), false
	}
	return l.follow(f, stale)
}

// lead responds to the request that a fill was begun for.
func (l *lookup) lead(f *fill) *exchange.Answer {
	if f.growing != nil {
		defer f.growing.settle(false)
	}
	l.rule, l.reason = f.rule, f.verdict.Reason
	if f.err == errUnstored {
		// The origin gets the request as the client sent it.
		if l.word = Miss; l.reason == byRule {
			l.word = Bypass
		}
		return nil
	}
	if f.err == errWhole && f.slicing {
		return l.fetchWhole()
	}
	failed := f.err != nil || f.fresh == nil && freshness.IsError(f.response.Status)
	if f.err == errOtherVersion {
		// The next request fetches it without a condition; so does this one.
		next := l.cache.begin(l.x, l.key, l.rules, nil, false)
		next.run(context.Background())
		if next.err != errOtherVersion {
			return l.lead(next)
		}
	}
	if failed && f.stale != nil {
		if held := heldOf(f.stale.Meta); held.StaleOnError(l.cache.now()) {
			f.discard()
			if f.err == nil {
				l.upstream = f.response.Status
			}
			a, _ := l.serve(f.stale, Stale)
			return a
		}
	}
	switch {
	case f.err != nil:
		return l.fail(f.err)
	case f.fresh != nil:
		a, _ := l.serve(f.fresh, Revalidated)
		l.stored = f.verdict.Store()
		return a
	}
	l.word = Miss
	if f.stale != nil {
		l.word = Expired
	}
	l.stored, l.decided = f.growing != nil, f.verdict.Decided
	if f.growing == nil {
		l.word = Bypass
		if f.verdict.Reason != byRule {
			l.word = Miss
		}
		return l.pass(f)
	}
	*exchange.Origin.Of(l.x) = f.response.Outcome
	return l.stream(f, f.response.Header, true)
}

// fetchWhole fetches a response that does not come in slices, once for all who wait for it.
func (l *lookup) fetchWhole() *exchange.Answer {
	begin := func(shared bool) *fill {
		f := l.cache.begin(l.x, l.key, l.rules, nil, shared)
		f.askWhole()
		return f
	}
	f, leads := l.cache.fills.join(l.key.text, l.joinable, func() *fill { return begin(true) })
	if !leads && f.slicing {
		f, leads = begin(false), true
	}
	if leads {
		f.run(context.Background())
		return l.lead(f)
	}
	a, _ := l.follow(f, nil)
	return a
}

// discard gives up a response that nobody gets.
func (f *fill) discard() {
	if f.growing == nil && f.fresh == nil && f.err == nil {
		f.response.Body.Close()
	}
	if f.growing == nil {
		f.cancel()
	}
}

// fail responds for a fill that failed.
func (l *lookup) fail(err error) *exchange.Answer {
	if failed, ok := err.(*exchange.FetchError); ok {
		*exchange.Origin.Of(l.x) = failed.Outcome
		return pages.Respond(l.x, failed.Status, failed.Code)
	}
	return pages.Respond(l.x, http.StatusBadGateway, pages.OriginUnreachable)
}

// follow responds with what another request's fill brings.
func (l *lookup) follow(f *fill, stale *store.Object) (a *exchange.Answer, again bool) {
	timer := time.NewTimer(maxWait)
	defer timer.Stop()
	select {
	case <-f.known:
	case <-timer.C:
		return l.alone(stale), false
	case <-l.x.Context().Done():
		return l.x.Drop(), false
	}
	switch {
	case f.fresh != nil, f.err == errWhole:
		return nil, true
	case f.growing == nil:
		if stale != nil {
			if held := heldOf(stale.Meta); held.StaleOnError(l.cache.now()) && f.err != errUnstored && (f.err != nil || freshness.IsError(f.response.Status)) {
				a, _ = l.serve(stale, Stale)
				return a, false
			}
		}
		return l.alone(stale), false
	case !l.sameVariant(f) || l.cache.absent(f.meta, &l.key):
		return l.alone(stale), false
	case len(l.x.In.Header["Authorization"]) > 0 && f.meta.Flags&flagAuthorized == 0:
		return nil, false
	}
	l.rule, l.decided = f.rule, f.verdict.Decided
	l.word, l.collapsed = Hit, true
	a = l.stream(f, f.meta.Header, false)
	return a, a == nil
}

// alone fetches without waiting for others.
func (l *lookup) alone(stale *store.Object) *exchange.Answer {
	a, _ := l.fetch(stale, true)
	return a
}

func (l *lookup) sameVariant(f *fill) bool {
	return f.meta.Variant == string(freshness.AppendVariant(nil, f.meta.Vary, sent(&l.x.In, &l.x.Out)))
}
