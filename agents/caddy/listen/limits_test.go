package listen

import (
	"math"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"

	"edge.svc/caddy/internal/inflight"
	"edge.svc/caddy/internal/memory"
)

func TestLimitsFollowFromFilesAndMemory(t *testing.T) {
	for _, c := range []struct {
		files, memory uint64
		want          int
	}{
		{1 << 20, 2 << 30, 16384}, {20_512, 64 << 30, 10_000}, {1024, 64 << 30, 256}, {100, 1 << 20, 256}, {math.MaxUint64, math.MaxUint64, math.MaxInt32},
	} {
		got := Limits{}.withDefaults(c.files, c.memory)
		if got.Connections != c.want || got.PerNetwork != c.want/4 || got.PerAddress != c.want/4/2 || got.Waiting != c.want/4 || got.Handshakes != c.want/4/2 || got.HandshakesPerNetwork != c.want/4/2/2 || got.HeaderTime != 15*time.Second || got.Ahead != c.memory/8 {
			t.Errorf("%d files, %d MiB: %+v", c.files, c.memory>>20, got)
		}
	}
	set := Limits{Connections: 5, PerAddress: 4, PerNetwork: 3, Waiting: 2, HeaderTime: time.Second, Handshakes: 7, HandshakesPerNetwork: 6, Ahead: 8, Requests: inflight.Limits{Total: 10, PerNetwork: 9}}
	if got := set.withDefaults(1<<20, 1<<40); got != set {
		t.Errorf("%+v", got)
	}
	if memory.OpenFiles() == 0 {
		t.Error("no files")
	}
}

func TestLimitsAreNotNegative(t *testing.T) {
	for _, w := range []Wrapper{{MaxConnections: -1}, {MaxPerNetwork: -1}, {MaxPerAddress: -1}, {MaxWaiting: -1}, {MaxHandshakes: -1}, {MaxHandshakesPerNetwork: -1}, {HeaderTime: caddy.Duration(-1)}, {MaxRequestMiB: -1}, {MaxRequestMiBPerNetwork: -1}} {
		if _, err := w.limits(); err == nil {
			t.Errorf("%+v", w)
		}
	}
}

func TestMemoryOfRequestsFollowsFromMemory(t *testing.T) {
	for memory, want := range map[uint64]inflight.Limits{
		256 << 20: {Total: 64 << 20, PerNetwork: 16 << 20}, 1 << 30: {Total: 128 << 20, PerNetwork: 24 << 20},
		16 << 30: {Total: 2 << 30, PerNetwork: 24 << 20}, math.MaxUint64: {Total: math.MaxUint64 / 8, PerNetwork: 24 << 20},
	} {
		if got := (Limits{}).withDefaults(1<<20, memory).Requests; got != want {
			t.Errorf("%d MiB: %+v", memory>>20, got)
		}
	}
}
