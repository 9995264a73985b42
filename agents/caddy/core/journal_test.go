package core

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	configv1 "edge.svc/caddy/gen/svc/config/v1"
	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
	"edge.svc/caddy/internal/edgetest"
)

func writeFile(t testing.TB, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

func loadWith(t *testing.T, config, bans []byte) *Core {
	t.Helper()
	dir := t.TempDir()
	if config != nil {
		writeFile(t, filepath.Join(dir, configJournal), config)
	}
	if bans != nil {
		writeFile(t, filepath.Join(dir, "bans.journal"), bans)
	}
	return New(Options{StateDir: dir, Values: map[string]any{"ban_capacity": 100, "ban_max_mib": 1}})
}

func threeRevisions() []byte {
	return edgetest.Encode(edgetest.Header("node"),
		edgetest.Config(1, []*configv1.Entry{siteEntry("a", 1, "a.com")}),
		edgetest.Config(2, []*configv1.Entry{siteEntry("b", 1, "b.com")}, edgetest.Key("site", "a")),
		edgetest.Config(3, []*configv1.Entry{siteEntry("c", 1, "c.com")}))
}

// Cut anywhere, a journal gives every whole record before the cut, and a warning unless the cut is between records.
func TestJournalCutAnywhere(t *testing.T) {
	whole := threeRevisions()
	ends := map[int]uint64{}
	for at, n := 0, uint64(0); at < len(whole); n++ {
		at += 8 + int(binary.LittleEndian.Uint32(whole[at:]))
		ends[at] = n
	}
	revision := uint64(0)
	for cut := 1; cut <= len(whole); cut++ {
		end, between := ends[cut]
		if between {
			revision = end
		}
		c := loadWith(t, whole[:cut], nil)
		status := c.Status()
		if status.Position.GetRevision() != revision {
			t.Fatalf("cut at %d: revision %d, want %d", cut, status.Position.GetRevision(), revision)
		}
		if (len(status.Warnings) == 0) != between {
			t.Fatalf("cut at %d: warnings %q", cut, status.Warnings)
		}
		if (hostOwner(c, "c.com") == "c") != (revision == 3) {
			t.Fatalf("cut at %d: c.com is served by %q", cut, hostOwner(c, "c.com"))
		}
	}
}

func TestJournalWithOneWrongByte(t *testing.T) {
	whole := threeRevisions()
	second := 0
	for range 2 {
		second += 8 + int(binary.LittleEndian.Uint32(whole[second:]))
	}
	for _, at := range []int{second + 1, second + 5, second + 8, second + 20} {
		spoiled := bytes.Clone(whole)
		spoiled[at] ^= 0xff
		c := loadWith(t, spoiled, nil)
		status := c.Status()
		if status.Position.GetRevision() != 1 || hostOwner(c, "a.com") != "a" || len(status.Warnings) != 1 {
			t.Errorf("byte %d: revision %d, %q", at, status.Position.GetRevision(), status.Warnings)
		}
	}
}

func TestJournalThatIsNone(t *testing.T) {
	other := edgetest.Header("node")
	other.GetHeader().Format = 2
	for name, content := range map[string][]byte{
		"empty":          {},
		"text":           []byte(strings.Repeat("this is no journal\n", 100)),
		"another format": edgetest.Encode(other, edgetest.Config(1, nil)),
		"no header":      edgetest.Encode(edgetest.Config(1, nil)),
		"two headers":    edgetest.Encode(edgetest.Header("node"), edgetest.Header("node"), edgetest.Config(1, nil)),
		"zeros":          make([]byte, 4096),
	} {
		c := loadWith(t, content, nil)
		if status := c.Status(); status.Position.GetRevision() != 0 || len(status.Warnings) != 1 {
			t.Errorf("%s: revision %d, %q", name, status.Position.GetRevision(), status.Warnings)
		}
	}
	if status := loadWith(t, nil, nil).Status(); len(status.Warnings) != 0 {
		t.Errorf("no journal yet: %q", status.Warnings)
	}
}

func TestNodeIDComesFromTheJournals(t *testing.T) {
	c := loadWith(t, edgetest.Encode(edgetest.Header("one")), edgetest.Encode(edgetest.Header("two")))
	if warnings := c.Status().Warnings; len(warnings) != 1 || !strings.Contains(warnings[0], "different nodes") {
		t.Errorf("%q", warnings)
	}
	// The first 16 hex digits of the SHA-256 of "one".
	if c = loadWith(t, edgetest.Encode(edgetest.Header("one")), nil); c.LoopID() != "svc-7692c3ad3540bb80" {
		t.Errorf("%s", c.LoopID())
	}
}

// Whatever a file holds, reading it ends, panics never, and hands out only records that are in it.
func FuzzJournal(f *testing.F) {
	f.Add(threeRevisions())
	f.Add(threeRevisions()[:100])
	f.Add([]byte{})
	f.Add([]byte{0xff, 0xff, 0xff, 0x03, 0, 0, 0, 0, 1})
	f.Fuzz(func(t *testing.T, content []byte) {
		count := 0
		header, d := readRecords(bufio.NewReader(bytes.NewReader(content)), "journal", func(record *edgev1.JournalRecord) {
			payload, err := proto.MarshalOptions{Deterministic: true}.Marshal(record)
			if err != nil || len(payload) > len(content)+64 {
				t.Fatalf("%v %d", err, len(payload))
			}
			count++
		})
		if header == nil && (count > 0 || d.Text == "") {
			t.Fatalf("%d records and %q without a header", count, d.Text)
		}
		if count*8 > len(content) {
			t.Fatalf("%d records from %d bytes", count, len(content))
		}
	})
}
