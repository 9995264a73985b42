package exchange

import (
	"math/rand/v2"
	"net/http"
	"sync/atomic"
)

// Traffic returns the bytes that the exchange received from its client and sent to it, counted in one way on every protocol:
// headers as HTTP/1.1 writes them, bodies and tunnels as they pass, without what TLS and frames take. Usage has a meter of its
// own where a connection is plain. Ask at the end of the exchange.
func (x *Exchange) Traffic() (received, sent int64) {
	return int64(x.requestBytes()) + x.Body.total + x.tunnelled.received.Load(), x.Sent()
}

// Sent is what of Traffic went to the client.
func (x *Exchange) Sent() int64 {
	sent := x.interimSent + x.bodySent + x.tunnelled.sent.Load()
	if x.statusSent != 0 {
		sent += int64(x.headBytes(x.statusSent))
	}
	return sent
}

// Status is that of the response that began to leave, 0 where none did.
func (x *Exchange) Status() int { return x.statusSent }

// tunnelTraffic is what a tunnel carries, in two goroutines.
type tunnelTraffic struct{ received, sent atomic.Int64 }

// requestBytes is what the header of the request takes.
func (x *Exchange) requestBytes() int {
	in := &x.In
	// The request line and the empty line.
	n := len(in.Method) + 1 + len(in.Target.Raw) + len(" HTTP/1.1\r\n\r\n")
	if _, named := in.Header["Host"]; !named {
		n += len("Host: \r\n") + len(in.HostRaw)
	}
	return n + fieldBytes(in.Header)
}

// headBytes is what the header of a response takes.
func (x *Exchange) headBytes(status int) int {
	h := x.writer.Header()
	n := len("HTTP/1.1 200 \r\n\r\n") + len(http.StatusText(status)) + fieldBytes(h)
	if _, dated := h["Date"]; !dated && status >= 200 {
		n += dateField
	}
	return n
}

var rows atomic.Uint64

// Row is the number of the exchange in this process. It is given when somebody first asks; together with the node and the
// process it names one line of a log.
func (x *Exchange) Row() uint64 {
	if x.row == 0 {
		x.row = rows.Add(1)
	}
	return x.row
}

// SampleParts is the rate at which every exchange is sampled.
const SampleParts = 10_000

// Sampled reports whether the exchange is of a sample of so many in 10,000. Exchanges are drawn once, so that of two samples
// the larger one has all of the smaller one. Nothing that a client sends has an influence.
func (x *Exchange) Sampled(rate uint32) bool {
	if x.draw == 0 {
		x.draw = 1 + rand.Uint32N(SampleParts)
	}
	return x.draw <= rate
}
