package exchange

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
)

var errDisk = errors.New("the disk is full")

// scarce is a room with so much memory and so large files.
type scarce struct {
	memory int
	// What files take; -1: none can be opened.
	disk  int
	given int
	open  int
}

func (r *scarce) Take(n int) bool {
	if n > r.memory {
		return false
	}
	r.memory -= n
	return true
}

func (r *scarce) Give(n int) { r.given += n }

func (r *scarce) File() (SpoolFile, error) {
	if r.disk < 0 {
		return nil, errDisk
	}
	f, err := os.CreateTemp("", "body-")
	if err != nil {
		return nil, err
	}
	_ = os.Remove(f.Name())
	r.open++
	return &scarceFile{f, r}, nil
}

type scarceFile struct {
	*os.File
	room *scarce
}

func (f *scarceFile) WriteAt(p []byte, at int64) (int, error) {
	if over := int(at) + len(p) - f.room.disk; over > 0 {
		n, _ := f.File.WriteAt(p[:max(0, len(p)-over)], at)
		return n, errDisk
	}
	return f.File.WriteAt(p, at)
}

func (f *scarceFile) Close() error {
	f.room.open--
	return f.File.Close()
}

// Whatever there is no room for, whoever reads the body afterwards gets every byte, and gets it again.
func TestNothingIsLostWhereThereIsNoRoom(t *testing.T) {
	const length = 300_000
	var content strings.Builder
	for i := 0; content.Len() < length; i++ {
		fmt.Fprintf(&content, "%d ", i)
	}
	text := content.String()[:length]
	for name, room := range map[string]scarce{
		"no memory":                  {memory: 0, disk: length},
		"no memory and no file":      {memory: 0, disk: -1},
		"memory and no file":         {memory: lookMemory, disk: -1},
		"a full disk":                {memory: lookMemory, disk: 0},
		"a full disk and no memory":  {memory: 0, disk: 0},
		"a disk that takes a byte":   {memory: lookMemory, disk: 1},
		"a disk full within a piece": {memory: lookMemory, disk: spoolPiece + 1000},
		"a disk full after a piece":  {memory: 0, disk: 2 * spoolPiece},
		"room enough":                {memory: lookMemory, disk: length},
		"some memory":                {memory: lookMemory / 2, disk: length},
	} {
		for _, announced := range []int64{length, -1} {
			for _, n := range []int64{1000, length / 2, length, length + 1} {
				r, taken := room, room.memory
				b := &bodyOf(announced, text[:50_000], text[50_000:250_000], text[250_000:]).Body
				_, err := b.Inspect(n, &r)
				if enough := strings.Contains(name, "enough"); err != nil && (enough || !errors.Is(err, errDisk)) {
					t.Errorf("%s, %d of %d: %v", name, n, announced, err)
				}
				kept := b.InspectedLength()
				first := make([]byte, min(kept, 1000))
				if _, err := io.ReadFull(b, first); err != nil || !b.Rewind() {
					t.Errorf("%s, %d of %d, the first time: %v", name, n, announced, err)
				}
				if head, _, err := b.Look(int(min(kept, 100_000))); err != nil || string(head) != text[:min(kept, 100_000)] {
					t.Errorf("%s, %d of %d: a look at %d bytes: %v", name, n, announced, len(head), err)
				}
				if all, err := io.ReadAll(b); err != nil || string(all) != text {
					t.Errorf("%s, %d of %d: %d bytes, %v", name, n, announced, len(all), err)
				}
				b.forget()
				if r.memory+r.given != taken || r.open != 0 {
					t.Errorf("%s, %d of %d: %d of %d bytes and %d files are not given back", name, n, announced, taken-r.memory-r.given, taken, r.open)
				}
			}
		}
	}
}

// What a look kept is somebody else's as soon as the origin has it, however long its answer takes.
func TestWhatWasStreamedIsGivenBack(t *testing.T) {
	text := strings.Repeat("0123456789", 20_000)
	for _, n := range []int64{1000, 150_000, 200_001} {
		r := scarce{memory: lookMemory, disk: len(text)}
		b := &bodyOf(-1, text, "the end").Body
		if _, err := b.Inspect(n, &r); err != nil {
			t.Fatal(err)
		}
		kept := b.InspectedLength()
		b.Stream()
		got := make([]byte, kept)
		if _, err := io.ReadFull(b, got); err != nil || r.memory+r.given != lookMemory || r.open != 0 {
			t.Errorf("%d: %v, %d bytes and %d files are kept", n, err, lookMemory-r.memory-r.given, r.open)
		}
		rest, err := io.ReadAll(b)
		if string(got)+string(rest) != text+"the end" || err != nil || b.Rewind() {
			t.Errorf("%d: %d and %d bytes, %v", n, len(got), len(rest), err)
		}
	}
}
