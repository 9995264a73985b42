package program_test

import (
	"syscall"
	"testing"
	"time"

	"edge.svc/caddy/core"
	"edge.svc/caddy/features/count"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
	"edge.svc/caddy/internal/edgetest"
	"edge.svc/caddy/program/live"
)

// What the program counted lies in its folder once it has stopped in order, the running second included, and no gap with it.
func TestAnOrderlyStopKeepsAllCounts(t *testing.T) {
	e := live.Start(t, nil, []*edgev1.JournalRecord{
		edgetest.Header("node-1"),
		edgetest.Config(1, []*configv1.Entry{live.OriginPolicy(), edgetest.Entry("site", "site-a", edgetest.Site(live.StartOrigin(t), "a.test"))}),
	}, nil)
	const request = "GET /x HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n"
	answer := e.Raw(request)
	if err := e.Cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(live.Wait); syscall.Kill(e.Cmd.Process.Pid, 0) == nil; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it does not stop")
		}
	}
	batch := count.Of(core.New(core.Options{StateDir: e.Dir})).Drain(0)
	if len(batch.GetGaps()) != 0 {
		t.Errorf("%v", batch.GetGaps())
	}
	for _, minute := range batch.GetMinutes() {
		if minute.GetSiteId() == "site-a" && minute.GetRequests() == 1 && minute.GetBytesReceived() == uint64(len(request)) && minute.GetBytesSent() == uint64(len(answer)) {
			return
		}
	}
	t.Errorf("%v, but the answer had %d bytes and the request %d", batch.GetMinutes(), len(answer), len(request))
}
