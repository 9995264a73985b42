package program_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	configv1 "edge.svc/caddy/gen/svc/config/v1"
	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
	nodev1 "edge.svc/caddy/gen/svc/node/v1"
	"edge.svc/caddy/internal/edgetest"
	"edge.svc/caddy/program/live"
)

func TestAgentDrivesTheEdge(t *testing.T) {
	port := live.StartOrigin(t)
	e := live.Start(t, nil, []*edgev1.JournalRecord{
		edgetest.Header("node-1"),
		edgetest.Config(1, []*configv1.Entry{live.OriginPolicy(), live.HeaderMode(), edgetest.Entry("site", "site-a", edgetest.Site(port, "a.test")), live.Certificate().HTTPS("site-a")}),
	}, nil)
	ctx, cancel := context.WithTimeout(context.Background(), 2*live.Wait)
	defer cancel()
	apply := func(base, target uint64, upserts []*configv1.Entry, deletes ...*configv1.EntryKey) (*edgev1.ApplyConfigResponse, error) {
		response, err := e.Client.ApplyConfig(ctx, connect.NewRequest(&edgev1.ApplyConfigRequest{
			Base: edgetest.Position(base), Target: edgetest.Position(target), Upserts: upserts, Deletes: deletes,
		}))
		if err != nil {
			return nil, err
		}
		return response.Msg, nil
	}

	info, err := os.Stat(e.Socket)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("socket: %v %v", info.Mode(), err)
	}
	if info, err = os.Stat(filepath.Dir(e.Socket)); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("folder of the socket: %v %v", info.Mode(), err)
	}

	e.Expect("GET", "b.test", "/", 404, "unknown-host")
	if _, err := apply(1, 2, []*configv1.Entry{edgetest.Entry("site", "site-b", edgetest.Site(port, "b.test"))}); err != nil {
		t.Fatal(err)
	}
	e.Expect("GET", "b.test", "/", 200, "")

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
	e.Expect("GET", "b.test", "/", 200, "")
	e.Expect("GET", "c.test", "/", 200, "")
	if _, err := apply(3, 4, nil, edgetest.Key("site", "site-b"), edgetest.Key("layer4", "x")); err != nil {
		t.Fatal(err)
	}
	e.Expect("GET", "b.test", "/", 404, "unknown-host")
	if failed := e.Status().GetFailed(); len(failed) != 0 {
		t.Errorf("%v", failed)
	}

	drained, err := e.Client.DrainStats(ctx, connect.NewRequest(&edgev1.DrainStatsRequest{}))
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
		conn, err := net.Dial("tcp", e.Addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		_ = conn.SetDeadline(time.Now().Add(live.Wait))
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
	if _, err := e.Client.ApplyBans(ctx, connect.NewRequest(&edgev1.ApplyBansRequest{
		Base: &nodev1.BanPosition{}, Target: &nodev1.BanPosition{Epoch: 1, Sequence: 1}, Upserts: []*nodev1.Ban{live.Ban("b1", "site-a", "203.0.113.7/32")},
	})); err != nil {
		t.Fatal(err)
	}
	e.Expect("GET", "a.test", "/", 403, "ip-banned", "X-Demo-Client-Ip", "203.0.113.7")
	if _, err := io.ReadAll(banned); err == nil {
		t.Error("the stream of the banned client ended as if it were complete")
	} else if os.IsTimeout(err) {
		t.Error("the stream of the banned client goes on")
	}
	_ = other.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
	if _, err := other.Read(make([]byte, 64)); err != nil && !os.IsTimeout(err) {
		t.Errorf("the stream of another client ended: %v", err)
	}
	if _, err := e.Client.ApplyBans(ctx, connect.NewRequest(&edgev1.ApplyBansRequest{
		Base: &nodev1.BanPosition{}, Target: &nodev1.BanPosition{Epoch: 1, Sequence: 2},
	})); connect.CodeOf(err) != connect.CodeFailedPrecondition {
		t.Errorf("a ban change from another base: %v", err)
	}

	// Of two streams on one HTTP/2 connection only that of the banned client ends.
	transport := live.OverTLS(t, "a.test")
	stream := func(clientAddress string) *http.Response {
		request, err := http.NewRequestWithContext(ctx, "GET", "https://"+e.TLSAddr+"/stream", nil)
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
	connections := e.Status().GetActiveConnections()
	ending, going := stream("203.0.113.9"), stream("203.0.113.8")
	if n := e.Status().GetActiveConnections(); n != connections+1 {
		t.Errorf("%d connections for two streams", n-connections)
	}
	if _, err := e.Client.ApplyBans(ctx, connect.NewRequest(&edgev1.ApplyBansRequest{
		Base: &nodev1.BanPosition{Epoch: 1, Sequence: 1}, Target: &nodev1.BanPosition{Epoch: 1, Sequence: 2},
		Upserts: []*nodev1.Ban{live.Ban("b2", "", "203.0.113.9/32")},
	})); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(ending.Body); err == nil || ctx.Err() != nil {
		t.Errorf("the stream of the banned client: %v", err)
	}
	another := stream("203.0.113.8")
	if n := e.Status().GetActiveConnections(); n != connections+1 {
		t.Errorf("the connection of another client was closed: %d", n-connections)
	}
	another.Body.Close()
	going.Body.Close()

	// The journal wins over what was pushed.
	edgetest.WriteJournal(t, filepath.Join(e.Dir, "config.journal"), edgetest.Header("node-1"),
		edgetest.Config(9, []*configv1.Entry{live.OriginPolicy(), edgetest.Entry("site", "site-d", edgetest.Site(port, "d.test"))}))
	reloaded, err := e.Client.ReloadConfig(ctx, connect.NewRequest(&edgev1.ReloadConfigRequest{}))
	if err != nil || reloaded.Msg.GetPosition().GetRevision() != 9 {
		t.Fatalf("%v %v", reloaded, err)
	}
	e.Expect("GET", "a.test", "/", 404, "unknown-host")
	e.Expect("GET", "d.test", "/", 200, "")

	// A host of nobody gets no answer at all where the cluster wants that.
	if _, err := apply(9, 10, []*configv1.Entry{edgetest.Entry("unknown-hosts", "", &configv1.UnknownHosts{
		UnknownHost: configv1.UnknownHostAction_UNKNOWN_HOST_ACTION_CLOSE,
	})}); err != nil {
		t.Fatal(err)
	}
	if answer := e.Raw("GET / HTTP/1.1\r\nHost: nobody.test\r\n\r\n"); answer != "" {
		t.Errorf("%s", answer)
	}
}
