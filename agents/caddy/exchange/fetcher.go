package exchange

import (
	"context"
	"net/http"
	"net/netip"
	"time"
)

// Fetcher gets responses from the origins of a site, without a client that waits for them. It is a component that core.Find
// finds.
type Fetcher interface {
	// Fetch returns what an origin responds. The address policy, the choice of origins and further tries are those of the
	// site's requests. The end of ctx ends the fetch, also while the body is copied. An error is a *FetchError, or the
	// context's. Close the body of the response.
	Fetch(ctx context.Context, r *Request) (*Response, error)
}

// Request is a request to the origins of a site. It belongs to nobody else until the body of its response is closed.
type Request struct {
	Plan *Plan
	// In is what origins are told of a client. A fetch is no handshake: Upgrade is ignored.
	In        Inbound
	Out       Outbound
	Overrides Overrides
	// Body is the whole body, nil for none.
	Body []byte
	// Interim hears of informational responses; nil where nobody listens.
	Interim func(status int, header http.Header)
}

// Detach copies what origins are told of the exchange, without its body, into a request that outlives it.
//
//	r := x.Detach()
//	go refresh(r)
func (x *Exchange) Detach() *Request {
	r := &Request{Plan: x.Plan, In: x.In, Out: x.Out, Overrides: x.Overrides}
	r.In.Header, r.In.Trailer = x.In.Header.Clone(), nil
	r.In.Upgrade = false
	// The values are the rules' own, which do not change.
	r.Out.Edits = append([]HeaderEdit(nil), x.Out.Edits...)
	if x.Out.Target != nil {
		target := *x.Out.Target
		r.Out.Target = &target
	}
	return r
}

// Response is what an origin responds.
type Response struct {
	Status int
	// Header is without fields of one hop, and without those that origins do not set for clients.
	Header http.Header
	// Body pushes itself into a sink, once. It is never nil.
	Body Source
	// Trailer is set while the body copies itself.
	Trailer http.Header
	// Outcome is complete once the body is closed.
	Outcome OriginOutcome
}

// FetchError says why no origin responded, in the words of the page that a client would get.
type FetchError struct {
	Status  int
	Code    string
	Outcome OriginOutcome
	Cause   error
}

// Error is for logs.
func (e *FetchError) Error() string {
	if e.Cause == nil {
		return e.Code
	}
	return e.Code + ": " + e.Cause.Error()
}

// Unwrap gives the cause.
func (e *FetchError) Unwrap() error { return e.Cause }

// OriginOutcome is how a request fared at the origins.
type OriginOutcome struct {
	// Asked says that an origin was asked, or should have been.
	Asked bool
	// Status of the response, 0 when there was none.
	Status int
	// Origin is the id of the origin that responded, else of the one that was asked last; Address is what the node was connected
	// to, the zero value where it was not.
	Origin  string
	Address netip.AddrPort
	// Attempts is how many connections were taken or made for the request.
	Attempts int
	// Reused says that the last of them had served other requests.
	Reused bool
	// Connect includes looking the name up. Both are 0 for a connection that was reused, or not made.
	Connect, TLS time.Duration
	// FirstByte is from the beginning of the last attempt's request until the header of its response was whole, Total from the
	// beginning of all until the end of the body.
	FirstByte, Total time.Duration
	// Bytes is what the last attempt received, headers included.
	Bytes int64
	// Error is the class of the last failure, also where a later attempt succeeded: connect_failed, timeout, upstream_status,
	// dns_failed, address_forbidden, tls_failed, connections_in_use; aborted where nobody waited any more. "" without one.
	Error string
}

// Origin is the fact of it. Log writers read it at the end; a request that no origin was asked for has none.
var Origin = NewFact[OriginOutcome]()
