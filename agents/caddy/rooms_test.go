package main

import (
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
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

// room is a top folder of the module, and the rooms that its packages may import. Generated code and internal helpers are
// open to all but exchange.
type room struct {
	name    string
	imports []string
}

// rooms are in their order: none imports one that comes later.
var rooms = []room{
	{"exchange", []string{standardLibrary}},
	{"internal", []string{"exchange"}},
	{"expr", nil},
	{"core", []string{"exchange"}},
	{"pages", []string{"exchange"}},
	{"api", []string{"core"}},
	{"listen", []string{"exchange", "core", "pages"}},
	{"features", []string{"exchange", "expr", "core", "pages"}},
	{"edge", []string{"exchange", "core", "pages", "listen", "features"}},
	{"program", []string{allOfThem}},
	{".", []string{"program"}},
}

func TestPackagesImportWhatTheirRoomAllows(t *testing.T) {
	packages := importsByPackage(t)
	for _, r := range rooms {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(packages)), func(name string) bool { return topOf(name) == r.name }) {
			t.Errorf("no package is in the room %s", r.name)
		}
	}
	for name, imports := range packages {
		if topOf(name) == "gen" {
			continue
		}
		for _, imported := range imports {
			if problem := problemOf(name, imported); problem != "" {
				t.Errorf("%s imports %s: %s", name, imported, problem)
			}
		}
	}
}

func TestNoRoomLeadsBackUp(t *testing.T) {
	earlier := []string{standardLibrary, allOfThem}
	for _, r := range rooms {
		for _, imported := range r.imports {
			if !slices.Contains(earlier, imported) {
				t.Errorf("%s imports %s, which is no room before it", r.name, imported)
			}
		}
		earlier = append(earlier, r.name)
	}
}

// topOf is the room of a package.
func topOf(name string) string {
	top, _, _ := strings.Cut(name, "/")
	return top
}

// featureOf is the feature of a package in the room of features.
func featureOf(name string) string {
	feature, _, _ := strings.Cut(strings.TrimPrefix(name, "features/"), "/")
	return feature
}

// problemOf says why a package may not import another, "" when it may.
func problemOf(name, imported string) string {
	at := slices.IndexFunc(rooms, func(r room) bool { return r.name == topOf(name) })
	if at < 0 {
		return "its folder is no room of the table"
	}
	allowed := rooms[at].imports
	own, isOwn := strings.CutPrefix(imported, module)
	switch to := topOf(own); {
	case slices.Contains(allowed, standardLibrary):
		if strings.Contains(topOf(imported), ".") {
			return "it imports the standard library alone"
		}
	case !isOwn, to == "gen", to == "internal", slices.Contains(allowed, allOfThem):
	case topOf(name) == "features" && to == "features":
		if featureOf(name) != featureOf(own) {
			return "features never import one another; put what they agree on into exchange"
		}
	case !slices.Contains(allowed, to):
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
		{"expr", module + "exchange", false},
		{"features/rules", module + "expr", true},
		{"features/bans", module + "core", true},
		{"features/bans", module + "features/cc", false},
		{"features/bans", module + "features/bans/parts", true},
		{"features/ban", module + "features/bans", false},
		{"features/new", module + "listen", false},
		{"features/new", module + "edge", false},
		{"features/new", module + "internal/ranges", true},
		{"listen", module + "features/bans", false},
		{"listen", module + "edge", false},
		{"api", module + "listen", false},
		{"edge", module + "features/bans", true},
		{"edge", module + "api", false},
		{"internal/ranges", module + "core", false},
		{"new", "net/http", false},
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
