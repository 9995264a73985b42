package cache

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"time"

	"edge.svc/caddy/exchange"
	"edge.svc/caddy/features/cache/freshness"
	"edge.svc/caddy/features/cache/purge"
	"edge.svc/caddy/features/cache/store"
)

// fill is a request to an origin whose response others may share. It runs by itself: no client ends it for the others.
type fill struct {
	cache *Cache
	key   requestKey
	site  string
	chain chain
	rule  *rule
	// The request as the origin gets it, and what the client asked.
	request  *exchange.Request
	client   http.Header
	position store.Position
	// Changes of the URL when it began.
	changes  uint32
	began    time.Time
	received time.Time
	// The response that is validated; nil for none.
	stale *store.Object
	// The origin is asked for the first slice, or for another one.
	slicing bool
	part    *slicePart
	// Others may wait for it.
	shared bool
	cancel context.CancelFunc

	// Closed once it is known what comes.
	known chan struct{}
	// Closed once the body was stored, or was not.
	stored chan struct{}
	// What came: a response that is stored as it comes, one that is the leader's alone, a new head of what is stored, or none.
	response *exchange.Response
	err      error
	meta     *store.Meta
	verdict  freshness.Verdict
	growing  *growing
	fresh    *store.Object
}

// begin makes a fill for a request. The caller runs it.
func (c *Cache) begin(x *exchange.Exchange, key requestKey, rules chain, stale *store.Object, shared bool) *fill {
	r := x.Detach()
	f := &fill{cache: c, key: key, site: x.Plan.SiteID, chain: rules, request: r, client: x.In.Header, stale: stale, shared: shared,
		position: c.marks.Position(), changes: c.fills.changesOf(key.hash.URL).Load(), known: make(chan struct{}), stored: make(chan struct{})}
	r.In.Method = http.MethodGet
	r.In.HostRaw = plainHost(&r.In)
	freshness.DropConditions(r.In.Header)
	r.Out.Edits = slices.DeleteFunc(r.Out.Edits, func(e exchange.HeaderEdit) bool { return ofCondition(e.Name) })
	if stale != nil {
		freshness.SetConditions(r.In.Header, stale.Header)
	}
	if rules.settings.slices && (stale == nil || stale.Total > 0) && !c.whole.marked(key.hash, c.now()) &&
		!c.uncacheable.marked(key.hash, c.now()) {
		f.askSlice()
	}
	// The clone outlives the exchange.
	f.client = r.In.Header
	return f
}

// run asks the origin, and returns once its header came. What follows of a response that is stored goes on without the caller.
func (f *fill) run(ctx context.Context) {
	ctx, f.cancel = context.WithCancel(ctx)
	returned := false
	defer func() {
		if !returned {
			// A panic: whoever waits must not wait on.
			f.err = errPanicked
			f.leave()
			close(f.known)
		}
	}()
	f.began = f.cache.now()
	f.response, f.err = f.cache.origin.Fetch(ctx, f.request)
	f.received = f.cache.now()
	if f.err == nil {
		f.judge()
	}
	returned = true
	if f.growing == nil {
		f.leave()
		close(f.known)
		return
	}
	close(f.known)
	exchange.Go("storing a response", f.store, func() {
		f.growing.end(errPanicked)
		f.leave()
		f.growing.finish()
		f.cancel()
		close(f.stored)
	})
}

// leave takes the fill out of those that others find.
func (f *fill) leave() {
	if f.shared {
		f.cache.fills.remove(f)
	}
}

// judge decides what becomes of the response.
func (f *fill) judge() {
	r := f.response
	if f.part != nil {
		f.judgePart()
		return
	}
	if r.Status == http.StatusNotModified && f.stale != nil {
		f.refresh()
		return
	}
	total := int64(0)
	if f.slicing {
		var ok bool
		if total, ok = f.firstSlice(); total == 0 && (!ok || r.Status == http.StatusOK) {
			f.cache.whole.mark(f.key.hash, f.received)
		}
		if !ok {
			f.cache.whole.mark(f.key.hash, f.received)
			r.Body.Close()
			f.err = errWhole
			return
		}
	}
	f.decide(total)
	if total > 0 && f.growing == nil {
		r.Body.Close()
		f.err = errUnstored
	}
}

// decide decides about a response whose body is whole, or its first slice where total is its length.
func (f *fill) decide(total int64) {
	r := f.response
	size := lengthOf(r.Header)
	f.rule = f.chain.decide(r.Status, size)
	if f.rule == nil || f.rule.bypass {
		f.verdict.Reason = byRule
		f.cache.uncacheable.mark(f.key.hash, f.received)
		return
	}
	if r.Header["Date"] == nil {
		r.Header["Date"] = []string{f.received.UTC().Format(http.TimeFormat)}
	}
	f.verdict = freshness.Judge(http.MethodGet, f.client, r.Status, r.Header, &f.rule.policy, f.received)
	if r.Status == http.StatusPartialContent {
		f.verdict.Reason = freshness.ByStatus
	}
	if !f.verdict.Store() {
		if f.stale == nil || !freshness.IsError(r.Status) {
			f.cache.uncacheable.mark(f.key.hash, f.received)
		}
		return
	}
	if f.stale != nil && freshness.IsError(r.Status) {
		if held := heldOf(f.stale.Meta); held.StaleOnError(f.received) {
			// What is stored serves on.
			f.verdict.Reason = freshness.ByStatus
			return
		}
	}
	f.describe()
	if f.meta.Total = total; total > 0 {
		f.meta.Key += sliceMark
		size = sliceSize
	}
	if f.stale != nil && f.stale.Total > 0 && total == 0 {
		f.cache.store.Remove(f.stale)
	}
	if f.stale == nil && !f.cache.store.Admits(f.key.hash, max(size, 0)) {
		f.verdict.Reason = byRoom
		return
	}
	if w := f.cache.store.Create(); w != nil {
		f.growing = newGrowing(w, size, f.cancel)
	} else {
		f.verdict.Reason = byRoom
	}
}

// describe makes the head under which the response is stored.
func (f *fill) describe() {
	h := f.response.Header
	vary := freshness.VaryNames(h)
	f.meta = &store.Meta{
		Key: f.key.text, Site: f.site, Host: f.key.host, Path: f.key.path, Position: f.position, Status: f.response.Status,
		Header: freshness.Storable(h, &f.verdict), Vary: vary,
		Variant:  string(freshness.AppendVariant(nil, vary, sent(&f.request.In, &f.request.Out))),
		Tags:     purge.Tags(h["Cache-Tag"]),
		Received: f.received, InitialAge: freshness.InitialAge(h, f.began, f.received),
	}
	hold(f.meta, &f.verdict, f.rule)
}

const (
	flagNoCache = 1 << iota
	flagAuthorized
)

// hold puts what a verdict says into a head.
func hold(m *store.Meta, v *freshness.Verdict, r *rule) {
	m.Lifetime, m.StaleWhileRevalidate, m.StaleIfError = v.Lifetime, v.StaleWhileRevalidate, v.StaleIfError
	m.Flags = 0
	if v.NoCache {
		m.Flags |= flagNoCache
	}
	if r.policy.Authorized {
		m.Flags |= flagAuthorized
	}
}

// refresh gives the stored response what a response 304 says (RFC 9111 section 4.3.4).
func (f *fill) refresh() {
	defer f.response.Body.Close()
	old := f.stale
	// A purge between the look into the store and the request concerns the body, however new the validation is.
	if !freshness.Updates(old.Header, f.response.Header) || f.cache.absent(old.Meta, &f.key) {
		f.cache.store.Remove(old)
		f.err = errOtherVersion
		return
	}
	header := freshness.Updated(old.Header, f.response.Header)
	f.rule = f.chain.decide(old.Status, sizeOf(old))
	if f.rule == nil || f.rule.bypass {
		f.verdict.Reason = byRule
	} else {
		f.verdict = freshness.Judge(http.MethodGet, f.client, old.Status, header, &f.rule.policy, f.received)
	}
	m := *old.Meta
	m.Header, m.Received, m.Position = freshness.Storable(header, &f.verdict), f.received, f.position
	m.InitialAge = freshness.InitialAge(f.response.Header, f.began, f.received)
	m.Tags = purge.Tags(header["Cache-Tag"])
	if !f.verdict.Store() || !slices.Equal(old.Vary, freshness.VaryNames(header)) {
		// It is good for those who wait, and no longer: the index knows it by other fields than it varies by now.
		m.Lifetime, m.StaleWhileRevalidate, m.StaleIfError = 0, 0, 0
		f.cache.store.Remove(old)
		f.fresh = old.With(&m)
		return
	}
	hold(&m, &f.verdict, f.rule)
	next, err := f.cache.store.Refresh(old, &m)
	if err != nil {
		f.cache.store.Remove(old)
		next = old.With(&m)
	}
	f.fresh = next
}

// store copies the body into the store.
func (f *fill) store() {
	err := f.response.Body.CopyTo(f.growing)
	f.response.Body.Close()
	f.growing.end(err)
	f.growing.mu.Lock()
	err, failing := f.growing.err, f.growing.failing
	f.growing.mu.Unlock()
	if err == nil && !failing && !f.doomed() {
		// Failures are counted; the response is fetched again.
		_, _ = f.growing.writer.Commit(store.KeyOf(f.meta.Key, f.meta.Variant), f.meta, f.doomed)
		f.cache.uncacheable.clear(f.key.hash)
	}
	f.leave()
	f.growing.finish()
	f.cancel()
	close(f.stored)
}

// doomed reports whether a change of the resource made the response wrong while it came.
func (f *fill) doomed() bool { return f.cache.fills.changesOf(f.key.hash.URL).Load() != f.changes }

// lengthOf is the length that a header names, -1 for none.
func lengthOf(h http.Header) int64 {
	if lines := h["Content-Length"]; len(lines) == 1 {
		if n, err := strconv.ParseInt(lines[0], 10, 64); err == nil && n >= 0 {
			return n
		}
	}
	return -1
}
