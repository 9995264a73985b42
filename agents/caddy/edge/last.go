package edge

import (
	"net/http"

	"edge.svc/caddy/exchange"
)

// endAfter has the connection end with the answer where what follows the request must not be read as another one.
// net/http reads a request of HTTP/1.0 without its chunks, and forgets that a chunked one came with a length, too: a
// proxy in front may have found the end of either elsewhere, and what it took for a part of this request would be read
// as the next client's.
func endAfter(x *exchange.Exchange, r *http.Request) {
	if r.ProtoMajor == 1 && (r.ProtoMinor == 0 || len(r.TransferEncoding) > 0) {
		x.CloseAfter()
	}
}
