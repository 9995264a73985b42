package memory

import (
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"testing"
)

func TestTheHeapGetsItsShare(t *testing.T) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(-1))
	limit := Limit()
	if limit == 0 || limit > 1<<50 {
		t.Fatalf("%d bytes", limit)
	}
	t.Setenv("AUTOMEMLIMIT", "")
	t.Setenv("GOMEMLIMIT", "1GiB")
	Keep()
	if got := debug.SetMemoryLimit(-1); got != math.MaxInt64 {
		t.Errorf("against the environment: %d", got)
	}
	t.Setenv("GOMEMLIMIT", "")
	Keep()
	if got := debug.SetMemoryLimit(-1); got != int64(limit/2) {
		t.Errorf("%d of %d bytes", got, limit)
	}
	if Limit() != limit {
		t.Error("the own limit counts as one of the machine")
	}
	Release()
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
	if got := groupLimit(root, "0::/a/b\n"); got != math.MaxUint64 {
		t.Errorf("without files: %d", got)
	}
	write("a/b/memory.max", "max\n")
	write("a/memory.max", "4096\n")
	write("memory.max", "8192\n")
	if got := groupLimit(root, "1:cpu:/x\n0::/a/b\n"); got != 4096 {
		t.Errorf("of a group above: %d", got)
	}
	write("memory/memory.limit_in_bytes", "1024\n")
	if got := groupLimit(root, ""); got != 1024 {
		t.Errorf("of an old hierarchy: %d", got)
	}
}
