package core

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/protobuf/proto"

	configv1 "edge.svc/caddy/gen/svc/config/v1"
	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
	"edge.svc/caddy/internal/edgetest"
)

// spoilt is a journal with a wrong byte in its second record and whole records behind it.
func spoilt(whole []byte) []byte {
	content := bytes.Clone(whole)
	content[len(edgetest.Encode(edgetest.Header("node")))+10] ^= 0xff
	return content
}

// Each of these once replaced everything that was served by nothing.
func TestReloadOfAnUnreadableJournalKeepsWhatServes(t *testing.T) {
	config := threeRevisions()
	for name, spoil := range map[string]func(t *testing.T, path string, whole []byte){
		"missing":   func(t *testing.T, path string, _ []byte) { _ = os.Remove(path) },
		"a folder":  func(t *testing.T, path string, _ []byte) { _ = os.Remove(path); _ = os.Mkdir(path, 0o700) },
		"empty":     func(t *testing.T, path string, _ []byte) { writeFile(t, path, nil) },
		"corrupt":   func(t *testing.T, path string, whole []byte) { writeFile(t, path, spoilt(whole)) },
		"no header": func(t *testing.T, path string, whole []byte) { writeFile(t, path, whole[1:]) },
		"new": func(t *testing.T, path string, _ []byte) {
			writeFile(t, path, edgetest.Encode(edgetest.Header("node")))
		},
		"torn in its header": func(t *testing.T, path string, whole []byte) { writeFile(t, path, whole[:12]) },
		"torn before its position": func(t *testing.T, path string, whole []byte) {
			writeFile(t, path, whole[:len(edgetest.Encode(edgetest.Header("node")))+12])
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := loadWith(t, config, nil)
			spoil(t, filepath.Join(c.stateDir, configJournal), config)
			if _, _, err := c.ReloadConfig(); !errors.Is(err, ErrJournal) {
				t.Errorf("configuration: %v", err)
			}
			if status := c.Status(); status.Position.GetRevision() != 3 || hostOwner(c, "c.com") != "c" || len(status.Warnings) != 1 {
				t.Errorf("revision %d, c.com is served by %q, %q", status.Position.GetRevision(), hostOwner(c, "c.com"), status.Warnings)
			}
			// The agent writes it anew.
			path := filepath.Join(c.stateDir, configJournal)
			_ = os.Remove(path)
			writeFile(t, path, config)
			if _, _, err := c.ReloadConfig(); err != nil || len(c.Status().Warnings) != 0 {
				t.Errorf("after the repair: %v %q", err, c.Status().Warnings)
			}
		})
	}
}

func TestReloadOfAJournalThatSaysItIsEmptyEmptiesTheTables(t *testing.T) {
	c := loadWith(t, threeRevisions(), nil)
	writeFile(t, filepath.Join(c.stateDir, configJournal), edgetest.Encode(edgetest.Header("node"), edgetest.Config(4, nil)))
	position, _, err := c.ReloadConfig()
	if err != nil || position.GetRevision() != 4 || SiteCount(c.Tables()) != 0 {
		t.Errorf("%v %v, %d sites", err, position, SiteCount(c.Tables()))
	}
}

func TestPositionsKeepTheirMarks(t *testing.T) {
	c := loadWith(t, threeRevisions(), nil)
	if got := c.Status().Position; !proto.Equal(got, edgetest.Position(3)) {
		t.Errorf("read: %v", got)
	}
	if got, _, err := c.Apply(edgetest.Position(3), edgetest.Position(4), nil, nil); err != nil || !proto.Equal(got, edgetest.Position(4)) {
		t.Errorf("applied: %v %v", got, err)
	}
	if got, _, err := c.ReloadConfig(); err != nil || !proto.Equal(got, edgetest.Position(3)) {
		t.Errorf("read again: %v %v", got, err)
	}
}

func TestReloadOfANewJournalOfAnotherClusterEmptiesTheTables(t *testing.T) {
	c := loadWith(t, threeRevisions(), nil)
	header := edgetest.Header("node")
	header.GetHeader().ClusterId = "another"
	writeFile(t, filepath.Join(c.stateDir, configJournal), edgetest.Encode(header))
	if position, _, err := c.ReloadConfig(); err != nil || position.GetRevision() != 0 || SiteCount(c.Tables()) != 0 {
		t.Errorf("%v %v, %d sites", err, position, SiteCount(c.Tables()))
	}
}

func TestReloadOfATornTailIsNoFailure(t *testing.T) {
	c := loadWith(t, threeRevisions(), nil)
	more := append(threeRevisions(), edgetest.Encode(edgetest.Config(4, []*configv1.Entry{siteEntry("d", 1, "d.com")}))...)
	writeFile(t, filepath.Join(c.stateDir, configJournal), more[:len(more)-3])
	if position, _, err := c.ReloadConfig(); err != nil || position.GetRevision() != 3 || hostOwner(c, "c.com") != "c" {
		t.Errorf("%v %v", err, position)
	}
}

func TestNewProcessServesWhatItCanReadAndSaysWhatItCannot(t *testing.T) {
	whole := append(threeRevisions(), edgetest.Encode(edgetest.Config(4, []*configv1.Entry{siteEntry("d", 1, "d.com")}))...)
	second := len(threeRevisions())
	whole[second+10] ^= 0xff
	c := loadWith(t, append(whole, edgetest.Encode(edgetest.Config(5, nil))...), nil)
	if status := c.Status(); hostOwner(c, "c.com") != "c" || status.Position.GetRevision() != 3 || len(status.Warnings) != 1 {
		t.Errorf("revision %d, %q", status.Position.GetRevision(), status.Warnings)
	}
}

// A journal holds the last version that compiled before the newest, so that a restart serves the former.
func TestVersionBeforeAFailingOneServesAfterARestart(t *testing.T) {
	broken := &configv1.Entry{Kind: "site", Id: "a", Body: []byte{0xff}}
	c := loadWith(t, edgetest.Encode(edgetest.Header("node"),
		&edgev1.JournalRecord{Record: &edgev1.JournalRecord_Config{Config: &edgev1.ConfigChange{
			Upserts: []*configv1.Entry{siteEntry("a", 1, "a.com"), siteEntry("b", 1, "b.com"), broken},
		}}}, edgetest.Config(1, nil)), nil)
	if hostOwner(c, "a.com") != "a" || len(c.Status().Failed) != 1 {
		t.Errorf("a.com is served by %q, %v fail", hostOwner(c, "a.com"), c.Status().Failed)
	}
}

func TestAllFailingKeysAreListedInPages(t *testing.T) {
	c := newCore(t)
	good := siteEntry("kept", 1, "kept.com")
	change(t, c, []*configv1.Entry{good})
	const count = 2*failingPage + 5
	broken := []*configv1.Entry{{Kind: "site", Id: "kept", Body: []byte{0xff}}}
	for i := range count {
		broken = append(broken, &configv1.Entry{Kind: "site", Id: fmt.Sprintf("s%06d", i), Body: []byte{0xff}})
	}
	change(t, c, broken)
	if n := len(c.Status().Failed); n != maxReportedFailures {
		t.Errorf("%d failures are reported", n)
	}
	seen := map[string][]byte{}
	var after *configv1.EntryKey
	for page := 0; ; page++ {
		position, list, more := c.Failing(after)
		if page > 3 || len(list) == 0 || !proto.Equal(position, c.Status().Position) {
			t.Fatalf("page %d: %d keys of %v", page, len(list), position)
		}
		for _, entry := range list {
			seen[entry.GetKey().GetId()] = entry.GetRunningHash()
		}
		after = list[len(list)-1].GetKey()
		if !more {
			break
		}
	}
	if len(seen) != count+1 || len(seen["kept"]) != 32 || len(seen["s000000"]) != 0 {
		t.Errorf("%d keys, kept runs %x", len(seen), seen["kept"])
	}
}
