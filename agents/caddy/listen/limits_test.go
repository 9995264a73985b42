package listen

import (
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
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
	set := Limits{Connections: 5, PerAddress: 4, PerNetwork: 3, Waiting: 2, HeaderTime: time.Second, Handshakes: 7, HandshakesPerNetwork: 6, Ahead: 8}
	if got := set.withDefaults(1<<20, 1<<40); got != set {
		t.Errorf("%+v", got)
	}
	if openFiles() == 0 || memory() == 0 || memory() > 1<<50 {
		t.Errorf("%d files, %d bytes", openFiles(), memory())
	}
}

func TestLimitsAreNotNegative(t *testing.T) {
	for _, w := range []Wrapper{{MaxConnections: -1}, {MaxPerNetwork: -1}, {MaxPerAddress: -1}, {MaxWaiting: -1}, {MaxHandshakes: -1}, {MaxHandshakesPerNetwork: -1}, {HeaderTime: caddy.Duration(-1)}} {
		if _, err := w.limits(); err == nil {
			t.Errorf("%+v", w)
		}
	}
}

func TestMemoryOfAControlGroup(t *testing.T) {
	root := t.TempDir()
	write := func(file, text string) {
		t.Helper()
		file = filepath.Join(root, file)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got := groupMemory(root, "0::/a/b\n"); got != math.MaxUint64 {
		t.Errorf("without files: %d", got)
	}
	write("a/b/memory.max", "max\n")
	write("a/memory.max", "4096\n")
	write("memory.max", "8192\n")
	if got := groupMemory(root, "1:cpu:/x\n0::/a/b\n"); got != 4096 {
		t.Errorf("of a group above: %d", got)
	}
	write("memory/memory.limit_in_bytes", "1024\n")
	if got := groupMemory(root, ""); got != 1024 {
		t.Errorf("of an old hierarchy: %d", got)
	}
}
