package prefetch

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
	"edge.svc/caddy/pages"
)

const maxURLBytes = 2048

var (
	desktopAgent = "svc-node-prefetch/" + core.Version
	mobileAgent  = "Mozilla/5.0 (Linux; Android 14; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0.0.0 Mobile Safari/537.36 " + desktopAgent
)

// fetch fetches a URL in one variant; over both schemes where the URL has the one without TLS and the site has the other, too.
func (f *Fetcher) fetch(ctx context.Context, text, agent string) *failure {
	u, plan, reason := f.find(text)
	if reason != "" {
		return &failure{url: text, reason: reason}
	}
	isCovered := f.covers(plan, u.Hostname())
	if u.Scheme == "https" && !isCovered {
		return &failure{url: text, reason: reasonHTTPS}
	}
	failed := f.ask(ctx, u, agent, discard{})
	if u.Scheme == "https" || !isCovered || failed != nil && failed.reason != reasonRedirected {
		return failed.of(text)
	}
	secure := *u
	secure.Scheme = "https"
	return f.ask(ctx, &secure, agent, discard{}).of(text)
}

// reasonRedirected stands for the edge's own redirect to the same URL over HTTPS.
const reasonRedirected = "redirected"

// of gives a failure the URL that was asked for.
func (f *failure) of(text string) *failure {
	if f != nil {
		f.url = text
		if f.reason == reasonRedirected {
			f.reason = reasonOther
		}
	}
	return f
}

// find returns the URL and its site.
func (f *Fetcher) find(text string) (u *url.URL, plan *exchange.Plan, reason string) {
	u, err := url.Parse(text)
	if err != nil || len(text) > maxURLBytes || u.User != nil || u.Opaque != "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, nil, reasonInvalid
	}
	host, kind := core.NormalizeHost(u.Host)
	if kind == core.HostInvalid {
		return nil, nil, reasonInvalid
	}
	if plan = core.PlanOfHost(f.core.Tables(), host); plan == nil {
		return nil, nil, reasonInvalid
	}
	// The port is that of visitors, and makes no difference to what is stored.
	if u.Host = host; strings.IndexByte(host, ':') >= 0 {
		u.Host = "[" + host + "]"
	}
	return u, plan, ""
}

// body takes what is written of a response.
type body interface {
	// begin may refuse a response.
	begin(status int, h http.Header) error
	Write(p []byte) (int, error)
}

type discard struct{}

func (discard) begin(int, http.Header) error      { return nil }
func (discard) Write(p []byte) (n int, err error) { return len(p), nil }

// ask has the edge serve a URL.
func (f *Fetcher) ask(ctx context.Context, u *url.URL, agent string, to body) *failure {
	local := f.asks()
	if local == nil {
		return &failure{reason: reasonOther}
	}
	ctx, cancel := context.WithTimeout(ctx, urlTime)
	defer cancel()
	target := u.RequestURI()
	r := (&http.Request{
		Method: http.MethodGet, URL: &url.URL{Path: u.Path, RawPath: u.RawPath, RawQuery: u.RawQuery}, RequestURI: target,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Host: u.Host, RemoteAddr: "127.0.0.1:0", Body: http.NoBody,
		Header: http.Header{"User-Agent": {agent}, "Accept": {"*/*"}, "Accept-Encoding": {"gzip, deflate, br, zstd"}},
	}).WithContext(ctx)
	if u.Path == "" {
		r.URL.Path = "/"
	}
	if u.Scheme == "https" {
		r.TLS = &tls.ConnectionState{Version: tls.VersionTLS13, HandshakeComplete: true, ServerName: u.Hostname()}
	}
	w := &writer{header: http.Header{}, to: to}
	from, whole := local.Serve(w, r)
	return judge(ctx, u, w, from, whole)
}

func judge(ctx context.Context, u *url.URL, w *writer, from exchange.From, whole bool) *failure {
	code := w.header.Get("X-Svc-Error")
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded), code == pages.OriginTimeout:
		return &failure{reason: reasonTimeout, status: w.status}
	case code == pages.OriginUnreachable, code == pages.NoOrigin:
		return &failure{reason: reasonConnect, status: w.status}
	case w.status >= 400:
		return &failure{reason: reasonStatus, status: w.status}
	case from == exchange.FromEdge && w.status >= 300:
		if isUpgrade(u, w.header.Get("Location")) {
			return &failure{reason: reasonRedirected, status: w.status}
		}
		return &failure{reason: reasonStatus, status: w.status}
	case w.err != nil, !whole, w.status == 0:
		return &failure{reason: reasonOther, status: w.status}
	}
	return nil
}

// isUpgrade reports whether a redirect leads to the same URL over HTTPS.
func isUpgrade(u *url.URL, location string) bool {
	to, err := url.Parse(location)
	return err == nil && u.Scheme == "http" && to.Scheme == "https" && strings.EqualFold(to.Hostname(), u.Hostname()) && to.RequestURI() == u.RequestURI()
}

// writer is the client of a request.
type writer struct {
	header http.Header
	status int
	to     body
	err    error
}

// Header implements http.ResponseWriter.
func (w *writer) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *writer) WriteHeader(status int) {
	if w.status != 0 || status < 200 && status != http.StatusSwitchingProtocols {
		return
	}
	w.status = status
	w.err = w.to.begin(status, w.header)
}

// Write implements http.ResponseWriter.
func (w *writer) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	if w.err != nil {
		return 0, w.err
	}
	n, err := w.to.Write(p)
	if err != nil {
		w.err = err
	}
	return n, err
}

// Flush implements http.Flusher.
func (w *writer) Flush() {}
