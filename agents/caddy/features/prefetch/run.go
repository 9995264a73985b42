package prefetch

import (
	"context"
	"sync"

	nodev1 "edge.svc/caddy/gen/svc/node/v1"
)

// Codes and reasons of results.
const (
	codeFailed     = "prefetch_failed"
	codeTimeout    = "prefetch_timeout"
	codeSitemap    = "sitemap_failed"
	codeEmpty      = "sitemap_empty"
	reasonStatus   = "status"
	reasonConnect  = "connect_failed"
	reasonTimeout  = "timeout"
	reasonHTTPS    = "https_unsupported"
	reasonInvalid  = "invalid"
	reasonTooLarge = "too_large"
	reasonOther    = "other"
)

// failure is why a URL was not fetched.
type failure struct {
	url, reason string
	status      int
}

// run is one prefetch.
type run struct {
	fetcher *Fetcher
	what    *nodev1.Prefetch

	mu                       sync.Mutex
	total, succeeded, failed uint32
	first                    *failure
	// Of the sitemap, or of one that it names.
	sitemap *failure
	isEmpty bool
}

// do fetches everything, until the budget ends.
func (r *run) do(ctx context.Context) {
	urls := r.what.GetUrls()
	if r.what.GetSitemap() {
		found, failed := r.fetcher.readSitemap(ctx, urls[0], int(r.what.GetMaxUrls()))
		urls = found
		r.mu.Lock()
		r.sitemap, r.isEmpty = failed, len(found) == 0 && failed == nil
		r.mu.Unlock()
	}
	r.mu.Lock()
	r.total = uint32(len(urls))
	r.mu.Unlock()
	var all sync.WaitGroup
	for _, text := range urls {
		if !r.fetcher.begin(ctx) {
			break
		}
		all.Go(func() {
			defer r.fetcher.end()
			r.note(ctx, r.fetchAll(ctx, text))
		})
	}
	all.Wait()
}

// begin waits for one of the places of the node, and for its turn.
func (f *Fetcher) begin(ctx context.Context) bool {
	select {
	case f.slots <- struct{}{}:
	case <-ctx.Done():
		return false
	}
	select {
	case <-f.pace.C:
		return true
	case <-ctx.Done():
		f.end()
		return false
	}
}

func (f *Fetcher) end() { <-f.slots }

// fetchAll fetches a URL in all variants, one after another.
func (r *run) fetchAll(ctx context.Context, text string) *failure {
	for _, v := range []struct {
		wanted bool
		agent  string
	}{{r.what.GetDesktop(), desktopAgent}, {r.what.GetMobile(), mobileAgent}} {
		if v.wanted {
			if failed := r.fetcher.fetch(ctx, text, v.agent); failed != nil {
				return failed
			}
		}
	}
	return nil
}

// note counts a URL. One that the budget cut off is neither.
func (r *run) note(ctx context.Context, failed *failure) {
	if failed != nil && ctx.Err() != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if failed == nil {
		r.succeeded++
		return
	}
	r.failed++
	if r.first == nil {
		r.first = failed
	}
}

func (r *run) state(code string) *nodev1.PrefetchState {
	r.mu.Lock()
	defer r.mu.Unlock()
	return &nodev1.PrefetchState{Total: r.total, Succeeded: r.succeeded, Failed: r.failed, Code: code}
}

// result says how it ended.
func (r *run) result(ctx context.Context) *nodev1.PrefetchState {
	s := r.state("")
	r.mu.Lock()
	defer r.mu.Unlock()
	say := func(code string, f *failure) {
		s.Code = code
		if f != nil {
			s.Url, s.Reason, s.Status = f.url, f.reason, uint32(f.status)
		}
	}
	switch {
	case r.sitemap != nil:
		say(codeSitemap, r.sitemap)
	case ctx.Err() != nil && s.Succeeded+s.Failed < s.Total:
		say(codeTimeout, nil)
	case s.Failed > 0:
		say(codeFailed, r.first)
	case r.isEmpty:
		say(codeEmpty, nil)
	}
	return s
}
