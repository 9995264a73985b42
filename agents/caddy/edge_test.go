package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"connectrpc.com/connect"

	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
	"edge.svc/caddy/gen/svc/edge/v1/edgev1connect"
	nodev1 "edge.svc/caddy/gen/svc/node/v1"
	"edge.svc/caddy/internal/edgetest"
)

const runMain = "SVC_CADDY_TEST_RUN"

// The test binary is the program itself when it is started with the variable set, or a crowd of its clients.
func TestMain(m *testing.M) {
	if os.Getenv(runMain) != "" {
		main()
		return
	}
	if order := os.Getenv(runCrowd); order != "" {
		crowdMain(order)
		return
	}
	os.Exit(m.Run())
}

// edge is a running svc-caddy.
type edge struct {
	t             *testing.T
	addr, tlsAddr string
	dir           string
	socket        string
	cmd           *exec.Cmd
	stderr        bytes.Buffer
	client        edgev1connect.EdgeServiceClient
}

const wait = 20 * time.Second

// What sites of tests may be served with.
var certificate = sync.OnceValue(func() *edgetest.Certificate { return edgetest.NewCertificate("a.test", "b.test") })

// overTLS is a client of a site that has the certificate.
func overTLS(t *testing.T, host string) *http.Transport {
	transport := &http.Transport{
		ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: certificate().Roots, ServerName: host},
	}
	t.Cleanup(transport.CloseIdleConnections)
	return transport
}

// untilHTTP3 waits until clients of a site are told of HTTP/3: its ports are opened after those of TLS.
func (e *edge) untilHTTP3(host string) {
	e.t.Helper()
	transport := overTLS(e.t, host)
	e.until("HTTP/3 is served", func() bool {
		request, err := http.NewRequest(http.MethodGet, "https://"+e.tlsAddr, nil)
		if err != nil {
			e.t.Fatal(err)
		}
		request.Host = host
		response, err := transport.RoundTrip(request)
		if err != nil {
			return false
		}
		response.Body.Close()
		return response.Header.Get("Alt-Svc") != ""
	})
}

func startEdge(t *testing.T, listeners map[string]any, config, bans []*edgev1.JournalRecord) *edge {
	t.Helper()
	return startEdgeWith(t, nil, listeners, config, bans)
}

// startEdgeWith starts an edge with other settings of its server.
func startEdgeWith(t *testing.T, settings, listeners map[string]any, config, bans []*edgev1.JournalRecord) *edge {
	t.Helper()
	e := &edge{t: t, dir: t.TempDir()}
	e.socket = filepath.Join(e.dir, "run", "edge.sock")
	if config != nil {
		edgetest.WriteJournal(t, filepath.Join(e.dir, "config.journal"), config...)
	}
	if bans != nil {
		edgetest.WriteJournal(t, filepath.Join(e.dir, "bans.journal"), bans...)
	}
	if err := os.WriteFile(filepath.Join(e.dir, "certificates.pack"), certificate().Pack, 0o600); err != nil {
		t.Fatal(err)
	}
	e.addr, e.tlsAddr = freeAddress(t), freeAddress(t)
	wrapper := map[string]any{"wrapper": "svc"}
	for key, value := range listeners {
		wrapper[key] = value
	}
	server := map[string]any{
		"listen": []string{"svc-http/" + e.addr}, "protocols": []string{"h1", "h2"},
		"automatic_https":     map[string]any{"disable": true},
		"listener_wrappers":   []any{wrapper},
		"read_header_timeout": "10s", "read_idle_timeout": -1, "write_idle_timeout": "60s",
		"idle_timeout": "75s", "max_header_bytes": 65536,
		"routes": routeTo(map[string]any{"handler": "svc_edge", "direct": true}),
		"errors": map[string]any{"routes": routeTo(map[string]any{"handler": "svc_error"})},
	}
	maps.Copy(server, settings)
	overTLS := maps.Clone(server)
	overTLS["listen"] = []string{"svc-https/" + e.tlsAddr}
	rendered, err := json.Marshal(map[string]any{
		"admin":   map[string]any{"disabled": true, "config": map[string]any{"persist": false}},
		"logging": map[string]any{"logs": map[string]any{"default": map[string]any{"writer": map[string]any{"output": "stderr"}}}},
		"apps": map[string]any{
			"svc": map[string]any{"state_dir": e.dir, "socket": e.socket, "ban_capacity": 1000, "ban_max_mib": 4},
			"http": map[string]any{
				"grace_period": "2s",
				"servers":      map[string]any{"edge": server, "edge-tls": overTLS},
			},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(e.dir, "caddy.json")
	if err := os.WriteFile(file, rendered, 0o600); err != nil {
		t.Fatal(err)
	}
	e.cmd = exec.Command(os.Args[0], "run", "--config", file)
	e.cmd.Env = append(os.Environ(), runMain+"=1", "HOME="+e.dir, "XDG_DATA_HOME="+e.dir, "XDG_CONFIG_HOME="+e.dir)
	e.cmd.Stderr = &e.stderr
	if err := e.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	exited := make(chan error, 1)
	go func() { exited <- e.cmd.Wait() }()
	t.Cleanup(func() {
		_ = e.cmd.Process.Signal(syscall.SIGTERM)
		select {
		case err := <-exited:
			if err != nil {
				t.Errorf("svc-caddy ended with %v", err)
			}
		case <-time.After(wait):
			_ = e.cmd.Process.Kill()
			t.Error("svc-caddy did not end")
		}
		if t.Failed() {
			t.Logf("log:\n%s", e.stderr.String())
		}
	})
	e.client = edgev1connect.NewEdgeServiceClient(&http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", e.socket)
		},
	}}, "http://edge")
	e.until("the edge serves", func() bool { return e.status() != nil && e.status().GetServing() })
	return e
}

func routeTo(handler map[string]any) []any {
	return []any{map[string]any{"handle": []any{handler}}}
}

func freeAddress(t *testing.T) string {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().String()
}

func (e *edge) until(what string, condition func() bool) {
	e.t.Helper()
	for deadline := time.Now().Add(wait); !condition(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			e.t.Fatalf("never: %s\n%s", what, e.stderr.String())
		}
	}
}

// setKeys gives the edge a key for challenges.
func (e *edge) setKeys() {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	if _, err := e.client.SetChallengeKeys(ctx, connect.NewRequest(&edgev1.SetChallengeKeysRequest{Keys: &nodev1.ChallengeKeys{
		Version: 2, Current: &nodev1.ChallengeKey{Id: "k1", Secret: make([]byte, 32)},
	}})); err != nil {
		e.t.Fatal(err)
	}
}

func (e *edge) status() *edgev1.GetStatusResponse {
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	response, err := e.client.GetStatus(ctx, connect.NewRequest(&edgev1.GetStatusRequest{}))
	if err != nil {
		return nil
	}
	return response.Msg
}

// get sends a request for a host; headers come in pairs.
func (e *edge) get(method, host, target string, headers ...string) (*http.Response, string) {
	e.t.Helper()
	request, err := http.NewRequest(method, "http://"+e.addr+target, nil)
	if err != nil {
		e.t.Fatal(err)
	}
	request.Host = host
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Add(headers[i], headers[i+1])
	}
	return e.send(request)
}

func (e *edge) send(request *http.Request) (*http.Response, string) {
	e.t.Helper()
	client := http.Client{Timeout: wait, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.Do(request)
	if err != nil {
		e.t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		e.t.Fatal(err)
	}
	return response, string(body)
}

func (e *edge) expect(method, host, target string, status int, code string, headers ...string) (*http.Response, string) {
	e.t.Helper()
	response, body := e.get(method, host, target, headers...)
	if response.StatusCode != status || response.Header.Get("X-Svc-Error") != code {
		e.t.Fatalf("%s %s%s: got %d %q, want %d %q\n%s", method, host, target, response.StatusCode, response.Header.Get("X-Svc-Error"), status, code, body)
	}
	if response.Header.Get("X-Request-Id") == "" {
		e.t.Errorf("%s %s%s: no request id", method, host, target)
	}
	if response.Header.Get("Server") != "" {
		e.t.Errorf("%s %s%s: Server is %q", method, host, target, response.Header.Get("Server"))
	}
	if code != "" && response.Header.Get("Cache-Control") != "no-store" {
		e.t.Errorf("%s %s%s: an answer of the edge may be stored", method, host, target)
	}
	return response, body
}

// raw sends bytes on a connection of its own and returns everything that comes back until it ends.
func (e *edge) raw(send string) string {
	e.t.Helper()
	conn, err := net.Dial("tcp", e.addr)
	if err != nil {
		e.t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(wait))
	if _, err := io.WriteString(conn, send); err != nil {
		e.t.Fatal(err)
	}
	answer, err := io.ReadAll(conn)
	if err != nil && !errors.Is(err, syscall.ECONNRESET) {
		e.t.Fatalf("%v after %q", err, answer)
	}
	return string(answer)
}
