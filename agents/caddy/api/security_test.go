package api

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"connectrpc.com/connect"

	"edge.svc/caddy/core"
	"edge.svc/caddy/features/bans"
	"edge.svc/caddy/features/cc"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
	nodev1 "edge.svc/caddy/gen/svc/node/v1"
	"edge.svc/caddy/internal/edgetest"
)

// protectedCore serves a site that bans above 1 request a second.
func protectedCore(t *testing.T) *core.Core {
	t.Helper()
	c := core.New(core.Options{StateDir: t.TempDir(), Values: map[string]any{"ban_capacity": 100, "ban_max_mib": 1}})
	_, failed, err := c.Apply(c.Status().Position, edgetest.Position(1), []*configv1.Entry{
		edgetest.Entry("site", "a", edgetest.Site(0, "a.com")),
		edgetest.Entry("protection", "a", &configv1.SiteProtection{Cc: &configv1.CcPolicy{Thresholds: &configv1.CcThresholds{
			MaxLevel: 4, WindowSeconds: 5, IpQps: 1, IpBanSeconds: 60, EscalateAfterSeconds: 5, CooldownSeconds: 60,
		}}}),
	}, nil)
	if err != nil || len(failed) > 0 {
		t.Fatal(failed, err)
	}
	return c
}

func serveCore(t *testing.T, c *core.Core) string {
	t.Helper()
	socket := t.TempDir() + "/s"
	ln, err := Listen(socket)
	if err != nil {
		t.Fatal(err)
	}
	server := NewServer(c)
	go func() { _ = server.Serve(ln) }()
	t.Cleanup(func() { server.Close() })
	return socket
}

func flood(c *core.Core, addr string) {
	tables := c.Tables()
	for range 6 {
		guard, thresholds := cc.Of(c), cc.ThresholdsOf(tables, core.PlanOfSite(tables, "a"))
		site, _ := guard.CountRequest("a", thresholds, netip.MustParseAddr(addr), false, "/")
		if ban := guard.CountClient(site, thresholds, netip.MustParseAddr(addr), false); ban != nil {
			ban()
		}
	}
}

func TestSecurityStreamResendsWhatIsNotAcknowledged(t *testing.T) {
	c := protectedCore(t)
	api := client(serveCore(t, c), false)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	watch := func(instance string, after uint64) *connect.ServerStreamForClient[edgev1.SecurityBatch] {
		stream, err := api.WatchSecurity(ctx, connect.NewRequest(&edgev1.WatchSecurityRequest{InstanceId: instance, After: after}))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { stream.Close() })
		return stream
	}
	receive := func(stream *connect.ServerStreamForClient[edgev1.SecurityBatch]) *edgev1.SecurityBatch {
		t.Helper()
		if !stream.Receive() {
			t.Fatal(stream.Err())
		}
		return stream.Msg()
	}

	// The stream is open although nothing happens.
	first := watch(c.InstanceID, 0)
	flood(c, "192.0.2.1")
	batch := receive(first)
	if batch.GetSequence() != 1 || len(batch.GetBans()) != 1 || len(batch.GetEvents()) != 1 || batch.GetBans()[0].GetCidr() != "192.0.2.1/32" ||
		batch.GetEvents()[0].GetId() != c.InstanceID+"-1" {
		t.Fatalf("%v", batch)
	}
	flood(c, "192.0.2.2")
	if second := receive(first); second.GetSequence() != 2 || second.GetBans()[0].GetCidr() != "192.0.2.2/32" {
		t.Fatalf("%v", second)
	}
	first.Close()

	// Of another process nothing is acknowledged; of this one, what it says.
	again := watch("another", 1)
	if one, two := receive(again), receive(again); one.GetSequence() != 1 || two.GetSequence() != 2 {
		t.Errorf("%v %v", one, two)
	}
	again.Close()
	acknowledged := watch(c.InstanceID, 1)
	if b := receive(acknowledged); b.GetSequence() != 2 {
		t.Errorf("%v", b)
	}
	flood(c, "192.0.2.3")
	if b := receive(acknowledged); b.GetSequence() != 3 {
		t.Errorf("%v", b)
	}
}

func TestRestoredBansAndLevels(t *testing.T) {
	c := protectedCore(t)
	api := client(serveCore(t, c), true)
	now := time.Now()
	_, err := api.RestoreSecurity(t.Context(), connect.NewRequest(&edgev1.RestoreSecurityRequest{
		Bans: []*nodev1.OwnBan{
			{SiteId: "a", Cidr: "192.0.2.1/32", ExpiresAtMs: now.Add(time.Hour).UnixMilli()},
			{Cidr: "2001:db8::/64", ExpiresAtMs: now.Add(time.Hour).UnixMilli()},
			{Cidr: "192.0.2.9/32", ExpiresAtMs: now.Add(-time.Second).UnixMilli()},
			{Cidr: "nonsense", ExpiresAtMs: now.Add(time.Hour).UnixMilli()},
		},
		Sites: []*edgev1.SiteLevelState{{
			SiteId: "a", Site: &edgev1.LevelState{Level: 2, CalmMs: 10},
			Paths: []*edgev1.PathLevelState{{Path: "/x", State: &edgev1.LevelState{Level: 3}}},
		}},
	}))
	if err != nil {
		t.Fatal(err)
	}
	response, err := api.GetStatus(t.Context(), connect.NewRequest(&edgev1.GetStatusRequest{}))
	if err != nil {
		t.Fatal(err)
	}
	status := response.Msg
	if status.GetBans().GetEntries() != 2 {
		t.Errorf("%v", status.GetBans())
	}
	if s := status.GetSecurity(); len(s) != 1 || s[0].GetLevel() != 2 || s[0].GetPaths()[0].GetLevel() != 3 || s[0].GetPaths()[0].GetPath() != "/x" {
		t.Errorf("%v", s)
	}
	for addr, want := range map[string]bool{"192.0.2.1": true, "2001:db8::5": true, "192.0.2.9": false} {
		if _, banned := bans.Of(c).Lookup("a", netip.MustParseAddr(addr)); banned != want {
			t.Errorf("%s banned: %v", addr, banned)
		}
	}
	// They came from the agent, so they are not told to it.
	ctx, cancel := context.WithCancel(t.Context())
	stream, err := api.WatchSecurity(ctx, connect.NewRequest(&edgev1.WatchSecurityRequest{}))
	if err != nil {
		t.Fatal(err)
	}
	flood(c, "192.0.2.7")
	if !stream.Receive() || len(stream.Msg().GetBans()) != 1 || stream.Msg().GetBans()[0].GetCidr() != "192.0.2.7/32" || len(stream.Msg().GetSites()) != 0 {
		t.Errorf("%v %v", stream.Msg(), stream.Err())
	}
	cancel()
	stream.Close()
}
