// Package interop runs the interoperability cases of gRPC that need no cloud through a real edge, over TLS and without.
package interop

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/interop"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/testdata"

	configv1 "edge.svc/caddy/gen/svc/config/v1"
	"edge.svc/caddy/internal/edgetest"
)

const (
	host = "a.test"
	wait = time.Minute
)

// edge is a running svc-caddy.
type edge struct{ plain, secure string }

// startEdge builds the edge, and starts it with entries.
func startEdge(t *testing.T, certificate *edgetest.Certificate, entries ...*configv1.Entry) edge {
	t.Helper()
	dir := t.TempDir()
	binary := filepath.Join(dir, "svc-caddy")
	build := exec.Command("go", "build", "-trimpath", "-o", binary, ".")
	build.Dir = filepath.Join("..", "..", "agents", "caddy")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	edgetest.WriteJournal(t, filepath.Join(dir, "config.journal"), edgetest.Header("node-1"), edgetest.Config(1, entries))
	if err := os.WriteFile(filepath.Join(dir, "certificates.pack"), certificate.Pack, 0o600); err != nil {
		t.Fatal(err)
	}
	e := edge{free(t), free(t)}
	config := filepath.Join(dir, "caddy.json")
	if err := os.WriteFile(config, e.config(t, dir), 0o600); err != nil {
		t.Fatal(err)
	}
	run := exec.Command(binary, "run", "--config", config)
	run.Env = append(os.Environ(), "HOME="+dir, "XDG_DATA_HOME="+dir, "XDG_CONFIG_HOME="+dir)
	var log strings.Builder
	run.Stderr = &log
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = run.Process.Signal(syscall.SIGTERM)
		_ = run.Wait()
		if t.Failed() {
			t.Log(log.String())
		}
	})
	for end := time.Now().Add(wait); ; time.Sleep(20 * time.Millisecond) {
		if response, err := http.Get("http://" + e.plain + "/.svc/health"); err == nil {
			response.Body.Close()
			return e
		}
		if time.Now().After(end) {
			t.Fatal("the edge does not serve")
		}
	}
}

// config is the static configuration of a node.
func (e *edge) config(t *testing.T, dir string) []byte {
	server := func(listen string) map[string]any {
		route := func(handler map[string]any) []any { return []any{map[string]any{"handle": []any{handler}}} }
		return map[string]any{
			"listen": []string{listen}, "protocols": []string{"h1", "h2"}, "automatic_https": map[string]any{"disable": true},
			"listener_wrappers":   []any{map[string]any{"wrapper": "svc"}},
			"read_header_timeout": "10s", "read_idle_timeout": -1, "write_idle_timeout": "60s", "idle_timeout": "75s", "max_header_bytes": 98304,
			"routes": route(map[string]any{"handler": "svc_edge", "direct": true}),
			"errors": map[string]any{"routes": route(map[string]any{"handler": "svc_error"})},
		}
	}
	rendered, err := json.Marshal(map[string]any{
		"admin": map[string]any{"disabled": true, "config": map[string]any{"persist": false}},
		"apps": map[string]any{
			"svc":  map[string]any{"state_dir": dir, "socket": filepath.Join(dir, "edge.sock"), "ban_capacity": 1000, "ban_max_mib": 4},
			"http": map[string]any{"grace_period": "2s", "servers": map[string]any{"edge": server("svc-http/" + e.plain), "edge-tls": server("svc-https/" + e.secure)}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return rendered
}

func free(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// startServer starts the server of the cases, and returns it as an origin.
func startServer(t *testing.T, options ...grpc.ServerOption) uint32 {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer(options...)
	testgrpc.RegisterTestServiceServer(s, interop.NewTestServer())
	go func() { _ = s.Serve(l) }()
	t.Cleanup(s.Stop)
	return uint32(l.Addr().(*net.TCPAddr).Port)
}

// A failing case ends the process, and says which one it was.
func TestInterop(t *testing.T) {
	certificate := edgetest.NewCertificate(host, "b.test")
	site := func(port uint32, name string) *configv1.Site {
		m := edgetest.Site(port, name)
		m.Pool.Http2, m.Pool.Grpc = true, true
		return m
	}
	secure, err := credentials.NewServerTLSFromFile(testdata.Path("x509/server1_cert.pem"), testdata.Path("x509/server1_key.pem"))
	if err != nil {
		t.Fatal(err)
	}
	overTLS := site(startServer(t, grpc.Creds(secure)), "b.test")
	overTLS.Origins[0].Https, overTLS.Pool.TlsVerify = true, false
	e := startEdge(t, certificate,
		edgetest.Entry("origin-policy", "", &configv1.OriginPolicy{AllowedCidrs: []string{"127.0.0.0/8"}}),
		edgetest.Entry("site", "site-a", site(startServer(t), host)), edgetest.Entry("site", "site-b", overTLS),
		certificate.HTTPS("site-a"), certificate.HTTPS("site-b"),
	)
	for _, way := range []struct {
		name, address, host string
		credentials         credentials.TransportCredentials
	}{
		{"h2c to h2c", e.plain, host, insecure.NewCredentials()},
		{"TLS to h2c", e.secure, host, credentials.NewClientTLSFromCert(certificate.Roots, host)},
		{"TLS to TLS", e.secure, "b.test", credentials.NewClientTLSFromCert(certificate.Roots, "b.test")},
	} {
		conn, err := grpc.NewClient("passthrough:///"+way.address, grpc.WithTransportCredentials(way.credentials), grpc.WithAuthority(way.host))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		client := testgrpc.NewTestServiceClient(conn)
		for _, c := range []struct {
			name string
			run  func(context.Context)
		}{
			{"empty_unary", func(ctx context.Context) { interop.DoEmptyUnaryCall(ctx, client) }},
			{"large_unary", func(ctx context.Context) { interop.DoLargeUnaryCall(ctx, client) }},
			{"client_streaming", func(ctx context.Context) { interop.DoClientStreaming(ctx, client) }},
			{"server_streaming", func(ctx context.Context) { interop.DoServerStreaming(ctx, client) }},
			{"ping_pong", func(ctx context.Context) { interop.DoPingPong(ctx, client) }},
			{"empty_stream", func(ctx context.Context) { interop.DoEmptyStream(ctx, client) }},
			{"timeout_on_sleeping_server", func(ctx context.Context) { interop.DoTimeoutOnSleepingServer(ctx, client) }},
			{"cancel_after_begin", func(ctx context.Context) { interop.DoCancelAfterBegin(ctx, client) }},
			{"cancel_after_first_response", func(ctx context.Context) { interop.DoCancelAfterFirstResponse(ctx, client) }},
			{"custom_metadata", func(ctx context.Context) { interop.DoCustomMetadata(ctx, client) }},
			{"status_code_and_message", func(ctx context.Context) { interop.DoStatusCodeAndMessage(ctx, client) }},
			{"special_status_message", func(ctx context.Context) { interop.DoSpecialStatusMessage(ctx, client) }},
			{"unimplemented_method", func(ctx context.Context) { interop.DoUnimplementedMethod(ctx, conn) }},
			{"unimplemented_service", func(ctx context.Context) {
				interop.DoUnimplementedService(ctx, testgrpc.NewUnimplementedServiceClient(conn))
			}},
		} {
			t.Run(way.name+"/"+c.name, func(t *testing.T) {
				fmt.Fprintln(os.Stderr, way.name, c.name)
				ctx, cancel := context.WithTimeout(t.Context(), wait)
				defer cancel()
				c.run(ctx)
			})
		}
	}
}
