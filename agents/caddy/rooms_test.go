package main

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	module          = "edge.svc/caddy/"
	standardLibrary = "standard library"
	allOfThem       = "all of them, in the one list"
)

// rooms says what each package may import of this module; what is not named is a feature. Generated code, third parties,
// internal helpers, the edge's error pages and the language of rules are open to all but exchange.
var rooms = map[string][]string{
	"exchange": {standardLibrary},
	"core":     {"exchange"},
	"listen":   {"exchange", "core", "pages"},
	"edge":     {allOfThem},
	"api":      {"core"},
	"pages":    {"exchange"},
	"expr":     {},
	".":        {allOfThem},
}

// Features import exchange and core, never one another.
var feature = []string{"exchange", "core", "pages", "expr"}

func TestPackagesImportWhatTheirRoomAllows(t *testing.T) {
	packages := importsByPackage(t)
	for _, name := range []string{"exchange", "core", "listen", "features/bans", "features/cc", "features/challenge", "features/origin", "features/rules", "edge", "api"} {
		if packages[name] == nil {
			t.Errorf("%s is gone from the table or from the tree", name)
		}
	}
	for name, imports := range packages {
		if strings.HasPrefix(name, "gen/") {
			continue
		}
		for _, imported := range imports {
			if problem := problemOf(name, imported); problem != "" {
				t.Errorf("%s imports %s: %s", name, imported, problem)
			}
		}
	}
}

// problemOf says why a package may not import another, "" when it may.
func problemOf(name, imported string) string {
	allowed, named := rooms[name]
	if !named {
		allowed = feature
	}
	own, isOwn := strings.CutPrefix(imported, module)
	switch {
	case slices.Contains(allowed, standardLibrary):
		if strings.Contains(strings.SplitN(imported, "/", 2)[0], ".") {
			return "it imports the standard library alone"
		}
	case !isOwn, strings.HasPrefix(own, "gen/"), strings.HasPrefix(own, "internal/"), slices.Contains(allowed, allOfThem):
	case strings.HasPrefix(name, "internal/"):
		if own != "exchange" {
			return "helpers know no feature"
		}
	case !slices.Contains(allowed, own):
		if !named {
			return "features never import one another; put what they agree on into exchange"
		}
		return "its room does not have it"
	}
	return ""
}

func TestRoomsAreClosed(t *testing.T) {
	for _, c := range []struct {
		name, imported string
		allowed        bool
	}{
		{"exchange", "net/http", true},
		{"exchange", "google.golang.org/protobuf/proto", false},
		{"exchange", module + "core", false},
		{"core", module + "exchange", true},
		{"core", module + "gen/svc/edge/v1", true},
		{"core", "go.uber.org/zap", true},
		{"core", module + "features/bans", false},
		{"features/rules", module + "expr", true},
		{"expr", module + "exchange", false},
		{"features/bans", module + "core", true},
		{"features/bans", module + "features/cc", false},
		{"svcnew", module + "listen", false},
		{"svcnew", module + "internal/ranges", true},
		{"listen", module + "features/bans", false},
		{"api", module + "listen", false},
		{"edge", module + "features/bans", true},
		{"internal/ranges", module + "core", false},
	} {
		if problem := problemOf(c.name, c.imported); (problem == "") != c.allowed {
			t.Errorf("%s imports %s: %q", c.name, c.imported, problem)
		}
	}
}

// importsByPackage reads the imports of every file that is no test, by the folder of its package.
func importsByPackage(t *testing.T) map[string][]string {
	packages := map[string][]string{}
	err := filepath.WalkDir(".", func(file string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (strings.HasPrefix(entry.Name(), ".") && file != "." || entry.Name() == "testdata"):
			return filepath.SkipDir
		case entry.IsDir() || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go"):
			return nil
		}
		source, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, source, parser.ImportsOnly)
		if err != nil {
			return err
		}
		name := path.Dir(filepath.ToSlash(file))
		packages[name] = append(packages[name], []string{}...)
		for _, spec := range parsed.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			packages[name] = append(packages[name], imported)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return packages
}
