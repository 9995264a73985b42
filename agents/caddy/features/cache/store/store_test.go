package store

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"
)

var sizes = []int{0, 1, 5000, chunk - 1, chunk, chunk + 1, 3*chunk + 17}

func TestResponsesSurviveARestart(t *testing.T) {
	dir := t.TempDir()
	z := open(t, dir)
	for _, n := range sizes {
		o := z.put(t, metaOf(fmt.Sprint("k", n)), pattern(n))
		if got, err := body(o, 0, o.Length); err != nil || !bytes.Equal(got, pattern(n)) {
			t.Errorf("%d bytes at once: %d %v", n, len(got), err)
		}
	}
	gone := z.put(t, metaOf("gone"), pattern(9))
	z.Remove(gone)
	for range 2 {
		z.end()
		z = open(t, dir)
		for _, n := range sizes {
			key := fmt.Sprint("k", n)
			o := z.get(key)
			if o == nil {
				t.Fatalf("%d bytes are gone", n)
			}
			if want := metaOf(key); !reflect.DeepEqual(o.Meta, want) {
				t.Errorf("%+v is not %+v", o.Meta, want)
			}
			for range 2 {
				if got, err := body(o, 0, o.Length); err != nil || !bytes.Equal(got, pattern(n)) {
					t.Errorf("%d bytes: %d %v", n, len(got), err)
				}
			}
			if n > 3 {
				if got, err := body(o, 2, int64(n-3)); err != nil || !bytes.Equal(got, pattern(n)[2:n-1]) {
					t.Errorf("a part of %d bytes: %d %v", n, len(got), err)
				}
			}
		}
		if z.get("gone") != nil {
			t.Error("a deleted response is back")
		}
	}
}

// Each damage must make the response a miss, or end it before a wrong byte.
func TestATornForeignOrOlderFileIsNeverServed(t *testing.T) {
	for _, n := range []int{100, 3*chunk + 17} {
		for says, damage := range map[string]func(t *testing.T, b []byte) []byte{
			"cut at the end":            func(_ *testing.T, b []byte) []byte { return b[:len(b)-1] },
			"cut in the body":           func(_ *testing.T, b []byte) []byte { return b[:preamble+50] },
			"empty":                     func(_ *testing.T, b []byte) []byte { return nil },
			"a wrong byte in the body":  func(_ *testing.T, b []byte) []byte { b[preamble+60] ^= 1; return b },
			"a wrong byte at its end":   func(_ *testing.T, b []byte) []byte { b[preamble+n-1] ^= 1; return b },
			"a wrong byte in the head":  func(_ *testing.T, b []byte) []byte { b[preamble+n+20] ^= 1; return b },
			"a wrong byte in the tail":  func(_ *testing.T, b []byte) []byte { b[len(b)-9] ^= 1; return b },
			"of another zone":           func(_ *testing.T, b []byte) []byte { b[len(magic)] ^= 1; return b },
			"a body of zeros":           func(_ *testing.T, b []byte) []byte { clear(b[preamble : preamble+n]); return b },
			"another object's":          nil,
			"an older one of the index": nil,
		} {
			t.Run(fmt.Sprint(says, n), func(t *testing.T) {
				dir := t.TempDir()
				z := open(t, dir)
				o := z.put(t, metaOf("k"), pattern(n))
				before, _ := os.ReadFile(z.path(o.id))
				switch says {
				case "another object's":
					other := z.put(t, metaOf("other"), pattern(n))
					b, _ := os.ReadFile(z.path(other.id))
					damage = func(*testing.T, []byte) []byte { return b }
				case "an older one of the index":
					m := metaOf("k")
					m.Lifetime = 0
					if _, err := z.Refresh(o, m); err != nil {
						t.Fatal(err)
					}
					damage = func(*testing.T, []byte) []byte { return before }
				}
				z.end()
				b, err := os.ReadFile(z.path(o.id))
				if err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(z.path(o.id), damage(t, b), 0o600); err != nil {
					t.Fatal(err)
				}
				z = open(t, dir)
				if o = z.get("k"); o == nil {
					return
				}
				got, err := body(o, 0, o.Length)
				if err == nil {
					t.Fatal("it is served")
				}
				if !bytes.HasPrefix(pattern(n), got) {
					t.Error("a wrong byte left")
				}
				if z.get("k") != nil {
					t.Error("it is found once more")
				}
			})
		}
	}
}

func TestTheSweepFindsWhatTheLogLost(t *testing.T) {
	dir := t.TempDir()
	z := open(t, dir)
	o := z.put(t, metaOf("k"), pattern(3*chunk))
	torn := z.put(t, metaOf("torn"), pattern(chunk))
	z.end()
	for _, kind := range []string{"index", "log"} {
		for _, n := range z.log.numbers(kind) {
			_ = os.Remove(z.log.name(kind, n))
		}
	}
	_ = os.Truncate(z.path(torn.id), 5000)
	z = open(t, dir)
	until(t, "the files are swept", func() bool {
		return z.counts.Adopted.Load() == 1 && z.counts.Orphans.Load() == 1
	})
	if o = z.get("k"); o == nil {
		t.Fatal("it is gone")
	}
	if got, err := body(o, 0, o.Length); err != nil || !bytes.Equal(got, pattern(3*chunk)) {
		t.Errorf("%d %v", len(got), err)
	}
	if _, err := os.Stat(z.path(torn.id)); err == nil {
		t.Error("the torn file stays")
	}
}

func TestAnOldGenerationStopsStoringBeforeANewOneDoes(t *testing.T) {
	dir := t.TempDir()
	old := open(t, dir)
	old.put(t, metaOf("a"), pattern(9))
	begun := old.Create()
	defer begun.Release()
	_ = begun.Write(pattern(10))
	next := run(t, Options{Dir: dir})
	until(t, "the new one has the zone", next.Ready)
	if old.Ready() || old.Create() != nil {
		t.Error("the old one stores")
	}
	if _, err := begun.Commit(KeyOf("b", ""), metaOf("b"), nil); err == nil {
		t.Error("a fill of the old one was stored")
	}
	if next.get("a") == nil || next.get("b") != nil {
		t.Error("the new one has not what the old one had")
	}
	if old.get("a") == nil {
		t.Error("the old one does not serve while it drains")
	}
	next.end()
	until(t, "the old one takes back what nobody has", old.Ready)
}

func TestAResponseTakesThePlaceOfTheEarlierOneOfItsKey(t *testing.T) {
	z := open(t, t.TempDir())
	first := z.put(t, metaOf("k"), pattern(1))
	second := z.put(t, metaOf("k"), pattern(2))
	if o := z.get("k"); o.id != second.id {
		t.Error("the earlier one is found")
	}
	if _, err := os.Stat(z.path(first.id)); err == nil {
		t.Error("its file stays")
	}
	m := metaOf("k")
	m.Header.Set("X", "new")
	if _, err := z.Refresh(second, m); err != nil {
		t.Fatal(err)
	}
	z.memory.remove(second.id)
	if o := z.get("k"); o == nil || o.Header.Get("X") != "new" || o.Length != 2 {
		t.Error("a refresh is lost")
	}
	if used, _, n := z.Usage(); n != 1 || used != fileSizes(z.dir) {
		t.Errorf("%d objects in %d bytes, the files have %d", n, used, fileSizes(z.dir))
	}
}

func fileSizes(dir string) (sum int64) {
	names, _ := filepath.Glob(filepath.Join(dir, "???", "*"))
	for _, name := range names {
		if info, err := os.Stat(name); err == nil {
			sum += info.Size()
		}
	}
	return sum
}

func TestVariantsOfAURL(t *testing.T) {
	z := open(t, t.TempDir())
	variant := func(vary []string, value string) uint64 { return KeyOf("k", fmt.Sprint(vary, value)).Variant }
	put := func(vary []string, value string) {
		m := metaOf("k")
		m.Vary, m.Variant = vary, fmt.Sprint(vary, value)
		z.put(t, m, []byte(value))
	}
	find := func(value string) string {
		o := z.Find(KeyOf("k", "").URL, "k", func(vary []string) uint64 { return variant(vary, value) })
		if o == nil {
			return ""
		}
		return string(o.body)
	}
	put([]string{"A"}, "1")
	put([]string{"A"}, "2")
	if find("1") != "1" || find("2") != "2" || find("3") != "" {
		t.Error("variants are mixed up")
	}
	put([]string{"A", "B"}, "1")
	if o := find("1"); o != "1" {
		t.Error(o)
	}
	for i := range maxVariants + 10 {
		put([]string{"A"}, fmt.Sprint("v", i))
	}
	if _, _, n := z.Usage(); n != maxVariants {
		t.Errorf("%d variants of one URL", n)
	}
	z.RemoveURL(KeyOf("k", "").URL)
	if _, _, n := z.Usage(); n != 0 || fileSizes(z.dir) != 0 {
		t.Error("not all variants of a URL are deleted")
	}
}

func TestTheZoneStaysWithinItsBounds(t *testing.T) {
	now := time.Now()
	clock := make(chan time.Time, 1)
	clock <- now
	tell := func() time.Time { at := <-clock; clock <- at; return at }
	free := make(chan int64, 1)
	free <- 1 << 40
	z := run(t, Options{Dir: t.TempDir(), MaxBytes: 1 << 20, Now: tell, Free: func(string) (int64, int64, error) {
		n := <-free
		free <- n
		return 1 << 40, n, nil
	}})
	until(t, "the zone is taken", z.Ready)
	for i := range 300 {
		z.put(t, metaOf(fmt.Sprint("k", i)), pattern(8000))
		<-clock
		clock <- now.Add(time.Duration(i) * time.Second)
	}
	until(t, "the zone is small enough", func() bool { return fileSizes(z.dir) <= 1<<20 })
	early, late := 0, 0
	for i := range 150 {
		if z.get(fmt.Sprint("k", i)) != nil {
			early++
		}
		if z.get(fmt.Sprint("k", 299-i)) != nil {
			late++
		}
	}
	if late < 90 || early > late/3 {
		t.Errorf("%d of the later half are left, %d of the earlier", late, early)
	}
	if z.Admits(Key{1, 1}, 10) || !z.Admits(Key{1, 1}, 10) {
		t.Error("above 80 % full a response is stored at its second request")
	}
	<-free
	free <- 0
	z.lookAtDisk()
	if z.Admits(Key{1, 1}, 10) {
		t.Error("the disk is too full")
	}
	if _, _, n := z.Usage(); n != 0 {
		t.Errorf("%d objects are left on a disk that is full", n)
	}
	<-free
	free <- 1 << 40
	z.lookAtDisk()
	z.put(t, metaOf("k"), pattern(9))
	<-clock
	clock <- now.Add(8 * 24 * time.Hour)
	z.removeInactive()
	if z.get("k") != nil {
		t.Error("an inactive object stays")
	}
}

func TestTheLogIsCutByACheckpoint(t *testing.T) {
	dir := t.TempDir()
	z := open(t, dir)
	for i := range 50 {
		z.put(t, metaOf(fmt.Sprint("k", i%20)), pattern(i))
	}
	if err := z.log.checkpoint(&z.index); err != nil {
		t.Fatal(err)
	}
	if len(z.log.numbers("index")) != 1 || len(z.log.numbers("log")) != 1 {
		t.Error("earlier files stay")
	}
	z.put(t, metaOf("last"), pattern(1))
	z.end()
	z = open(t, dir)
	if _, _, n := z.Usage(); n != 21 || z.get("last") == nil {
		t.Errorf("%d objects", n)
	}
}

func TestHeadsAreReadAsTheyWereWritten(t *testing.T) {
	m := metaOf("k" + Separator + "rest")
	m.Vary, m.Variant, m.Flags = []string{"A", "B"}, "x\x00", 7
	m.InitialAge, m.StaleIfError, m.StaleWhileRevalidate = 1500*time.Millisecond, time.Second, time.Hour
	got, rest, err := decodeMeta(m.append(nil))
	if err != nil || len(rest) > 0 || !reflect.DeepEqual(got, m) {
		t.Errorf("%+v %v", got, err)
	}
}

func FuzzHead(f *testing.F) {
	m := metaOf("k")
	end, _ := appendEnd([]byte("preamble........body"), m, 5, 4, 20, []uint32{1})
	f.Add(end)
	f.Add(m.append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		if m, rest, err := decodeMeta(b); err == nil {
			again, _, err := decodeMeta(slices.Concat(m.append(nil), rest))
			if err != nil || !reflect.DeepEqual(m, again) {
				t.Errorf("%+v is read as %+v: %v", m, again, err)
			}
		}
		if len(b) > preamble {
			if _, e, sums, err := readEnd(bytes.NewReader(b), 5, int64(len(b))); err == nil && int64(len(sums)) != (e.length+chunk-1)/chunk {
				t.Error("check sums are missing")
			}
		}
	})
}
