package origin

import (
	"errors"
	"net/http"
	"time"

	"edge.svc/caddy/exchange"
	"edge.svc/caddy/pages"
)

// Respond responds with what an origin of the pool responds, or with a page of the edge when none can. A client that is gone
// gets no response.
func (f Fetcher) Respond(x *exchange.Exchange) *exchange.Answer {
	t := f.begin(x.Context(), &x.Out, &x.Overrides)
	if t == nil {
		return pages.Respond(x, http.StatusBadGateway, pages.NoOrigin)
	}
	t.x, t.in, t.body, t.outcome = x, &x.In, &x.Body, exchange.Origin.Of(x)
	if x.Writes != nil {
		// While the origin is silent, nothing is written.
		x.Writes.Lasts(t.times.read)
	}
	if exchange.IsGRPC(x) {
		t.times = t.times.within(x.In.Header["Grpc-Timeout"])
	}
	if f.Pool.affinitySeconds > 0 {
		t.pinned = f.affinity.pinned(x, t.group)
	}
	returned := false
	defer func() {
		if !returned {
			t.abandon()
		}
	}()
	answer := t.respond(t.run())
	returned = true
	if !t.kept {
		t.outcome.Total = time.Since(t.begun)
		t.free()
	}
	return answer
}

// respond makes the response of an origin, or the failure to get one, the client's.
func (t *fetch) respond(h head, err error) *exchange.Answer {
	if err != nil {
		return t.fail(err)
	}
	x := t.x
	if t.in.Upgrade && h.status() == http.StatusSwitchingProtocols && !t.response.isWebSocket() {
		// Another protocol is not what was asked for.
		t.drop(false)
		return t.fail(errMalformed)
	}
	t.outcome.Asked, t.outcome.Status = true, h.status()
	h.from(t.outcome)
	answer := x.RespondFrom(exchange.FromOrigin, h.status())
	h.take(answer.Header, &answer.Trailer)
	answer.Body, t.kept = h, true
	if answer.Status == http.StatusSwitchingProtocols {
		t.upgrade(answer)
	}
	return answer
}

// fail responds for a failure to get a response.
func (t *fetch) fail(err error) *exchange.Answer {
	var body bodyError
	if errors.As(err, &body) {
		answer := pages.RespondToBody(t.x, body.error)
		if answer.Drop {
			t.outcome.Error = errorAborted
		}
		return answer
	}
	if err == errGone {
		t.outcome.Error = errorAborted
		return t.x.Drop()
	}
	t.outcome.Asked = true
	status, code := refusal(err)
	return pages.Respond(t.x, status, code)
}

// refusal is the page for the failure of origins.
func refusal(err error) (status int, code string) {
	switch classOf(err) {
	case failDNS, failForbidden:
		return http.StatusBadGateway, pages.NoOrigin
	case failFull:
		return http.StatusServiceUnavailable, pages.OriginBusy
	case failTimeout:
		return http.StatusGatewayTimeout, pages.OriginTimeout
	}
	return http.StatusBadGateway, pages.OriginUnreachable
}
