package api

import (
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"connectrpc.com/connect"

	"edge.svc/caddy/core"
	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
	"edge.svc/caddy/gen/svc/edge/v1/edgev1connect"
	"edge.svc/caddy/internal/edgetest"
)

func TestSocketIsPrivateAndReplacesOnlyAStaleOne(t *testing.T) {
	// A path of its own: the temporary folder of a test can be longer than a socket's path may be.
	dir, err := os.MkdirTemp("", "svc")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	run := filepath.Join(dir, "run")
	if err := os.Mkdir(run, 0o755); err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(run, "edge.sock")
	ln, err := Listen(socket)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]os.FileMode{socket: 0o600, run: 0o700} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v %v", path, info.Mode(), err)
		}
	}
	if _, err := Listen(socket); err == nil {
		t.Fatal("a socket in use was replaced")
	}
	// What a killed process leaves: the file stays, nobody listens.
	ln.(*net.UnixListener).SetUnlinkOnClose(false)
	ln.Close()
	if ln, err = Listen(socket); err != nil {
		t.Fatalf("a stale socket was not replaced: %v", err)
	}
	ln.Close()
	if err := os.WriteFile(socket, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(socket); err == nil {
		t.Error("a file that is no socket was replaced")
	}
}

func serve(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "svc")
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "run", "edge.sock")
	ln, err := Listen(socket)
	if err != nil {
		t.Fatal(err)
	}
	server := NewServer(core.New(core.Options{StateDir: dir, Values: map[string]any{"ban_capacity": 10, "ban_max_mib": 1}}))
	go func() { _ = server.Serve(ln) }()
	t.Cleanup(func() { server.Close(); os.RemoveAll(dir) })
	return socket
}

func client(socket string, http2 bool) edgev1connect.EdgeServiceClient {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(!http2)
	protocols.SetUnencryptedHTTP2(http2)
	return edgev1connect.NewEdgeServiceClient(&http.Client{Transport: &http.Transport{
		Protocols: protocols,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		},
	}}, "http://edge")
}

func TestServiceSpeaksBothVersionsOfHTTP(t *testing.T) {
	socket := serve(t)
	for _, http2 := range []bool{false, true} {
		status, err := client(socket, http2).GetStatus(t.Context(), connect.NewRequest(&edgev1.GetStatusRequest{}))
		if err != nil || status.Msg.GetInstanceId() == "" || status.Msg.GetBans().GetCapacity() != 10 {
			t.Errorf("http2 %v: %v %v", http2, status, err)
		}
	}
}

func TestChangesThatCannotBeApplied(t *testing.T) {
	c := client(serve(t), false)
	if _, err := c.ApplyConfig(t.Context(), connect.NewRequest(&edgev1.ApplyConfigRequest{})); connect.CodeOf(err) != connect.CodeInvalidArgument {
		t.Errorf("no target: %v", err)
	}
	if _, err := c.ApplyBans(t.Context(), connect.NewRequest(&edgev1.ApplyBansRequest{})); connect.CodeOf(err) != connect.CodeInvalidArgument {
		t.Errorf("no target: %v", err)
	}
	_, err := c.ApplyConfig(t.Context(), connect.NewRequest(&edgev1.ApplyConfigRequest{Base: edgetest.Position(3), Target: edgetest.Position(4)}))
	if connect.CodeOf(err) != connect.CodeFailedPrecondition {
		t.Errorf("another base: %v", err)
	}
}

func TestReloadOfAnUnreadableJournalIsAPreconditionWithItsName(t *testing.T) {
	socket := serve(t)
	c := client(socket, false)
	calls := map[string]func() error{
		"config": func() error {
			_, err := c.ReloadConfig(t.Context(), connect.NewRequest(&edgev1.ReloadConfigRequest{}))
			return err
		},
		"bans": func() error {
			_, err := c.ReloadBans(t.Context(), connect.NewRequest(&edgev1.ReloadBansRequest{}))
			return err
		},
	}
	for name, call := range calls {
		// The node has no journals yet.
		if err := call(); connect.CodeOf(err) != connect.CodeFailedPrecondition || !strings.Contains(err.Error(), "journal_unreadable: ") {
			t.Errorf("%s: %v", name, err)
		}
		edgetest.WriteJournal(t, filepath.Join(filepath.Dir(socket), "..", name+".journal"), edgetest.Header("node"))
		if err := call(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
