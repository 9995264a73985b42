package exchange

import (
	"strings"
	"testing"
)

func TestCanonicalPath(t *testing.T) {
	for given, want := range map[string]string{
		"/": "/", "": "/", "a": "/a", "*": "/*", "/a": "/a", "/a/": "/a/", "/a//b": "/a/b", "//": "/", "//a": "/a", "/a/./b": "/a/b",
		"/a/../b": "/b", "/a/.": "/a/", "/a/..": "/", "/a/b/..": "/a/", "/../../a": "/a", "/.": "/", "/..": "/",
		"/.a/..b/...": "/.a/..b/...", "/a/.svc": "/a/.svc", "/a b/ü": "/a b/ü", "/a///": "/a/", `/a\..\b`: `/a\..\b`,
	} {
		if got := CanonicalPath(given); got != want {
			t.Errorf("%q became %q, not %q", given, got, want)
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
