package purge

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"edge.svc/caddy/features/cache/store"
)

func at(epoch, sequence uint64) store.Position {
	return store.Position{Epoch: epoch, Sequence: sequence}
}

func TestAMarkMakesAbsentWhatLeftBeforeIt(t *testing.T) {
	response := Stored{Position: at(1, 5), Site: "s", Host: "a.com", Path: "/x/y", Query: "q=1", Tags: []string{"red", "blue"}}
	for _, c := range []struct {
		says string
		mark Mark
		want bool
	}{
		{"its site", Mark{Kind: Site, Site: "s"}, true},
		{"another site", Mark{Kind: Site, Site: "t"}, false},
		{"its host", Mark{Kind: Host, Site: "s", Host: "a.com"}, true},
		{"another host", Mark{Kind: Host, Site: "s", Host: "b.com"}, false},
		{"a prefix", Mark{Kind: Prefix, Site: "s", Host: "a.com", Path: "/x"}, true},
		{"a prefix that is the path", Mark{Kind: Prefix, Site: "s", Host: "a.com", Path: "/x/y"}, true},
		{"a longer one", Mark{Kind: Prefix, Site: "s", Host: "a.com", Path: "/x/y/"}, false},
		{"a prefix of another host", Mark{Kind: Prefix, Site: "s", Host: "b.com", Path: "/x"}, false},
		{"its URL with any query", Mark{Kind: URL, Site: "s", Host: "a.com", Path: "/x/y"}, true},
		{"its URL of any host", Mark{Kind: URL, Site: "s", Path: "/x/y"}, true},
		{"its URL with its query", Mark{Kind: URL, Site: "s", Host: "a.com", Path: "/x/y", Query: "q=1", HasQuery: true}, true},
		{"its URL with another query", Mark{Kind: URL, Site: "s", Host: "a.com", Path: "/x/y", HasQuery: true}, false},
		{"another URL", Mark{Kind: URL, Site: "s", Host: "a.com", Path: "/x"}, false},
		{"one of its tags", Mark{Kind: Tag, Site: "s", Tag: "blue"}, true},
		{"another tag", Mark{Kind: Tag, Site: "s", Tag: "blu"}, false},
	} {
		for position, later := range map[store.Position]bool{at(1, 6): true, at(2, 0): true, at(1, 5): false, at(1, 4): false, at(0, 9): false} {
			m := New()
			c.mark.Position = position
			m.Add(c.mark)
			if got := m.Absent(&response); got != (c.want && later) {
				t.Errorf("%s at %v: %v", c.says, position, got)
			}
			if m.Position() != position {
				t.Error("the position of the node is not the newest mark's")
			}
		}
	}
}

func TestOldMarksFoldIntoTheFloorOfTheirSite(t *testing.T) {
	m := New()
	for i := range MaxPaths + 1 {
		m.Add(Mark{Position: at(1, uint64(i+1)), Kind: URL, Site: "s", Host: "a.com", Path: fmt.Sprint("/", i)})
	}
	paths, _, floor := m.Counts("s")
	if paths != MaxPaths/2 || floor != at(1, MaxPaths/2+1) {
		t.Errorf("%d marks are left above %v", paths, floor)
	}
	if !m.Absent(&Stored{Position: at(1, 0), Site: "s", Host: "a.com", Path: "/other"}) || m.Absent(&Stored{Position: floor, Site: "s", Path: "/other"}) {
		t.Error("the floor")
	}
	for i := range MaxTags + 1 {
		m.Add(Mark{Position: at(2, uint64(i+1)), Kind: Tag, Site: "t", Tag: fmt.Sprint(i)})
	}
	if _, tags, _ := m.Counts("t"); tags != MaxTags/2 {
		t.Errorf("%d tags are left", tags)
	}
}

// Whatever folds, nothing is served that is older than a purge of it.
func TestMarksNeverForgetAPurge(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	m := New()
	var all []Mark
	for i := range 3000 {
		mark := Mark{Position: at(uint64(i/1000), uint64(i)), Kind: Kind(1 + random.IntN(4)), Site: fmt.Sprint(random.IntN(2)),
			Host: fmt.Sprint(random.IntN(3)), Path: fmt.Sprint("/", random.IntN(2000)), Tag: fmt.Sprint(random.IntN(9000))}
		all = append(all, mark)
		m.Add(mark)
	}
	one := make([]*Marks, len(all))
	for i := range all {
		one[i] = New()
		one[i].Add(all[i])
	}
	for range 500 {
		r := Stored{Position: all[random.IntN(len(all))].Position, Site: fmt.Sprint(random.IntN(2)), Host: fmt.Sprint(random.IntN(3)),
			Path: fmt.Sprint("/", random.IntN(2000)), Tags: []string{fmt.Sprint(random.IntN(9000))}}
		for i := range all {
			if one[i].Absent(&r) && !m.Absent(&r) {
				t.Fatalf("%+v is there in spite of %+v", r, all[i])
			}
		}
	}
}

func TestTagsOfAHeader(t *testing.T) {
	for _, c := range []struct {
		lines []string
		want  []string
	}{
		{[]string{" Red, blue ,,red", "Green"}, []string{"red", "blue", "green"}},
		{[]string{strings.Repeat("a", 129) + ",b\x01,c d"}, []string{"c d"}},
		{[]string{"x," + strings.Repeat(strings.Repeat("b", 100)+",", 50)}, []string{"x", strings.Repeat("b", 100)}},
		{[]string{strings.Repeat("ab", 3000)}, nil},
		{nil, nil},
	} {
		if got := Tags(c.lines); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%.40q: %q", c.lines, got)
		}
	}
}

func BenchmarkAbsent(b *testing.B) {
	m := New()
	for i := range MaxPaths {
		m.Add(Mark{Position: at(1, uint64(i+1)), Kind: Prefix, Site: "s", Host: "a.com", Path: fmt.Sprint("/p", i, "/")})
	}
	r := Stored{Site: "s", Host: "a.com", Path: "/some/path/of/usual/length.html", Tags: []string{"a", "b"}}
	b.ReportAllocs()
	for b.Loop() {
		if m.Absent(&r) {
			b.Fatal("absent")
		}
	}
}
