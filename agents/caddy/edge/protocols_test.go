package edge

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/quic-go/quic-go/http3"

	"edge.svc/caddy/exchange"
	"edge.svc/caddy/internal/ja4"
	"edge.svc/caddy/listen"
)

// protocolEdge is an edge that clients reach over one protocol: HTTP/1 without TLS and with it, HTTP/2 or HTTP/3.
type protocolEdge struct {
	url      string
	protocol int
}

// client is one with connections of its own, all of them for one name; for any host where it is "".
func (e *protocolEdge) client(t *testing.T, name string) *http.Client {
	t.Helper()
	config := &tls.Config{InsecureSkipVerify: true, ServerName: name}
	if e.protocol == 3 {
		transport := &http3.Transport{TLSClientConfig: config, DisableCompression: true}
		t.Cleanup(func() { transport.Close() })
		return &http.Client{Transport: transport, CheckRedirect: stay}
	}
	transport := &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: e.protocol == 2, DisableCompression: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, CheckRedirect: stay}
}

func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// anyHandshake takes everybody in, and tells the fingerprint of those who name a host.
type anyHandshake struct{ certificate tls.Certificate }

func newAnyHandshake(t *testing.T) *anyHandshake {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"a.com"}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return &anyHandshake{tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}}
}

func (h *anyHandshake) ServerConfig() *tls.Config {
	config := &tls.Config{Certificates: []tls.Certificate{h.certificate}, NextProtos: []string{"h2", "http/1.1"}}
	config.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		if conn, ok := hello.Conn.(*listen.Conn); ok && hello.ServerName != "" {
			conn.SetHandshake(&exchange.Handshake{ServerName: hello.ServerName, SiteID: "a", JA4: ja4.Of(hello, conn.QUIC())})
		}
		return nil, nil
	}
	return config
}

func (h *anyHandshake) Failed(error) {}

// serveProtocol serves an edge over a protocol, 1 without TLS.
func serveProtocol(t *testing.T, h *edge, protocol int, around func(http.Handler) http.Handler) *protocolEdge {
	t.Helper()
	if protocol == 1 {
		return serveBy(t, h, nil, protocol, around)
	}
	return serveBy(t, h, newAnyHandshake(t), protocol, around)
}

// serveBy serves an edge over a protocol, with somebody who decides handshakes where there are any.
func serveBy(t *testing.T, h *edge, decider exchange.TLS, protocol int, around func(http.Handler) http.Handler) *protocolEdge {
	t.Helper()
	wrapper := listen.New(h.core, listen.NewRegistry())
	if protocol == 3 {
		socket, err := net.ListenPacket("udp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		handler := around(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			h.serve(w, r, listen.FromRequest(r), time.Minute)
		}))
		end, err := wrapper.ServeHTTP3(socket, 443, decider, handler)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(end)
		return &protocolEdge{"https://" + socket.LocalAddr().String(), protocol}
	}
	server := httptest.NewUnstartedServer(around(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = h.ServeHTTP(w, r, nil)
	})))
	wrapper.Serve(server.Config)
	server.Listener = wrapper.WrapListener(server.Listener)
	if decider != nil {
		server.EnableHTTP2 = true
		server.TLS = decider.ServerConfig()
		server.StartTLS()
	} else {
		server.Start()
	}
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return &protocolEdge{server.URL, protocol}
}
