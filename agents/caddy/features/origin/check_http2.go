package origin

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"

	"edge.svc/caddy/core"
)

// checksShared makes a connection of HTTP/2 of one that is there.
var checksShared = func() *http.Transport {
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	there := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return ctx.Value(checkConnKey{}).(net.Conn), nil
	}
	return &http.Transport{
		Protocols: protocols, DisableCompression: true, DialContext: there, MaxResponseHeaderBytes: maxCheckRead,
	}
}()

type checkConnKey struct{}

// askOnceShared is askOnce over HTTP/2.
func askOnceShared(ctx context.Context, c net.Conn, key *checkKey) (int, error) {
	scheme, method := "http", http.MethodGet
	if secure, ok := c.(*tls.Conn); ok {
		if scheme = "https"; secure.ConnectionState().NegotiatedProtocol != "h2" {
			return 0, fail(failTLS, errNotHTTP2)
		}
	}
	if key.head {
		method = http.MethodHead
	}
	conn, err := checksShared.NewClientConn(context.WithValue(ctx, checkConnKey{}, c), "http", "origin:1")
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	request, err := http.NewRequestWithContext(ctx, method, scheme+"://"+key.host+key.path, http.NoBody)
	if err != nil {
		return 0, err
	}
	request.Header["User-Agent"] = []string{"svc-node-healthcheck/" + core.Version}
	request.Header["Accept"] = []string{"*/*"}
	response, err := conn.RoundTrip(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	_, err = io.CopyN(io.Discard, response.Body, maxCheckRead)
	if err == io.EOF {
		err = nil
	}
	return response.StatusCode, err
}
