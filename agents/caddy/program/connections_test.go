package program_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"connectrpc.com/connect"

	configv1 "edge.svc/caddy/gen/svc/config/v1"
	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
	nodev1 "edge.svc/caddy/gen/svc/node/v1"
	"edge.svc/caddy/internal/edgetest"
	"edge.svc/caddy/program/live"
)

func TestClientOfTheProxyProtocol(t *testing.T) {
	port := live.StartOrigin(t)
	mode := edgetest.Entry("client-ip", "", &configv1.ClientIp{Mode: configv1.ClientIpMode_CLIENT_IP_MODE_PROXY_PROTOCOL})
	e := live.Start(t, map[string]any{"proxy_peers": []string{"127.0.0.0/8"}}, []*edgev1.JournalRecord{
		edgetest.Header("node-1"),
		edgetest.Config(1, []*configv1.Entry{live.OriginPolicy(), mode, edgetest.Entry("site", "site-a", edgetest.Site(port, "a.test"))}),
	}, []*edgev1.JournalRecord{
		edgetest.Header("node-1"), edgetest.Bans(1, []*nodev1.Ban{live.Ban("b1", "", "203.0.113.7/32")}),
	})
	const request = "GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n"

	// A client that sends nothing holds nobody up.
	silent, err := net.Dial("tcp", e.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()

	answer := e.Raw("PROXY TCP4 198.51.100.1 127.0.0.1 1234 80\r\n" + request)
	if !strings.HasPrefix(answer, "HTTP/1.1 200 ") || !strings.Contains(answer, "X-Real-Ip: 198.51.100.1\r\n") ||
		!strings.Contains(answer, "X-Forwarded-For: 127.0.0.1\r\n") {
		t.Errorf("%s", answer)
	}
	v2 := "\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c" + "\xcb\x00\x71\x07" + "\x7f\x00\x00\x01" + "\x04\xd2\x00\x50"
	if answer := e.Raw(v2 + request); !strings.HasPrefix(answer, "HTTP/1.1 403 ") {
		t.Errorf("a banned client behind the proxy: %s", answer)
	}
	if answer := e.Raw(request); answer != "" {
		t.Errorf("without a PROXY header: %s", answer)
	}
	if answer := e.Raw("PROXY UNKNOWN\r\n" + request); !strings.Contains(answer, "X-Real-Ip: 127.0.0.1\r\n") {
		t.Errorf("a proxy's own request: %s", answer)
	}
	e.Until("the silent connection is the only one", func() bool { return e.Status().GetActiveConnections() == 1 })
}

func TestDamagedJournal(t *testing.T) {
	port := live.StartOrigin(t)
	e := live.Start(t, nil, []*edgev1.JournalRecord{
		edgetest.Header("node-1"),
		edgetest.Config(1, []*configv1.Entry{live.OriginPolicy(), edgetest.Entry("site", "site-a", edgetest.Site(port, "a.test"))}),
	}, nil)
	file, err := os.OpenFile(filepath.Join(e.Dir, "config.journal"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	torn := edgetest.Encode(edgetest.Config(2, nil, edgetest.Key("site", "site-a")))
	if _, err := file.Write(torn[:len(torn)-3]); err != nil {
		t.Fatal(err)
	}
	file.Close()
	response, err := e.Client.ReloadConfig(context.Background(), connect.NewRequest(&edgev1.ReloadConfigRequest{}))
	if err != nil || response.Msg.GetPosition().GetRevision() != 1 {
		t.Fatalf("%v %v", response, err)
	}
	if warnings := e.Status().GetWarnings(); len(warnings) != 1 || !strings.Contains(warnings[0], "torn") {
		t.Errorf("%v", warnings)
	}
	e.Expect("GET", "a.test", "/", 200, "")
}

// In direct mode a global ban ends the connections of the banned peer, idle ones too, and nobody else's.
func TestGlobalBanResetsTheConnectionsOfThePeer(t *testing.T) {
	e := live.Start(t, nil, []*edgev1.JournalRecord{
		edgetest.Header("node-1"),
		edgetest.Config(1, []*configv1.Entry{live.OriginPolicy(), edgetest.Entry("site", "site-a", edgetest.Site(live.StartOrigin(t), "a.test"))}),
	}, nil)
	idle := func(from string) (net.Conn, *bufio.Reader) {
		dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: live.Wait}
		conn, err := dialer.Dial("tcp", e.Addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		_ = conn.SetDeadline(time.Now().Add(live.Wait))
		reader := bufio.NewReader(conn)
		ask(t, conn, reader)
		return conn, reader
	}
	banned, _ := idle("127.0.0.2")
	other, reader := idle("127.0.0.3")
	if _, err := e.Client.ApplyBans(t.Context(), connect.NewRequest(&edgev1.ApplyBansRequest{
		Base: &nodev1.BanPosition{}, Target: &nodev1.BanPosition{Epoch: 1, Sequence: 1}, Upserts: []*nodev1.Ban{live.Ban("b1", "", "127.0.0.2/32")},
	})); err != nil {
		t.Fatal(err)
	}
	if _, err := banned.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the connection of the banned peer: %v", err)
	}
	ask(t, other, reader)
}

// ask sends a request on an open connection and reads its answer.
func ask(t *testing.T, conn net.Conn, reader *bufio.Reader) {
	t.Helper()
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(reader, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil || response.StatusCode != 200 {
		t.Fatalf("%d %v", response.StatusCode, err)
	}
}
