// Package live starts the whole program for tests, as a process of its own, and asks it. A test binary that imports this
// package is the program when it is started with Variable set, and has every feature registered.
package live

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
	"regexp"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"connectrpc.com/connect"

	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
	"edge.svc/caddy/gen/svc/edge/v1/edgev1connect"
	nodev1 "edge.svc/caddy/gen/svc/node/v1"
	"edge.svc/caddy/internal/edgetest"
	"edge.svc/caddy/program"
)

// Variable makes a test binary the program.
const Variable = "SVC_CADDY_TEST_RUN"

func init() {
	if os.Getenv(Variable) != "" {
		program.Main()
		os.Exit(0)
	}
}

// Edge is a running svc-caddy.
type Edge struct {
	T *testing.T
	// Addr takes HTTP, TLSAddr takes HTTPS.
	Addr, TLSAddr string
	// Dir holds the journals.
	Dir string
	// Socket is that of the agent.
	Socket string
	Cmd    *exec.Cmd
	// Stderr is its log.
	Stderr bytes.Buffer
	Client edgev1connect.EdgeServiceClient
}

// Wait is how long a test waits for what must come.
const Wait = 20 * time.Second

// Certificate is what sites of tests may be served with.
var Certificate = sync.OnceValue(func() *edgetest.Certificate { return edgetest.NewCertificate("a.test", "b.test") })

// OverTLS is a client of a site that has the Certificate.
func OverTLS(t *testing.T, host string) *http.Transport {
	transport := &http.Transport{
		ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: Certificate().Roots, ServerName: host},
	}
	t.Cleanup(transport.CloseIdleConnections)
	return transport
}

// UntilHTTP3 waits until clients of a site are told of HTTP/3: its ports are opened after those of TLS.
func (e *Edge) UntilHTTP3(host string) {
	e.T.Helper()
	transport := OverTLS(e.T, host)
	e.Until("HTTP/3 is served", func() bool {
		request, err := http.NewRequest(http.MethodGet, "https://"+e.TLSAddr, nil)
		if err != nil {
			e.T.Fatal(err)
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

// Start starts an edge with settings of the wrapper of its listeners, and the records of its journals.
func Start(t *testing.T, listeners map[string]any, config, bans []*edgev1.JournalRecord) *Edge {
	t.Helper()
	return StartWith(t, nil, listeners, config, bans)
}

// StartWith starts an edge with other settings of its server.
func StartWith(t *testing.T, settings, listeners map[string]any, config, bans []*edgev1.JournalRecord) *Edge {
	t.Helper()
	e := &Edge{T: t, Dir: t.TempDir()}
	e.Socket = filepath.Join(e.Dir, "run", "edge.sock")
	if config != nil {
		edgetest.WriteJournal(t, filepath.Join(e.Dir, "config.journal"), config...)
	}
	if bans != nil {
		edgetest.WriteJournal(t, filepath.Join(e.Dir, "bans.journal"), bans...)
	}
	if err := os.WriteFile(filepath.Join(e.Dir, "certificates.pack"), Certificate().Pack, 0o600); err != nil {
		t.Fatal(err)
	}
	e.Addr, e.TLSAddr = FreeAddress(t), FreeAddress(t)
	wrapper := map[string]any{"wrapper": "svc"}
	for key, value := range listeners {
		wrapper[key] = value
	}
	server := map[string]any{
		"listen": []string{"svc-http/" + e.Addr}, "protocols": []string{"h1", "h2"},
		"automatic_https":     map[string]any{"disable": true},
		"listener_wrappers":   []any{wrapper},
		"read_header_timeout": "10s", "read_idle_timeout": -1, "write_idle_timeout": "60s",
		"idle_timeout": "75s", "max_header_bytes": 98304,
		"routes": RouteTo(map[string]any{"handler": "svc_edge", "direct": true}),
		"errors": map[string]any{"routes": RouteTo(map[string]any{"handler": "svc_error"})},
	}
	maps.Copy(server, settings)
	overTLS := maps.Clone(server)
	overTLS["listen"] = []string{"svc-https/" + e.TLSAddr}
	rendered, err := json.Marshal(map[string]any{
		"admin":   map[string]any{"disabled": true, "config": map[string]any{"persist": false}},
		"logging": map[string]any{"logs": map[string]any{"default": map[string]any{"writer": map[string]any{"output": "stderr"}}}},
		"apps": map[string]any{
			"svc": map[string]any{"state_dir": e.Dir, "socket": e.Socket, "ban_capacity": 1000, "ban_max_mib": 4},
			"http": map[string]any{
				"grace_period": "2s",
				"servers":      map[string]any{"edge": server, "edge-tls": overTLS},
			},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(e.Dir, "caddy.json")
	if err := os.WriteFile(file, rendered, 0o600); err != nil {
		t.Fatal(err)
	}
	e.Cmd = exec.Command(os.Args[0], "run", "--config", file)
	e.Cmd.Env = append(os.Environ(), Variable+"=1", "HOME="+e.Dir, "XDG_DATA_HOME="+e.Dir, "XDG_CONFIG_HOME="+e.Dir)
	e.Cmd.Stderr = &e.Stderr
	if err := e.Cmd.Start(); err != nil {
		t.Fatal(err)
	}
	exited := make(chan error, 1)
	go func() { exited <- e.Cmd.Wait() }()
	t.Cleanup(func() {
		_ = e.Cmd.Process.Signal(syscall.SIGTERM)
		select {
		case err := <-exited:
			if err != nil {
				t.Errorf("svc-caddy ended with %v", err)
			}
		case <-time.After(Wait):
			_ = e.Cmd.Process.Kill()
			t.Error("svc-caddy did not end")
		}
		if t.Failed() {
			t.Logf("log:\n%s", e.Stderr.String())
		}
	})
	e.Client = edgev1connect.NewEdgeServiceClient(&http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", e.Socket)
		},
	}}, "http://edge")
	e.Until("the edge serves", func() bool { return e.Status() != nil && e.Status().GetServing() })
	return e
}

// RouteTo is a list of routes with one handler.
func RouteTo(handler map[string]any) []any {
	return []any{map[string]any{"handle": []any{handler}}}
}

// FreeAddress has a port that nobody listens on.
func FreeAddress(t *testing.T) string {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().String()
}

// Until waits until a condition is met.
func (e *Edge) Until(what string, condition func() bool) {
	e.T.Helper()
	for deadline := time.Now().Add(Wait); !condition(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			e.T.Fatalf("never: %s\n%s", what, e.Stderr.String())
		}
	}
}

// SetKeys gives the edge a key for challenges.
func (e *Edge) SetKeys() {
	e.T.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Wait)
	defer cancel()
	if _, err := e.Client.SetChallengeKeys(ctx, connect.NewRequest(&edgev1.SetChallengeKeysRequest{Keys: &nodev1.ChallengeKeys{
		Version: 2, Current: &nodev1.ChallengeKey{Id: "k1", Secret: make([]byte, 32)},
	}})); err != nil {
		e.T.Fatal(err)
	}
}

// Status is nil while the edge does not respond.
func (e *Edge) Status() *edgev1.GetStatusResponse {
	ctx, cancel := context.WithTimeout(context.Background(), Wait)
	defer cancel()
	response, err := e.Client.GetStatus(ctx, connect.NewRequest(&edgev1.GetStatusRequest{}))
	if err != nil {
		return nil
	}
	return response.Msg
}

// Get sends a request for a host; headers come in pairs.
func (e *Edge) Get(method, host, target string, headers ...string) (*http.Response, string) {
	e.T.Helper()
	request, err := http.NewRequest(method, "http://"+e.Addr+target, nil)
	if err != nil {
		e.T.Fatal(err)
	}
	request.Host = host
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Add(headers[i], headers[i+1])
	}
	return e.Send(request)
}

// Send sends a request and reads the whole response. It follows no redirect.
func (e *Edge) Send(request *http.Request) (*http.Response, string) {
	e.T.Helper()
	client := http.Client{Timeout: Wait, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.Do(request)
	if err != nil {
		e.T.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		e.T.Fatal(err)
	}
	return response, string(body)
}

// Expect does as Get, and checks the status, the code and what every response has.
func (e *Edge) Expect(method, host, target string, status int, code string, headers ...string) (*http.Response, string) {
	e.T.Helper()
	response, body := e.Get(method, host, target, headers...)
	if response.StatusCode != status || response.Header.Get("X-Svc-Error") != code {
		e.T.Fatalf("%s %s%s: got %d %q, want %d %q\n%s", method, host, target, response.StatusCode, response.Header.Get("X-Svc-Error"), status, code, body)
	}
	if response.Header.Get("X-Request-Id") == "" {
		e.T.Errorf("%s %s%s: no request id", method, host, target)
	}
	if response.Header.Get("Server") != "" {
		e.T.Errorf("%s %s%s: Server is %q", method, host, target, response.Header.Get("Server"))
	}
	if code != "" && response.Header.Get("Cache-Control") != "no-store" {
		e.T.Errorf("%s %s%s: an answer of the edge may be stored", method, host, target)
	}
	return response, body
}

// Raw sends bytes on a connection of its own and returns everything that comes back until it ends.
func (e *Edge) Raw(send string) string {
	e.T.Helper()
	conn, err := net.Dial("tcp", e.Addr)
	if err != nil {
		e.T.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(Wait))
	if _, err := io.WriteString(conn, send); err != nil {
		e.T.Fatal(err)
	}
	answer, err := io.ReadAll(conn)
	if err != nil && !errors.Is(err, syscall.ECONNRESET) {
		e.T.Fatalf("%v after %q", err, answer)
	}
	return string(answer)
}

// Metric reads a figure of the edge; -1 stands for one that is not there.
func (e *Edge) Metric(name string) int {
	e.T.Helper()
	client := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", e.Socket)
		},
	}, Timeout: Wait}
	response, err := client.Get("http://edge/metrics")
	if err != nil {
		e.T.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		e.T.Fatal(err)
	}
	found := regexp.MustCompile("(?m)^" + regexp.QuoteMeta(name) + " ([0-9]+)$").FindSubmatch(text)
	if found == nil {
		return -1
	}
	n, err := strconv.Atoi(string(found[1]))
	if err != nil {
		e.T.Fatal(err)
	}
	return n
}
