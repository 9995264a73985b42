package exchange

import (
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// normalPaths are the vectors that the console has as well: services/rules/evaluate/normal-path.ts.
func normalPaths(t testing.TB) (vectors struct {
	Normal []struct {
		Raw    string
		Normal *string
	}
	Plain []struct {
		Raw   string
		Plain bool
	}
},
) {
	content, err := os.ReadFile(filepath.Join("..", "..", "..", "test", "vectors", "normal-paths.json"))
	if err == nil {
		err = json.Unmarshal(content, &vectors)
	}
	if err != nil || len(vectors.Normal) < 80 || len(vectors.Plain) < 30 {
		t.Fatal(err, len(vectors.Normal), len(vectors.Plain))
	}
	return vectors
}

func TestNormalPath(t *testing.T) {
	for _, c := range normalPaths(t).Normal {
		normal, ok := NormalPath(c.Raw)
		if ok != (c.Normal != nil) || ok && normal != *c.Normal {
			t.Errorf("%s became %s (%v)", c.Raw, normal, ok)
		}
	}
}

func TestNormalTargetsKeepTheirQuery(t *testing.T) {
	for raw, want := range map[string]string{
		"/a/../b?x=/../y%2e": "/b?x=/../y%2e", "/%61?": "/a?", "/a?x=%2f..%2f": "/a?x=%2f..%2f", `/a?\..\`: `/a?\..\`, "/a/..?": "/?",
	} {
		target := targetOf(t, raw)
		normal, ok := target.Normal()
		if !ok || normal.Raw != want || normal.Query != target.Query || !strings.HasPrefix(normal.Raw, normal.Canonical) {
			t.Errorf("%s became %+v", raw, normal)
		}
	}
}

func TestNormalPathCostsNothingForUsualPaths(t *testing.T) {
	for _, path := range []string{"/shop/items/42", "/.well-known/x", "/a%20b/%E4%B8%AD", "/a%2Fb"} {
		if n := testing.AllocsPerRun(100, func() { NormalPath(path) }); n != 0 {
			t.Errorf("%s: %v allocations", path, n)
		}
	}
}

func TestPlainPaths(t *testing.T) {
	for _, c := range normalPaths(t).Plain {
		target := targetOf(t, c.Raw)
		if got := target.Plain(); got != c.Plain {
			t.Errorf("%s: %v", c.Raw, got)
		}
	}
}

// targetOf reads a target in the origin form.
func targetOf(t testing.TB, raw string) Target {
	t.Helper()
	path, query, _ := strings.Cut(raw, "?")
	decoded, err := url.PathUnescape(path)
	if err != nil {
		t.Fatal(raw, err)
	}
	return Target{Raw: raw, Path: decoded, Canonical: CanonicalPath(decoded), Query: query}
}

// readings are what origins resolve dot segments in: the path as it came or decoded, with backslashes that are slashes or not,
// and with parameters that count or not.
var readings = map[string]func(raw string) string{
	"as it came":                     func(raw string) string { return raw },
	"decoded":                        unescaped,
	"with backslashes":               func(raw string) string { return strings.ReplaceAll(unescaped(raw), `\`, "/") },
	"without parameters":             withoutParameters,
	"without parameters, decoded":    func(raw string) string { return unescaped(withoutParameters(raw)) },
	"decoded and without parameters": func(raw string) string { return withoutParameters(unescaped(raw)) },
	"with slashes merged":            func(raw string) string { return merged(unescaped(raw)) },
}

func merged(path string) string {
	for strings.Contains(path, "//") {
		path = strings.ReplaceAll(path, "//", "/")
	}
	return path
}

func unescaped(raw string) string {
	decoded, err := url.PathUnescape(raw)
	if err != nil {
		panic(err)
	}
	return decoded
}

func withoutParameters(path string) string {
	segments := strings.Split(path, "/")
	for i, segment := range segments {
		segments[i], _, _ = strings.Cut(segment, ";")
	}
	return strings.Join(segments, "/")
}

// resolved is written after RFC 3986, section 5.2.4, step by step.
func resolved(in string) string {
	out := ""
	for in != "" {
		switch {
		case strings.HasPrefix(in, "/./"):
			in = in[2:]
		case in == "/.":
			in = "/"
		case strings.HasPrefix(in, "/../"), in == "/..":
			in = "/" + strings.TrimPrefix(in[3:], "/")
			out = out[:max(0, strings.LastIndexByte(out, '/'))]
		default:
			end := strings.IndexByte(in[1:], '/') + 1
			if end == 0 {
				end = len(in)
			}
			out, in = out+in[:end], in[end:]
		}
	}
	return out
}

// In a path that is not refused no origin has a dot segment left to remove: what rules saw is what it resolves.
func FuzzNormalPath(f *testing.F) {
	for _, c := range normalPaths(f).Normal {
		f.Add(c.Raw)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		if _, err := url.PathUnescape(raw); err != nil || !strings.HasPrefix(raw, "/") || strings.Contains(raw, "?") {
			return
		}
		target := targetOf(t, raw)
		normal, ok := target.Normal()
		if !ok {
			return
		}
		if again, ok := NormalPath(normal.Raw); !ok || again != normal.Raw {
			t.Fatalf("%q became %q, then %q", raw, normal.Raw, again)
		}
		if normal.Canonical != merged(unescaped(normal.Raw)) {
			t.Fatalf("%q became %q, and rules see %q", raw, normal.Raw, normal.Canonical)
		}
		for name, read := range readings {
			if path := read(normal.Raw); resolved(path) != path {
				t.Fatalf("%q became %q, which an origin that reads it %s resolves to %q", raw, normal.Raw, name, resolved(path))
			}
		}
	})
}
