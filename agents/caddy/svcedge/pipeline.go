package svcedge

import (
	"context"
	"io"
	"net/http"
	"net/netip"
	"time"

	"go.uber.org/zap"

	plans "edge.svc/caddy/exchange"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
	"edge.svc/caddy/svcbans"
	"edge.svc/caddy/svccc"
	"edge.svc/caddy/svcchallenge"
	"edge.svc/caddy/svccore"
	"edge.svc/caddy/svccount"
	"edge.svc/caddy/svcerrors"
	"edge.svc/caddy/svclisten"
	"edge.svc/caddy/svclists"
	"edge.svc/caddy/svcorigin"
	"edge.svc/caddy/svcsites"
)

// exchange is a request on its way through the stages. It is also the response writer, to know whether a response has
// begun.
type exchange struct {
	http.ResponseWriter
	svclisten.Exchange

	started bool
	status  int
	conn    *svclisten.Conn
	// The limit on writes to the connection; 0 where another sets one.
	writeIdle time.Duration
	// New bans know the exchange.
	listed bool
	peer   netip.Addr
	asked  asked
	// Of the site, once a stage asked for it.
	protection *svcchallenge.Protection
	// Where CC mitigation counts the outcome at the origin.
	counted *svccc.Site
	// A failure in this stage is one of the challenges, and nobody passes.
	challenging bool
}

// WriteHeader notes that the response has begun.
func (x *exchange) WriteHeader(status int) {
	x.started = x.started || status >= http.StatusOK || status == http.StatusSwitchingProtocols
	x.status = status
	x.BoundWrites()
	x.ResponseWriter.WriteHeader(status)
}

// Write notes that the response has begun.
func (x *exchange) Write(p []byte) (int, error) {
	x.started = true
	x.BoundWrites()
	return x.ResponseWriter.Write(p)
}

// WriteWhole writes the only part of a body whose length is in the header.
func (x *exchange) WriteWhole(p []byte) (int, error) {
	if x.writeIdle > 0 && x.status >= http.StatusBadRequest {
		x.conn.Gather(len(p))
	}
	return x.Write(p)
}

// FlushError sends what is buffered.
func (x *exchange) FlushError() error {
	x.BoundWrites()
	return http.NewResponseController(x.ResponseWriter).Flush()
}

// BoundWrites limits the writes that follow.
func (x *exchange) BoundWrites() {
	if x.writeIdle > 0 {
		x.conn.BoundWrites(x.writeIdle)
	}
}

// Unwrap lets http.ResponseController reach what the server offers.
func (x *exchange) Unwrap() http.ResponseWriter { return x.ResponseWriter }

// serve takes a request through the stages. Their order is part of what the edge promises: a banned client learns
// nothing about rules, and nothing under the reserved prefix ever reaches an origin.
func (h *Handler) serve(x *exchange, r *http.Request) {
	if isHealthCheck(r) {
		answerHealth(x, r)
		return
	}
	defer h.contain(x, r)

	strip(r.Header)
	strip(r.Trailer)
	requestID := assignRequestID(x.Header(), r.Header)
	if refusedMethod(r) {
		svcerrors.Write(x, r, http.StatusMethodNotAllowed, svcerrors.MethodNotAllowed)
		return
	}
	if refusedTarget(r) {
		svcerrors.Write(x, r, http.StatusBadRequest, svcerrors.BadRequest)
		return
	}
	if passedBefore(r.Header["Cdn-Loop"], h.core.LoopID()) {
		svcerrors.Write(x, r, http.StatusLoopDetected, svcerrors.LoopDetected)
		return
	}

	tables := h.core.Tables()
	x.resolve(tables, r)
	site := h.findSite(x, tables, r.Host)
	if site == nil {
		svcerrors.Write(x, r, http.StatusNotFound, svcerrors.UnknownHost)
		return
	}
	svccount.Of(h.core).Count(site)
	if site.Disabled {
		svcerrors.Write(x, r, http.StatusServiceUnavailable, svcerrors.SiteDisabled)
		return
	}

	r = x.enter(site, r)
	defer x.leave()
	if svcbans.Of(h.core).Banned(site.SiteID, x.Client) && !svccore.Exempt(tables, x.Client) {
		refuseBanned(x, r)
		return
	}
	if !h.mitigate(x, r, tables, site) {
		return
	}
	upgrade := upgrades(r)
	x.challenging = true
	if isReserved(r.URL.Path) {
		h.serveReserved(x, r, site, requestID)
		return
	}
	if svclists.Blocked(tables, x.Client) {
		svcerrors.Write(x, r, http.StatusForbidden, svcerrors.PolicyDenied)
		return
	}
	if !h.admit(x, r, tables, site, requestID) {
		return
	}
	x.challenging = false
	pool := svcorigin.PoolOf(site)
	if pool == nil {
		h.log.Error("site cannot be served", zap.String("site", site.SiteID))
		svcerrors.Write(x, r, http.StatusInternalServerError, svcerrors.InternalError)
		return
	}
	if upgrade && !pool.WebSocket() {
		svcerrors.Write(x, r, http.StatusForbidden, svcerrors.WebSocketDisabled)
		return
	}
	if pool.BodyLimit > 0 && r.ContentLength > pool.BodyLimit {
		svcerrors.Write(x, r, http.StatusRequestEntityTooLarge, svcerrors.BodyTooLarge)
		return
	}
	h.proxy(x, r, tables, pool, requestID)
}

// findSite returns the site of a host, or the default site where the cluster wants that for unknown ones. It returns nil
// for a host that gets the page, and ends the handler for one that gets no answer at all.
func (h *Handler) findSite(x *exchange, tables *plans.Tables, rawHost string) *plans.Plan {
	host, kind := svccore.NormalizeHost(rawHost)
	if kind != svccore.HostInvalid {
		if site := svccore.PlanOfHost(tables, host); site != nil {
			return site
		}
	}
	h.countUnknown(x, tables)
	unknown := svcsites.Unknown.Of(tables)
	action := unknown.Host
	if kind == svccore.HostAddress {
		action = unknown.Address
	}
	switch action {
	case configv1.UnknownHostAction_UNKNOWN_HOST_ACTION_CLOSE:
		panic(http.ErrAbortHandler)
	case configv1.UnknownHostAction_UNKNOWN_HOST_ACTION_SITE:
		return svcsites.DefaultSite(tables)
	}
	return nil
}

func (x *exchange) protectionOf(site *plans.Plan) *svcchallenge.Protection {
	if x.protection == nil {
		x.protection = svcchallenge.ProtectionOf(site)
	}
	return x.protection
}

// resolve finds the client.
func (x *exchange) resolve(tables *plans.Tables, r *http.Request) {
	var proxied netip.Addr
	if x.conn != nil {
		x.peer, proxied = x.conn.Peer, x.conn.Proxied()
	} else if peer, err := netip.ParseAddrPort(r.RemoteAddr); err == nil {
		x.peer = peer.Addr().WithZone("").Unmap()
	}
	x.Client = svclisten.ClientIP.Of(tables).Resolve(x.peer, proxied, r.Header)
}

// enter makes the exchange known to new bans, until it leaves.
func (x *exchange) enter(site *plans.Plan, r *http.Request) *http.Request {
	x.SiteID = site.SiteID
	if x.conn == nil {
		return r
	}
	if r.ProtoMajor != 1 {
		var ctx context.Context
		ctx, x.Cancel = context.WithCancel(r.Context())
		r = r.WithContext(ctx)
	}
	x.list()
	return r
}

func (x *exchange) list() {
	x.listed = true
	x.conn.Begin(&x.Exchange)
}

// unlist makes the exchange unknown to new bans before its end.
func (x *exchange) unlist() {
	if x.listed {
		x.listed = false
		x.conn.End(&x.Exchange)
	}
}

func (x *exchange) leave() {
	x.unlist()
	if x.Cancel != nil {
		x.Cancel()
	}
}

func (h *Handler) proxy(x *exchange, r *http.Request, tables *plans.Tables, pool *svcorigin.Pool, requestID string) {
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	pool.ServeHTTP(x, r, svcorigin.Request{
		Transports:       svcorigin.TransportsOf(h.core),
		ClientAddr:       x.Client,
		PeerAddr:         x.peer,
		Scheme:           scheme,
		RequestID:        requestID,
		CDNLoop:          h.core.LoopID(),
		DropForwardedFor: svclisten.ClientIP.Of(tables).DropForwardedFor,
		Mode:             modeNames[svclisten.ClientIP.Of(tables).Mode],
		BodyLimit:        pool.BodyLimit,
		Fail:             svcerrors.Write,
		Outcome:          x,
	})
}

var modeNames = map[configv1.ClientIpMode]string{
	configv1.ClientIpMode_CLIENT_IP_MODE_DIRECT:         "direct",
	configv1.ClientIpMode_CLIENT_IP_MODE_PROXY_PROTOCOL: "proxy_protocol",
	configv1.ClientIpMode_CLIENT_IP_MODE_HEADER:         "header",
}

// contain keeps a panic to its request: the client gets the page of an internal error where nothing was sent yet, else
// a broken response.
func (h *Handler) contain(x *exchange, r *http.Request) {
	p := recover()
	if p == nil {
		return
	}
	if p == http.ErrAbortHandler {
		panic(p)
	}
	h.log.Error("panic contained", zap.String("site", x.SiteID), zap.Any("panic", p), zap.Stack("stack"))
	if x.started {
		panic(http.ErrAbortHandler)
	}
	if x.challenging {
		svcerrors.Write(x, r, http.StatusServiceUnavailable, svcerrors.ChallengeUnavailable)
		return
	}
	svcerrors.Write(x, r, http.StatusInternalServerError, svcerrors.InternalError)
}

const healthPath = "/.svc/health"

func isHealthCheck(r *http.Request) bool {
	return r.URL.Path == healthPath && (r.Method == http.MethodGet || r.Method == http.MethodHead)
}

func answerHealth(w http.ResponseWriter, r *http.Request) {
	svcerrors.BoundBody(w, r)
	h := w.Header()
	h["Content-Type"] = []string{"text/plain; charset=utf-8"}
	h["Content-Length"] = []string{"2"}
	h["Cache-Control"] = []string{"no-store"}
	if r.Method != http.MethodHead {
		_, _ = io.WriteString(w, "ok")
	}
}
