package exchange

import "net/http"

// TakesInterim reports whether the client may get informational responses before the final one. Clients of HTTP/1.0 must
// not (RFC 9110 §15.2), and those of WebSockets read one response alone. Where the server may still write its own
// 100 (Continue) for a stream, net/http does not keep the two writes apart.
func (x *Exchange) TakesInterim() bool {
	switch {
	case x.In.Major != 1:
		return true
	case x.In.Minor == 0 || x.In.Upgrade:
		return false
	}
	return !x.Body.duplex || len(x.In.Header["Expect"]) == 0
}

// SendInterim sends an informational response, whose fields fill sets. The header of the final response begins empty.
// Call it where the exchange is answered, before Send.
func (x *Exchange) SendInterim(status int, fill func(http.Header)) {
	h := x.writer.Header()
	clear(h)
	fill(h)
	x.boundWrites()
	x.sentHead(status)
	x.writer.WriteHeader(status)
	clear(h)
}
