package store

import (
	"os"
	"testing"
	"time"
)

// A response that was removed while the files of an earlier process are not all known stays removed, whether its log is there
// or lost, and whether the process lives or dies before it knows them.
func TestWhatWasRemovedBeforeTheSweepStaysRemoved(t *testing.T) {
	for name, dies := range map[string]bool{"lives": false, "dies": true} {
		for log, lost := range map[string]bool{"with its log": false, "without its log": true} {
			t.Run(name+", "+log, func(t *testing.T) {
				dir := t.TempDir()
				z := open(t, dir)
				removed := z.put(t, metaOf("removed"), pattern(9))
				z.put(t, metaOf("kept"), pattern(9))
				z.end()
				if lost {
					for _, kind := range []string{"index", "log"} {
						for _, n := range z.log.numbers(kind) {
							_ = os.Remove(z.log.name(kind, n))
						}
					}
				}
				next := New(Options{Dir: dir})
				next.RemoveURL(KeyOf("removed", "").URL)
				if dies {
					next = New(Options{Dir: dir})
				}
				z = runStore(t, next)
				until(t, "the files are swept", z.Swept)
				if z.get("removed") != nil {
					t.Error("it is back")
				}
				if _, err := os.Stat(z.path(removed.id)); err == nil {
					t.Error("its file stays")
				}
				if z.get("kept") == nil {
					t.Error("another one is gone")
				}
				if _, err := os.Stat(z.touched.name); err == nil {
					t.Error("what was removed is kept when all files are known")
				}
				again := z.put(t, metaOf("removed"), pattern(5))
				z.end()
				z = open(t, dir)
				if o := z.get("removed"); o == nil || o.id != again.id {
					t.Error("a later response is not stored")
				}
			})
		}
	}
}

// Beyond its bound nothing that earlier processes left comes back.
func TestRemovedURLsAreBounded(t *testing.T) {
	var none touched
	none.name = t.TempDir() + "/touched"
	for url := range uint64(maxTouched + 1) {
		none.note(url, func(func() error) {})
	}
	if none.unless(1<<40, func() {}) || len(none.urls) > maxTouched {
		t.Error("it goes on")
	}
	none.end()
	if !none.unless(1, func() {}) {
		t.Error("it does not end")
	}
}

// A clock that goes back gives no file the place of an earlier one, and hides none from the sweep.
func TestIDsGoOnWhateverTheClockDoes(t *testing.T) {
	dir := t.TempDir()
	now := time.Now()
	begin := func() *zone {
		z := run(t, Options{Dir: dir, Now: func() time.Time { return now }})
		until(t, "the files are swept", z.Swept)
		return z
	}
	z := begin()
	first := z.put(t, metaOf("k"), pattern(9))
	z.end()
	for _, kind := range []string{"index", "log"} {
		for _, n := range z.log.numbers(kind) {
			_ = os.Remove(z.log.name(kind, n))
		}
	}
	now = now.Add(-time.Hour)
	z = begin()
	if o := z.get("k"); o == nil || o.id != first.id {
		t.Error("the sweep does not find it")
	}
	if second := z.put(t, metaOf("other"), pattern(9)); second.id <= first.id {
		t.Errorf("%d after %d", second.id, first.id)
	}
}

// A change of a resource and the end of a fill from before it may meet: nothing of the fill is left, whichever comes first.
func TestAResponseThatBecameWrongIsNotStored(t *testing.T) {
	z := open(t, t.TempDir())
	kept := z.put(t, metaOf("k"), pattern(9))
	w := z.Create()
	defer w.Release()
	if err := w.Write(pattern(10)); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Commit(KeyOf("k", ""), metaOf("k"), func() bool { return true }); err == nil {
		t.Error("it is stored")
	}
	if _, err := os.Stat(z.path(w.id)); err == nil {
		t.Error("its file stays")
	}
	if o := z.get("k"); o == nil || o.id != kept.id {
		t.Error("it took the place of another one")
	}
	if used, _, _ := z.Usage(); used != mustSize(t, z.path(kept.id)) {
		t.Errorf("%d bytes are used", used)
	}
}

func mustSize(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}
