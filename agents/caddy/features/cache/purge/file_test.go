package purge

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"edge.svc/caddy/features/cache/store"
	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
	nodev1 "edge.svc/caddy/gen/svc/node/v1"
)

func batch(t *testing.T, purges ...*nodev1.Purge) [][]byte {
	t.Helper()
	b, err := proto.Marshal(&nodev1.PurgeBatch{Purges: purges})
	if err != nil {
		t.Fatal(err)
	}
	return [][]byte{b}
}

func place(sequence uint64) *edgev1.PurgePlace {
	return &edgev1.PurgePlace{Epoch: 1, Sequence: sequence}
}

func wholeSite(sequence uint64, id string) *nodev1.Purge {
	return &nodev1.Purge{Epoch: 1, Sequence: sequence, SiteIds: []string{id}}
}

func opened(t *testing.T, dir string) (*File, *Marks, error) {
	t.Helper()
	m := New()
	f, err := Open(dir, m)
	return f, m, err
}

func applied(t *testing.T, dir string, purges ...*nodev1.Purge) (*File, *Marks) {
	t.Helper()
	f, m, err := opened(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Apply("c", batch(t, purges...), place(uint64(len(purges)))); err != nil {
		t.Fatal(err)
	}
	return f, m
}

func TestPurgesAreInForceAfterARestart(t *testing.T) {
	target := func(scope nodev1.PurgeScope, path, query string) *nodev1.Purge {
		return &nodev1.Purge{Epoch: 1, Sequence: 2, Targets: []*nodev1.PurgeTarget{{Scope: scope, SiteId: "s", Host: "a.com", Path: path, Query: query}}}
	}
	for _, c := range []struct {
		says          string
		purge         *nodev1.Purge
		gone, present string
	}{
		{"a site", wholeSite(2, "s"), "/x", ""},
		{"another site", wholeSite(2, "t"), "", "/x"},
		{"a tag", &nodev1.Purge{Epoch: 1, Sequence: 2, SiteIds: []string{"t", "s"}, Tags: []string{"other", "red"}}, "/x", ""},
		{"another tag", &nodev1.Purge{Epoch: 1, Sequence: 2, SiteIds: []string{"s"}, Tags: []string{"blue"}}, "", "/x"},
		{"a URL", target(nodev1.PurgeScope_PURGE_SCOPE_URL, "/%78", "q=1"), "/x", "/x/y"},
		{"a URL with another query", target(nodev1.PurgeScope_PURGE_SCOPE_URL, "/x", ""), "", "/x"},
		{"a prefix", target(nodev1.PurgeScope_PURGE_SCOPE_PREFIX, "/a/../x", ""), "/x/y", "/y"},
		{"the prefix of all", target(nodev1.PurgeScope_PURGE_SCOPE_PREFIX, "/", ""), "/y", ""},
		{"a host", target(nodev1.PurgeScope_PURGE_SCOPE_HOST, "", ""), "/x", ""},
		{"a scope of a later version", target(99, "/z", ""), "/x", ""},
		{"a path that no response has", target(nodev1.PurgeScope_PURGE_SCOPE_PREFIX, "x", ""), "/x", ""},
	} {
		dir := t.TempDir()
		f, before := applied(t, dir, wholeSite(1, "other"), c.purge)
		g := before.Position().Generation
		r := func(path string) *Stored {
			at := store.Position{Generation: g, Epoch: 1, Sequence: 1}
			return &Stored{Position: at, Site: "s", Host: "a.com", Path: path, Query: "q=1", Tags: []string{"red"}}
		}
		_, read, err := opened(t, dir)
		if err != nil {
			t.Fatal(err)
		}
		// A file that is written anew says the same.
		if err := f.rewrite(); err != nil {
			t.Fatal(err)
		}
		again, rewritten, err := opened(t, dir)
		if cluster, epoch, sequence := again.Place(); err != nil || cluster != "c" || epoch != 1 || sequence != 2 {
			t.Errorf("%s: %q %d %d %v", c.says, cluster, epoch, sequence, err)
		}
		for i, m := range []*Marks{before, read, rewritten} {
			if c.gone != "" && !m.Absent(r(c.gone)) || c.present != "" && m.Absent(r(c.present)) {
				t.Errorf("%s, of %d", c.says, i)
			}
			if want := (store.Position{Generation: g, Epoch: 1, Sequence: 2}); m.Position() != want {
				t.Errorf("%s, of %d: %v", c.says, i, m.Position())
			}
		}
	}
}

// Whichever bit of the file changes, no purge is lost.
func TestNoChangedBitLosesAPurge(t *testing.T) {
	dir := t.TempDir()
	_, before := applied(t, dir, wholeSite(1, "r"), wholeSite(2, "s"))
	path := filepath.Join(dir, fileName)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	purged := Stored{Position: before.Position(), Site: "s"}
	purged.Position.Sequence = 1
	for i := range 8 * len(b) {
		b[i/8] ^= 1 << (i % 8)
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, m, err := opened(t, dir); err == nil || !m.Absent(&purged) {
			t.Fatalf("bit %d of byte %d: %v", i%8, i/8, err)
		}
		b[i/8] ^= 1 << (i % 8)
	}
}

// Nothing that was stored before is served where purges may be lost.
func TestAFileThatCannotBeReadPurgesEverything(t *testing.T) {
	for says, spoil := range map[string]func(path string, b []byte) error{
		"a missing file": func(path string, _ []byte) error { return os.Remove(path) },
		"an empty file":  func(path string, _ []byte) error { return os.WriteFile(path, nil, 0o600) },
		"a changed byte": func(path string, b []byte) error { b[len(b)/2] ^= 1; return os.WriteFile(path, b, 0o600) },
		"a folder": func(path string, _ []byte) error {
			return errorOf(os.Remove(path), os.Mkdir(path, 0o700))
		},
	} {
		dir := t.TempDir()
		_, before := applied(t, dir, wholeSite(1, "s"))
		path := filepath.Join(dir, fileName)
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := spoil(path, b); err != nil {
			t.Fatal(err)
		}
		f, m, err := opened(t, dir)
		if (err != nil) != !strings.HasPrefix(says, "a missing") {
			t.Errorf("%s: %v", says, err)
		}
		r := Stored{Position: before.Position(), Site: "another"}
		if !m.Absent(&r) {
			t.Errorf("%s: what was stored before is there", says)
		}
		if r.Position = m.Position(); m.Absent(&r) {
			t.Errorf("%s: what is stored now is not there", says)
		}
		if cluster, epoch, sequence := f.Place(); cluster != "" || epoch != 0 || sequence != 0 {
			t.Errorf("%s: at %q %d %d", says, cluster, epoch, sequence)
		}
	}
}

func errorOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func TestACutRecordIsNotReached(t *testing.T) {
	dir := t.TempDir()
	f, before := applied(t, dir, wholeSite(1, "s"))
	if err := f.Apply("c", batch(t, wholeSite(2, "t")), place(2)); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, fileName)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, info.Size()-3); err != nil {
		t.Fatal(err)
	}
	next, m, err := opened(t, dir)
	if _, _, sequence := next.Place(); err != nil || sequence != 1 || m.Position().Generation != before.Position().Generation {
		t.Error(sequence, err)
	}
	if err := next.Apply("c", batch(t, wholeSite(2, "t")), place(2)); err != nil {
		t.Fatal(err)
	}
	last, _, err := opened(t, dir)
	if _, _, sequence := last.Place(); err != nil || sequence != 2 {
		t.Error(sequence, err)
	}
}

func TestPurgesOfAnotherClusterBeginAGeneration(t *testing.T) {
	dir := t.TempDir()
	f, m := applied(t, dir, wholeSite(1, "s"))
	old := m.Position()
	if err := f.Apply("d", nil, place(7)); err != nil {
		t.Fatal(err)
	}
	if !m.Absent(&Stored{Position: old, Site: "x"}) {
		t.Error("what was stored for another cluster is there")
	}
	next, read, err := opened(t, dir)
	if cluster, _, sequence := next.Place(); err != nil || cluster != "d" || sequence != 7 || read.Position() != m.Position() {
		t.Error(cluster, sequence, err)
	}
}

// A purge that is not on disk is in force all the same, and is not acknowledged.
func TestAPurgeThatCannotBeWrittenFails(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	m := New()
	f, _ := Open(dir, m)
	if f.Keep() == nil || f.Apply("c", batch(t, wholeSite(1, "s")), place(1)) == nil {
		t.Error("nothing was written")
	}
	at := m.Position()
	if at.Sequence--; !m.Absent(&Stored{Position: at, Site: "s"}) {
		t.Error("the purge is not in force")
	}
	if f.Apply("c", [][]byte{{0xff}}, nil) == nil {
		t.Error("what cannot be decoded was taken")
	}
}

func TestAGenerationOutlivesTheProcess(t *testing.T) {
	dir := t.TempDir()
	f, m, err := opened(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Keep(); err != nil {
		t.Fatal(err)
	}
	if _, read, err := opened(t, dir); err != nil || read.Position() != m.Position() {
		t.Error(read.Position(), err)
	}
}

type sorted struct{}

func (sorted) QueryOf(query string) string { return strings.Replace(query, "b&a", "a&b", 1) }

func TestMarksFollowTheKeyOfTheSite(t *testing.T) {
	m := New()
	m.Add(Mark{Position: at(1, 2), Kind: URL, Site: "s", Host: "a.com", Path: "/x", Query: "b&a", HasQuery: true},
		Mark{Position: at(1, 2), Kind: URL, Site: "s", Host: "a.com", Path: "/y", Query: "q=%2F", HasQuery: true})
	for _, c := range []struct {
		r    Stored
		want bool
	}{
		{Stored{Host: "a.com", Path: "/x", Query: "a&b"}, false},
		{Stored{Host: "a.com", Path: "/x", Query: "a&b", Key: sorted{}}, true},
		{Stored{Host: "a.com", Path: "/y", Query: "q=/"}, true},
		{Stored{Host: "b.com", Path: "/y", Query: "q=/"}, false},
		{Stored{Host: "b.com", Path: "/y", Query: "q=/", AnyHost: true}, true},
	} {
		c.r.Site = "s"
		if m.Absent(&c.r) != c.want {
			t.Errorf("%+v", c.r)
		}
	}
}

// A node reads the marks of all sites before it serves.
func BenchmarkOpen10000Sites(b *testing.B) {
	dir := b.TempDir()
	f, err := Open(dir, New())
	if err != nil {
		b.Fatal(err)
	}
	marks := make([]Mark, 10_000)
	for i := range marks {
		marks[i] = Mark{Position: store.Position{Epoch: 1, Sequence: uint64(i + 1)}, Kind: Site, Site: strconv.Itoa(i)}
	}
	f.marks.Add(marks...)
	if err := f.Keep(); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := Open(dir, New()); err != nil {
			b.Fatal(err)
		}
	}
}
