// Package exchangetest takes requests to single stages, as the edge does.
package exchangetest

import (
	"net/http"
	"net/netip"
	"sync"

	"edge.svc/caddy/exchange"
)

// New begins an exchange and reads the addresses that the first stages find.
func New(w http.ResponseWriter, r *http.Request) *exchange.Exchange {
	return begin(&exchange.Exchange{}, w, r)
}

func begin(x *exchange.Exchange, w http.ResponseWriter, r *http.Request) *exchange.Exchange {
	x.Begin(w, r)
	if peer, err := netip.ParseAddrPort(r.RemoteAddr); err == nil {
		x.In.Peer = peer.Addr().WithZone("").Unmap()
		x.In.Client = x.In.Peer
	}
	return x
}

var exchanges = sync.Pool{New: func() any { return new(exchange.Exchange) }}

// Serve answers a request with what a stage answers. An answer that cannot be sent whole ends the connection.
func Serve(w http.ResponseWriter, r *http.Request, stage exchange.Stage) {
	x := begin(exchanges.Get().(*exchange.Exchange), w, r)
	whole := false
	defer func() {
		x.Reset()
		if whole {
			exchanges.Put(x)
		}
	}()
	if whole = x.Send(stage(x)); !whole {
		panic(http.ErrAbortHandler)
	}
}

// Handler answers every request with what a stage answers.
func Handler(stage exchange.Stage) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { Serve(w, r, stage) })
}
