package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"connectrpc.com/connect"

	configv1 "edge.svc/caddy/gen/svc/config/v1"
	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
	"edge.svc/caddy/gen/svc/edge/v1/edgev1connect"
	nodev1 "edge.svc/caddy/gen/svc/node/v1"
	"edge.svc/caddy/internal/edgetest"
)

const runMain = "SVC_CADDY_TEST_RUN"

// The test binary is the program itself when it is started with the variable set.
func TestMain(m *testing.M) {
	if os.Getenv(runMain) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// edge is a running svc-caddy.
type edge struct {
	t      *testing.T
	addr   string
	dir    string
	socket string
	cmd    *exec.Cmd
	stderr bytes.Buffer
	client edgev1connect.EdgeServiceClient
}

const wait = 20 * time.Second

func startEdge(t *testing.T, listeners map[string]any, config, bans []*edgev1.JournalRecord) *edge {
	t.Helper()
	e := &edge{t: t, dir: t.TempDir()}
	e.socket = filepath.Join(e.dir, "run", "edge.sock")
	if config != nil {
		edgetest.WriteJournal(t, filepath.Join(e.dir, "config.journal"), config...)
	}
	if bans != nil {
		edgetest.WriteJournal(t, filepath.Join(e.dir, "bans.journal"), bans...)
	}
	e.addr = freeAddress(t)
	wrapper := map[string]any{"wrapper": "svc"}
	for key, value := range listeners {
		wrapper[key] = value
	}
	rendered, err := json.Marshal(map[string]any{
		"admin":   map[string]any{"disabled": true, "config": map[string]any{"persist": false}},
		"logging": map[string]any{"logs": map[string]any{"default": map[string]any{"writer": map[string]any{"output": "stderr"}}}},
		"apps": map[string]any{
			"svc": map[string]any{"state_dir": e.dir, "socket": e.socket, "ban_capacity": 1000, "ban_max_mib": 4},
			"http": map[string]any{
				"grace_period": "2s",
				"servers": map[string]any{"edge": map[string]any{
					"listen": []string{e.addr}, "protocols": []string{"h1", "h2"},
					"automatic_https":     map[string]any{"disable": true},
					"listener_wrappers":   []any{wrapper},
					"read_header_timeout": "10s", "read_idle_timeout": -1, "write_idle_timeout": "60s",
					"idle_timeout": "75s", "max_header_bytes": 32768,
					"routes": []any{map[string]any{"handle": []any{map[string]any{"handler": "svc_edge"}}}},
					"errors": map[string]any{"routes": []any{map[string]any{"handle": []any{map[string]any{"handler": "svc_error"}}}}},
				}},
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

// origin echoes what it gets, in the form "header: value" a line, or streams without end under /stream.
func startOrigin(t *testing.T) (port uint32) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Server", "origin")
		w.Header().Set("X-Svc-Error", "forged")
		if r.URL.Path == "/stream" {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "data: first\n\n")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		fmt.Fprintf(w, "Host: %s\nTarget: %s\nBody: %d\n", r.Host, r.RequestURI, len(body))
		_ = r.Header.Write(w)
	}))
	t.Cleanup(server.Close)
	u, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(u.Port())
	if err != nil {
		t.Fatal(err)
	}
	return uint32(n)
}

func originPolicy() *configv1.Entry {
	return edgetest.Entry("origin-policy", "", &configv1.OriginPolicy{AllowedCidrs: []string{"127.0.0.0/8"}})
}

func headerMode() *configv1.Entry {
	return edgetest.Entry("client-ip", "", &configv1.ClientIp{
		Mode: configv1.ClientIpMode_CLIENT_IP_MODE_HEADER, Header: "x-demo-client-ip", TrustedCidrs: []string{"127.0.0.0/8"},
	})
}

func ban(id, siteID, cidr string) *nodev1.Ban {
	return &nodev1.Ban{
		Id: id, SiteId: siteID, Cidr: cidr, Source: nodev1.BanSource_BAN_SOURCE_MANUAL,
		ExpiresAtMs: time.Now().Add(time.Hour).UnixMilli(), CreatedAtMs: time.Now().UnixMilli(), Reason: "abuse",
	}
}

func TestEdgeServesFromItsJournals(t *testing.T) {
	port := startOrigin(t)
	disabled := edgetest.Site(port, "off.test")
	disabled.Disabled = true
	limited := edgetest.Site(port, "limited.test")
	limited.RequestBodyLimit = 10
	noSocket := edgetest.Site(port, "nosocket.test")
	noSocket.Pool.Websocket = false
	e := startEdge(t, nil, []*edgev1.JournalRecord{
		edgetest.Header("node-1"),
		edgetest.Config(1, []*configv1.Entry{
			originPolicy(), headerMode(),
			edgetest.Entry("site", "site-a", edgetest.Site(port, "a.test", "*.a.test")),
			edgetest.Entry("site", "site-off", disabled),
			edgetest.Entry("site", "site-limited", limited),
			edgetest.Entry("site", "site-nosocket", noSocket),
			edgetest.Entry("ip-list", "bad", &configv1.IpList{ListKind: configv1.IpListKind_IP_LIST_KIND_BLOCK}),
			edgetest.Entry("ip-list-chunk", "bad/0", &configv1.IpListChunk{ListId: "bad", Cidrs: []string{"198.51.100.0/24"}}),
			edgetest.Entry("ip-list", "good", &configv1.IpList{ListKind: configv1.IpListKind_IP_LIST_KIND_ALLOW}),
			edgetest.Entry("ip-list-chunk", "good/0", &configv1.IpListChunk{ListId: "good", Cidrs: []string{"198.51.100.5/32", "203.0.113.9/32"}}),
		}),
	}, []*edgev1.JournalRecord{
		edgetest.Header("node-1"),
		edgetest.Bans(1, []*nodev1.Ban{ban("b1", "", "203.0.113.0/24"), ban("b2", "site-a", "192.0.2.1/32"), ban("b3", "", "127.0.0.1/32")}),
	})

	t.Run("the status names what was read", func(t *testing.T) {
		status := e.status()
		if status.GetSites() != 4 || status.GetConfig().GetRevision() != 1 || status.GetBans().GetEntries() != 3 ||
			len(status.GetWarnings()) != 0 || len(status.GetFailed()) != 0 {
			t.Fatalf("%v", status)
		}
	})
	t.Run("a site answers through its origin with clean headers", func(t *testing.T) {
		_, body := e.expect("GET", "A.test:80", "/x%2fy;z?a=%zz;b", 200, "",
			"X-Svc-Site", "forged", "X-Forwarded-For", "9.9.9.9", "X-Demo-Client-Ip", "9.8.7.6", "CDN-Loop", "other", "Connection", "CDN-Loop")
		for _, want := range []string{
			"Host: a.test\n", "Target: /x%2fy;z?a=%zz;b\n", "X-Real-Ip: 9.8.7.6\r\n", "X-Forwarded-For: 9.9.9.9, 127.0.0.1\r\n",
			"X-Forwarded-Proto: http\r\n", "Cdn-Loop: other, svc-", "X-Request-Id: ",
		} {
			if !strings.Contains(body, want) {
				t.Errorf("the origin did not get %q:\n%s", want, body)
			}
		}
		if strings.Contains(body, "X-Svc-") {
			t.Errorf("an internal header passed:\n%s", body)
		}
	})
	t.Run("a well-formed request id is kept, another replaced", func(t *testing.T) {
		response, _ := e.expect("GET", "a.test", "/", 200, "", "X-Request-Id", "client-id.1:2_3")
		if got := response.Header.Get("X-Request-Id"); got != "client-id.1:2_3" {
			t.Errorf("got %q", got)
		}
		response, _ = e.expect("GET", "a.test", "/", 200, "", "X-Request-Id", "<script>")
		if got := response.Header.Get("X-Request-Id"); len(got) != 32 {
			t.Errorf("got %q", got)
		}
	})
	t.Run("every stage has its answer", func(t *testing.T) {
		loop := "svc-" + nodeToken("node-1")
		for _, c := range []struct {
			method, host, target string
			status               int
			code                 string
			headers              []string
		}{
			{"GET", "sub.a.test", "/", 200, "", nil},
			{"GET", "x.sub.a.test", "/", 404, "unknown-host", nil},
			{"GET", "unknown.test", "/.svc/x", 404, "unknown-host", nil},
			{"GET", "127.0.0.1", "/", 404, "unknown-host", nil},
			{"GET", "off.test", "/", 503, "site-disabled", nil},
			{"GET", "a.test", "/", 508, "loop-detected", []string{"CDN-Loop", "x, " + strings.ToUpper(loop) + ";v=1"}},
			{"GET", "a.test", "/", 403, "ip-banned", []string{"X-Demo-Client-Ip", "203.0.113.7"}},
			{"GET", "a.test", "/.svc/x", 403, "ip-banned", []string{"X-Demo-Client-Ip", "::ffff:203.0.113.7"}},
			{"GET", "a.test", "/", 200, "", []string{"X-Demo-Client-Ip", "203.0.113.9"}},
			{"GET", "a.test", "/", 403, "ip-banned", []string{"X-Demo-Client-Ip", "192.0.2.1"}},
			{"GET", "limited.test", "/", 200, "", []string{"X-Demo-Client-Ip", "192.0.2.1"}},
			{"GET", "a.test", "/", 200, "", nil},
			{"GET", "a.test", "/.svc/challenge/none", 404, "not-found", nil},
			{"GET", "a.test", "/x/%2e%2e/%2Esvc/y", 404, "not-found", nil},
			{"GET", "a.test", "/.svc/x", 404, "not-found", []string{"X-Demo-Client-Ip", "198.51.100.6"}},
			{"GET", "a.test", "/", 403, "policy-denied", []string{"X-Demo-Client-Ip", "198.51.100.6"}},
			{"GET", "a.test", "/", 200, "", []string{"X-Demo-Client-Ip", "198.51.100.5"}},
			{"TRACE", "a.test", "/", 405, "method-not-allowed", nil},
			{"HEAD", "unknown.test", "/", 404, "unknown-host", nil},
		} {
			e.expect(c.method, c.host, c.target, c.status, c.code, c.headers...)
		}
	})
	t.Run("the answer to a banned client is small and ends the connection", func(t *testing.T) {
		answer := e.raw("GET / HTTP/1.1\r\nHost: a.test\r\nX-Demo-Client-Ip: 203.0.113.7\r\n\r\n")
		if len(answer) > 1024 || !strings.Contains(answer, "Connection: close\r\n") {
			t.Errorf("%d bytes:\n%s", len(answer), answer)
		}
	})
	t.Run("health answers on any host", func(t *testing.T) {
		response, body := e.get("GET", "whatever.test", "/.svc/health")
		if response.StatusCode != 200 || body != "ok" || response.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%d %q", response.StatusCode, body)
		}
		e.expect("POST", "a.test", "/.svc/health", 404, "not-found")
	})
	t.Run("requests about the server are refused", func(t *testing.T) {
		for _, line := range []string{"OPTIONS * HTTP/1.1", "CONNECT a.test:443 HTTP/1.1"} {
			answer := e.raw(line + "\r\nHost: a.test\r\nConnection: close\r\n\r\n")
			if !strings.HasPrefix(answer, "HTTP/1.1 405 ") || !strings.Contains(answer, "X-Svc-Error: method-not-allowed\r\n") {
				t.Errorf("%s: %s", line, answer)
			}
		}
	})
	t.Run("what Caddy refuses has the form of every other answer", func(t *testing.T) {
		answer := e.raw("GET / HTTP/1.1\r\nHost: a..test/x\r\nConnection: close\r\n\r\n")
		if strings.Contains(answer, "Caddy") {
			t.Errorf("%s", answer)
		}
		answer = e.raw("GET / HTTP/1.1\r\nHost: ...\r\nConnection: close\r\n\r\n")
		if !strings.HasPrefix(answer, "HTTP/1.1 400 ") || !strings.Contains(answer, "X-Svc-Error: bad-request\r\n") {
			t.Errorf("%s", answer)
		}
	})
	t.Run("a body over the limit is refused, announced or counted", func(t *testing.T) {
		for name, body := range map[string]io.Reader{"announced": strings.NewReader("12345678901"), "counted": io.MultiReader(strings.NewReader("12345678901"))} {
			request, err := http.NewRequest("POST", "http://"+e.addr+"/", body)
			if err != nil {
				t.Fatal(err)
			}
			request.Host = "limited.test"
			if response, _ := e.send(request); response.StatusCode != 413 || response.Header.Get("X-Svc-Error") != "body-too-large" {
				t.Errorf("%s: %d %q", name, response.StatusCode, response.Header.Get("X-Svc-Error"))
			}
		}
	})
	t.Run("an upgrade to WebSocket is refused where the site has none, any other is taken out", func(t *testing.T) {
		e.expect("GET", "nosocket.test", "/", 403, "websocket-disabled", "Connection", "Upgrade", "Upgrade", "websocket",
			"Sec-WebSocket-Version", "13", "Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")
		_, body := e.expect("GET", "nosocket.test", "/", 200, "", "Connection", "Upgrade, HTTP2-Settings", "Upgrade", "h2c", "HTTP2-Settings", "AAMAAABkAAQAoAAAAAIAAAAA")
		if strings.Contains(body, "Upgrade") || strings.Contains(body, "Http2") {
			t.Errorf("%s", body)
		}
	})
}

func TestAgentDrivesTheEdge(t *testing.T) {
	port := startOrigin(t)
	e := startEdge(t, nil, []*edgev1.JournalRecord{
		edgetest.Header("node-1"),
		edgetest.Config(1, []*configv1.Entry{originPolicy(), headerMode(), edgetest.Entry("site", "site-a", edgetest.Site(port, "a.test"))}),
	}, nil)
	ctx, cancel := context.WithTimeout(context.Background(), 2*wait)
	defer cancel()
	apply := func(base, target uint64, upserts []*configv1.Entry, deletes ...*configv1.EntryKey) (*edgev1.ApplyConfigResponse, error) {
		response, err := e.client.ApplyConfig(ctx, connect.NewRequest(&edgev1.ApplyConfigRequest{
			Base: edgetest.Position(base), Target: edgetest.Position(target), Upserts: upserts, Deletes: deletes,
		}))
		if err != nil {
			return nil, err
		}
		return response.Msg, nil
	}

	info, err := os.Stat(e.socket)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("socket: %v %v", info.Mode(), err)
	}
	if info, err = os.Stat(filepath.Dir(e.socket)); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("folder of the socket: %v %v", info.Mode(), err)
	}

	e.expect("GET", "b.test", "/", 404, "unknown-host")
	if _, err := apply(1, 2, []*configv1.Entry{edgetest.Entry("site", "site-b", edgetest.Site(port, "b.test"))}); err != nil {
		t.Fatal(err)
	}
	e.expect("GET", "b.test", "/", 200, "")

	if _, err := apply(1, 3, nil); connect.CodeOf(err) != connect.CodeFailedPrecondition {
		t.Errorf("a change from another base: %v", err)
	}

	broken := edgetest.Site(port, "b.test")
	broken.Origins[0].Port = 0
	response, err := apply(2, 3, []*configv1.Entry{
		edgetest.Entry("site", "site-b", broken),
		{Kind: "layer4", Id: "x"},
		edgetest.Entry("site", "site-c", edgetest.Site(port, "c.test")),
	})
	if err != nil || len(response.GetFailed()) != 2 || response.GetPosition().GetRevision() != 3 {
		t.Fatalf("%v %v", response, err)
	}
	if f := response.GetFailed()[0]; f.GetKind() != "layer4" || !strings.Contains(f.GetReason(), "capability") || len(f.GetRunningHash()) != 0 {
		t.Errorf("%v", f)
	}
	if f := response.GetFailed()[1]; f.GetId() != "site-b" || len(f.GetRunningHash()) != 32 {
		t.Errorf("%v", f)
	}
	e.expect("GET", "b.test", "/", 200, "")
	e.expect("GET", "c.test", "/", 200, "")
	if _, err := apply(3, 4, nil, edgetest.Key("site", "site-b"), edgetest.Key("layer4", "x")); err != nil {
		t.Fatal(err)
	}
	e.expect("GET", "b.test", "/", 404, "unknown-host")
	if failed := e.status().GetFailed(); len(failed) != 0 {
		t.Errorf("%v", failed)
	}

	drained, err := e.client.DrainStats(ctx, connect.NewRequest(&edgev1.DrainStatsRequest{}))
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]uint64{}
	for _, minute := range drained.Msg.GetMinutes() {
		counts[minute.GetSiteId()] += minute.GetRequests()
	}
	if counts["site-b"] != 2 || counts["site-c"] != 1 {
		t.Errorf("%v", counts)
	}

	// A stream of a client that gets banned ends; that of another goes on.
	open := func(client string) (*bufio.Reader, net.Conn) {
		conn, err := net.Dial("tcp", e.addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		_ = conn.SetDeadline(time.Now().Add(wait))
		fmt.Fprintf(conn, "GET /stream HTTP/1.1\r\nHost: a.test\r\nX-Demo-Client-Ip: %s\r\n\r\n", client)
		reader := bufio.NewReader(conn)
		for {
			line, err := reader.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasPrefix(line, "data: first") {
				return reader, conn
			}
		}
	}
	banned, _ := open("203.0.113.7")
	_, other := open("203.0.113.8")
	if _, err := e.client.ApplyBans(ctx, connect.NewRequest(&edgev1.ApplyBansRequest{
		Base: &nodev1.BanPosition{}, Target: &nodev1.BanPosition{Epoch: 1, Sequence: 1}, Upserts: []*nodev1.Ban{ban("b1", "site-a", "203.0.113.7/32")},
	})); err != nil {
		t.Fatal(err)
	}
	e.expect("GET", "a.test", "/", 403, "ip-banned", "X-Demo-Client-Ip", "203.0.113.7")
	if _, err := io.ReadAll(banned); err == nil {
		t.Error("the stream of the banned client ended as if it were complete")
	} else if os.IsTimeout(err) {
		t.Error("the stream of the banned client goes on")
	}
	_ = other.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
	if _, err := other.Read(make([]byte, 64)); err != nil && !os.IsTimeout(err) {
		t.Errorf("the stream of another client ended: %v", err)
	}
	if _, err := e.client.ApplyBans(ctx, connect.NewRequest(&edgev1.ApplyBansRequest{
		Base: &nodev1.BanPosition{}, Target: &nodev1.BanPosition{Epoch: 1, Sequence: 2},
	})); connect.CodeOf(err) != connect.CodeFailedPrecondition {
		t.Errorf("a ban change from another base: %v", err)
	}

	// Of two streams on one HTTP/2 connection only that of the banned client ends.
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: protocols}
	defer transport.CloseIdleConnections()
	stream := func(clientAddress string) *http.Response {
		request, err := http.NewRequestWithContext(ctx, "GET", "http://"+e.addr+"/stream", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Host = "a.test"
		request.Header.Set("X-Demo-Client-Ip", clientAddress)
		response, err := transport.RoundTrip(request)
		if err != nil || response.ProtoMajor != 2 || response.StatusCode != 200 {
			t.Fatalf("%v %v", response, err)
		}
		t.Cleanup(func() { response.Body.Close() })
		return response
	}
	connections := e.status().GetActiveConnections()
	ending, going := stream("203.0.113.9"), stream("203.0.113.8")
	if n := e.status().GetActiveConnections(); n != connections+1 {
		t.Errorf("%d connections for two streams", n-connections)
	}
	if _, err := e.client.ApplyBans(ctx, connect.NewRequest(&edgev1.ApplyBansRequest{
		Base: &nodev1.BanPosition{Epoch: 1, Sequence: 1}, Target: &nodev1.BanPosition{Epoch: 1, Sequence: 2},
		Upserts: []*nodev1.Ban{ban("b2", "", "203.0.113.9/32")},
	})); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(ending.Body); err == nil || ctx.Err() != nil {
		t.Errorf("the stream of the banned client: %v", err)
	}
	another := stream("203.0.113.8")
	if n := e.status().GetActiveConnections(); n != connections+1 {
		t.Errorf("the connection of another client was closed: %d", n-connections)
	}
	another.Body.Close()
	going.Body.Close()

	// The journal wins over what was pushed.
	edgetest.WriteJournal(t, filepath.Join(e.dir, "config.journal"), edgetest.Header("node-1"),
		edgetest.Config(9, []*configv1.Entry{originPolicy(), edgetest.Entry("site", "site-d", edgetest.Site(port, "d.test"))}))
	reloaded, err := e.client.ReloadConfig(ctx, connect.NewRequest(&edgev1.ReloadConfigRequest{}))
	if err != nil || reloaded.Msg.GetPosition().GetRevision() != 9 {
		t.Fatalf("%v %v", reloaded, err)
	}
	e.expect("GET", "a.test", "/", 404, "unknown-host")
	e.expect("GET", "d.test", "/", 200, "")
}

func TestClientOfTheProxyProtocol(t *testing.T) {
	port := startOrigin(t)
	mode := edgetest.Entry("client-ip", "", &configv1.ClientIp{Mode: configv1.ClientIpMode_CLIENT_IP_MODE_PROXY_PROTOCOL})
	e := startEdge(t, map[string]any{"proxy_peers": []string{"127.0.0.0/8"}}, []*edgev1.JournalRecord{
		edgetest.Header("node-1"),
		edgetest.Config(1, []*configv1.Entry{originPolicy(), mode, edgetest.Entry("site", "site-a", edgetest.Site(port, "a.test"))}),
	}, []*edgev1.JournalRecord{
		edgetest.Header("node-1"), edgetest.Bans(1, []*nodev1.Ban{ban("b1", "", "203.0.113.7/32")}),
	})
	const request = "GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n"

	// A client that sends nothing holds nobody up.
	silent, err := net.Dial("tcp", e.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()

	answer := e.raw("PROXY TCP4 198.51.100.1 127.0.0.1 1234 80\r\n" + request)
	if !strings.HasPrefix(answer, "HTTP/1.1 200 ") || !strings.Contains(answer, "X-Real-Ip: 198.51.100.1\r\n") ||
		!strings.Contains(answer, "X-Forwarded-For: 127.0.0.1\r\n") {
		t.Errorf("%s", answer)
	}
	v2 := "\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c" + "\xcb\x00\x71\x07" + "\x7f\x00\x00\x01" + "\x04\xd2\x00\x50"
	if answer := e.raw(v2 + request); !strings.HasPrefix(answer, "HTTP/1.1 403 ") {
		t.Errorf("a banned client behind the proxy: %s", answer)
	}
	if answer := e.raw(request); answer != "" {
		t.Errorf("without a PROXY header: %s", answer)
	}
	if answer := e.raw("PROXY UNKNOWN\r\n" + request); !strings.Contains(answer, "X-Real-Ip: 127.0.0.1\r\n") {
		t.Errorf("a proxy's own request: %s", answer)
	}
	e.until("the silent connection is the only one", func() bool { return e.status().GetActiveConnections() == 1 })
}

func TestDamagedJournal(t *testing.T) {
	port := startOrigin(t)
	e := startEdge(t, nil, []*edgev1.JournalRecord{
		edgetest.Header("node-1"),
		edgetest.Config(1, []*configv1.Entry{originPolicy(), edgetest.Entry("site", "site-a", edgetest.Site(port, "a.test"))}),
	}, nil)
	file, err := os.OpenFile(filepath.Join(e.dir, "config.journal"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	torn := edgetest.Encode(edgetest.Config(2, nil, edgetest.Key("site", "site-a")))
	if _, err := file.Write(torn[:len(torn)-3]); err != nil {
		t.Fatal(err)
	}
	file.Close()
	response, err := e.client.ReloadConfig(context.Background(), connect.NewRequest(&edgev1.ReloadConfigRequest{}))
	if err != nil || response.Msg.GetPosition().GetRevision() != 1 {
		t.Fatalf("%v %v", response, err)
	}
	if warnings := e.status().GetWarnings(); len(warnings) != 1 || !strings.Contains(warnings[0], "torn") {
		t.Errorf("%v", warnings)
	}
	e.expect("GET", "a.test", "/", 200, "")
}

func nodeToken(nodeID string) string {
	sum := sha256.Sum256([]byte(nodeID))
	return hex.EncodeToString(sum[:8])
}
