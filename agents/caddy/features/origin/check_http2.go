package origin

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"time"

	"edge.svc/caddy/core"
	"edge.svc/caddy/features/origin/h2"
)

// askOnceShared is askOnce over HTTP/2.
func askOnceShared(ctx context.Context, to net.Conn, key *checkKey) (int, error) {
	scheme, method := "http", http.MethodGet
	if secure, ok := to.(*tls.Conn); ok {
		if scheme = "https"; secure.ConnectionState().NegotiatedProtocol != "h2" {
			return 0, fail(failTLS, h2.ErrNotHTTP2)
		}
	}
	if key.head {
		method = http.MethodHead
	}
	until, _ := ctx.Deadline()
	c := h2.New(to)
	defer c.Close()
	if err := awaitSettings(ctx, c, time.Until(until)); err != nil {
		return 0, err
	}
	if !c.Reserve() {
		return 0, h2.ErrUnprocessed
	}
	block := h2.AppendRequest(nil, []byte(method), []byte(scheme), []byte(key.host), []byte(key.path))
	block = h2.AppendField(block, []byte("user-agent"), []byte("svc-node-healthcheck/"+core.Version))
	block = h2.AppendField(block, []byte("accept"), []byte("*/*"))
	stream, _, err := c.Open(h2.Request{Block: block, HeadOnly: key.head})
	if err != nil {
		return 0, err
	}
	defer stream.Close()
	for range maxCheckInterim {
		header, err := stream.Header(ctx, time.Until(until))
		if err != nil {
			return 0, err
		}
		if header.Status >= http.StatusOK {
			return header.Status, readOnce(ctx, stream, until)
		}
	}
	return 0, errMalformed
}

// readOnce reads as much of a body as a check reads.
func readOnce(ctx context.Context, stream *h2.Stream, until time.Time) error {
	for left := maxCheckRead; left > 0; {
		p, _, err := stream.Read(ctx, time.Until(until))
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		left -= len(p)
	}
	return nil
}
