package exchange

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The console has paths in the same form: test/unit/contract/scalars/canonical-path.test.ts.
func TestCanonicalPath(t *testing.T) {
	content, err := os.ReadFile(filepath.Join("..", "..", "..", "test", "vectors", "canonical-paths.json"))
	if err != nil {
		t.Fatal(err)
	}
	var vectors struct {
		Rows []struct{ Given, Canonical string }
	}
	if err := json.Unmarshal(content, &vectors); err != nil {
		t.Fatal(err)
	}
	if len(vectors.Rows) < 30 {
		t.Fatalf("%d rows", len(vectors.Rows))
	}
	for _, row := range vectors.Rows {
		if got := CanonicalPath(row.Given); got != row.Canonical {
			t.Errorf("%q became %q, not %q", row.Given, got, row.Canonical)
		}
	}
}

func TestCanonicalCostsNothingForUsualPaths(t *testing.T) {
	if n := testing.AllocsPerRun(100, func() { CanonicalPath("/shop/items/42/.well-known/..x") }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// The form is reached at once, has no dot segment and no repeated slash.
func FuzzCanonicalPath(f *testing.F) {
	for _, seed := range []string{"/a/../b", "//", "/a/./", "..", "/.../x"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, p string) {
		c := CanonicalPath(p)
		if again := CanonicalPath(c); again != c {
			t.Fatalf("%q became %q, then %q", p, c, again)
		}
		if c[0] != '/' || strings.Contains(c, "//") {
			t.Fatalf("%q became %q", p, c)
		}
		for segment := range strings.SplitSeq(c, "/") {
			if segment == "." || segment == ".." {
				t.Fatalf("%q became %q", p, c)
			}
		}
	})
}
