package store

import (
	"bytes"
	"errors"
	"os"
	"testing"
)

// closable tells whether it was closed.
type closable struct {
	File
	closed int
}

func (c *closable) Close() error { c.closed++; return nil }

func TestAFileClosesWithItsLastUse(t *testing.T) {
	for name, end := range map[string]func(f *files){
		"after its object was deleted": func(f *files) { f.forget(1) },
		"after others took its place": func(f *files) {
			for id := range maxFiles {
				f.leave(f.share(uint64(id)+2, &closable{}))
			}
		},
		"after nobody used it for long": func(f *files) { f.closeUnused(); f.closeUnused() },
	} {
		t.Run(name, func(t *testing.T) {
			var f files
			file := &closable{}
			first := f.share(1, file)
			late := &closable{}
			if second := f.share(1, late); second != first || late.closed != 1 {
				t.Fatal("a second file is open")
			}
			if f.take(1) != first || f.take(2) != nil {
				t.Fatal("the file is not shared")
			}
			f.leave(first)
			f.leave(first)
			if name != "after nobody used it for long" {
				end(&f)
				if file.closed != 0 || f.take(1) != nil {
					t.Fatal("a file in use is closed, or one that is gone used")
				}
				f.leave(first)
			} else {
				end(&f)
				if file.closed != 0 {
					t.Fatal("a file in use is closed")
				}
				f.leave(first)
				end(&f)
			}
			if file.closed != 1 || f.take(1) != nil {
				t.Fatalf("closed %d times", file.closed)
			}
		})
	}
}

func TestTheFileOfADeletedObjectIsNotKeptOpen(t *testing.T) {
	z := open(t, t.TempDir())
	o := z.put(t, metaOf("k"), pattern(2*chunk))
	early, err := o.Open(0)
	if err != nil {
		t.Fatal(err)
	}
	file := early.on.File
	z.Remove(o)
	// What is on its way goes on.
	var got gathered
	if err := early.CopyTo(&got, 0, o.Length); err != nil || !bytes.Equal(got.Bytes(), pattern(2*chunk)) {
		t.Error(got.Len(), err)
	}
	early.Close()
	if _, err := file.ReadAt(make([]byte, 1), 0); !errors.Is(err, os.ErrClosed) || z.files.take(o.id) != nil {
		t.Errorf("it is open: %v", err)
	}
}
