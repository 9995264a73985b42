package store

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// faulty is the system's disk with faults. A fault gets what is done with which bytes, and may change them, wait or fail.
type faulty struct {
	System
	fault atomic.Pointer[func(op string, b []byte) error]
}

func (d *faulty) set(f func(op string, b []byte) error) { d.fault.Store(&f) }

func (d *faulty) try(op string, b []byte) error {
	if f := d.fault.Load(); f != nil {
		return (*f)(op, b)
	}
	return nil
}

func (d *faulty) wrap(op string, open func(string) (File, error), name string) (File, error) {
	if err := d.try(op, nil); err != nil {
		return nil, err
	}
	file, err := open(name)
	if err != nil {
		return nil, err
	}
	return faultyFile{file, d}, nil
}

func (d *faulty) Open(name string) (File, error)   { return d.wrap("open", d.System.Open, name) }
func (d *faulty) Edit(name string) (File, error)   { return d.wrap("edit", d.System.Edit, name) }
func (d *faulty) Create(name string) (File, error) { return d.wrap("create", d.System.Create, name) }

func (d *faulty) Put(name string, b []byte) error {
	if err := d.try("put", b); err != nil {
		return err
	}
	return d.System.Put(name, b)
}

func (d *faulty) Remove(name string) error {
	if err := d.try("remove", nil); err != nil {
		return err
	}
	return d.System.Remove(name)
}

type faultyFile struct {
	File
	d *faulty
}

func (f faultyFile) Descriptor() *os.File { return nil }

func (f faultyFile) ReadAt(p []byte, at int64) (int, error) {
	n, err := f.File.ReadAt(p, at)
	if failed := f.d.try("read", p[:n]); failed != nil {
		return 0, failed
	}
	return n, err
}

func (f faultyFile) WriteAt(p []byte, at int64) (int, error) {
	if err := f.d.try("write", p); err != nil {
		// A write that fails may have written a part.
		n, _ := f.File.WriteAt(p[:len(p)/2], at)
		return n, err
	}
	return f.File.WriteAt(p, at)
}

func faultyZone(t testing.TB, dir string) (*zone, *faulty) {
	t.Helper()
	d := &faulty{}
	z := run(t, Options{Dir: dir, Disk: d, DiskTimeout: 50 * time.Millisecond})
	until(t, "the zone is taken", z.Ready)
	return z, d
}

// try stores a body, and fails as Write or Commit do.
func (z *zone) try(m *Meta, body []byte) error {
	w := z.Create()
	if w == nil {
		return ErrNotStoring
	}
	defer w.Release()
	if err := w.Write(body); err != nil {
		return err
	}
	_, err := w.Commit(KeyOf(m.Key, m.Variant), m, nil)
	return err
}

var bodies = map[string]int{"a small body": 100, "a large body": 3*chunk + 17}

func TestNoFaultOfTheDiskMakesAWrongByte(t *testing.T) {
	for says, n := range bodies {
		for op, fault := range map[string]error{"open": syscall.EIO, "read": syscall.EIO, "create": syscall.ENOSPC, "put": syscall.ENOSPC,
			"write": syscall.ENOSPC, "edit": syscall.EROFS, "remove": syscall.EIO} {
			t.Run(fmt.Sprint(says, op), func(t *testing.T) {
				dir := t.TempDir()
				z, d := faultyZone(t, dir)
				z.put(t, metaOf("early"), pattern(n))
				z.memory = newMemory(1)
				d.set(func(did string, _ []byte) error {
					if did == op {
						return fault
					}
					return nil
				})
				check := func(key string, seed int) {
					t.Helper()
					if o := z.get(key); o != nil {
						if got, err := body(o, 0, o.Length); !bytes.HasPrefix(pattern(seed), got) || err == nil && len(got) != seed {
							t.Errorf("%s: %d bytes, %v", key, len(got), err)
						}
					}
				}
				check("early", n)
				_ = z.try(metaOf("late"), pattern(n+1))
				check("late", n+1)
				if o := z.get("early"); o != nil {
					_, _ = z.Refresh(o, metaOf("early"))
					z.Remove(o)
				}
				d.set(func(string, []byte) error { return nil })
				check("late", n+1)
				z.end()
				z.zone2(t, dir)
				check("early", n)
				check("late", n+1)
				if z.put(t, metaOf("late"), pattern(n+2)); z.get("late").Length != int64(n+2) {
					t.Error("it does not store after the fault")
				}
			})
		}
	}
}

// zone2 is the zone after a restart, once its files are swept.
func (z *zone) zone2(t testing.TB, dir string) {
	t.Helper()
	*z = *open(t, dir)
	until(t, "the files are swept", z.Swept)
}

func TestWrongBytesOfTheDiskAreSeenAtTheFirstHit(t *testing.T) {
	for says, n := range bodies {
		t.Run(says, func(t *testing.T) {
			dir := t.TempDir()
			z := open(t, dir)
			z.put(t, metaOf("k"), pattern(n))
			z.end()
			next, d := faultyZone(t, dir)
			d.set(func(op string, b []byte) error {
				if op == "read" && (len(b) == n || len(b) == chunk) {
					b[len(b)-1] ^= 1
				}
				return nil
			})
			if o := next.get("k"); o != nil {
				if got, err := body(o, 0, o.Length); err == nil || len(got) > 0 {
					t.Errorf("%d bytes left", len(got))
				}
			}
			d.set(func(string, []byte) error { return nil })
			if next.get("k") != nil {
				t.Error("it is found once more")
			}
		})
	}
}

func TestADiskThatHangsHoldsNoRequest(t *testing.T) {
	z, d := faultyZone(t, t.TempDir())
	for i := range 20 {
		z.put(t, metaOf(fmt.Sprint("k", i)), pattern(200+i))
	}
	known := z.put(t, metaOf("large"), pattern(2*chunk))
	z.memory = newMemory(1)
	// The sweep uses the disk, too.
	until(t, "the files are swept", z.Swept)
	hang := make(chan struct{})
	var asked atomic.Int64
	d.set(func(string, []byte) error {
		asked.Add(1)
		<-hang
		return nil
	})
	for i := range 20 {
		if z.get(fmt.Sprint("k", i)) != nil {
			t.Error("a response came from a disk that hangs")
		}
	}
	if _, err := known.Open(0); !errors.Is(err, ErrSlow) {
		t.Error(err)
	}
	for i := range 20 {
		if err := z.try(metaOf(fmt.Sprint("n", i)), pattern(9)); !errors.Is(err, ErrSlow) {
			t.Error(err)
		}
		if err := z.try(metaOf(fmt.Sprint("m", i)), pattern(2*chunk)); !errors.Is(err, ErrSlow) {
			t.Error(err)
		}
	}
	// The scrub may read one file beside the requests.
	if n := asked.Load(); n > 2*mostLate+1 {
		t.Errorf("the disk was asked %d times", n)
	}
	close(hang)
	until(t, "the disk is used again", func() bool { return z.get("k0") != nil && z.try(metaOf("n"), pattern(9)) == nil })
	for i := range 20 {
		if z.get(fmt.Sprint("k", i)) == nil {
			t.Error("what could not be read was deleted")
		}
		if z.get(fmt.Sprint("n", i)) != nil {
			t.Error("a response that was given up is stored")
		}
	}
	until(t, "what was given up is deleted", func() bool { used, _, _ := z.Usage(); return fileSizes(z.dir) == used })
}

func TestWantOfDescriptorsDeletesNothing(t *testing.T) {
	z, d := faultyZone(t, t.TempDir())
	o := z.put(t, metaOf("k"), pattern(2*chunk))
	z.memory = newMemory(1)
	d.set(func(op string, _ []byte) error { return &os.PathError{Op: op, Err: syscall.EMFILE} })
	if z.get("k") != nil {
		t.Error("it was read")
	}
	if _, err := o.Open(0); err == nil {
		t.Error("it was opened")
	}
	d.set(func(string, []byte) error { return nil })
	if z.get("k") == nil {
		t.Error("it is gone")
	}
}

func TestAResponseWithoutEndDoesNotFillTheDisk(t *testing.T) {
	for says, o := range map[string]Options{
		"half of the zone":     {MaxBytes: 8 << 20},
		"the room of the disk": {Free: func(string) (int64, int64, error) { return 100 << 30, 1<<30 + 4<<20, nil }},
	} {
		t.Run(says, func(t *testing.T) {
			o.Dir = t.TempDir()
			z := run(t, o)
			until(t, "the zone is taken", z.Ready)
			w := z.Create()
			defer w.Release()
			part := pattern(1 << 20)
			for i := 0; w.Write(part) == nil; i++ {
				if i > 10 {
					t.Fatal("it is written on")
				}
			}
		})
	}
}

// keeper is a sink that fails, and goes on using what it was to send, as a server of HTTP/2 may.
type keeper struct{ kept []byte }

func (k *keeper) Write(p []byte) error { k.kept = p; return errors.New("the client is gone") }
func (k *keeper) Flush() error         { return nil }

func TestABufferThatASinkMayStillUseIsNotUsedAgain(t *testing.T) {
	for _, checked := range []bool{true, false} {
		dir := t.TempDir()
		z := open(t, dir)
		z.put(t, metaOf("a"), pattern(2*chunk))
		z.put(t, metaOf("b"), pattern(2*chunk+1))
		if !checked {
			z.end()
			z = open(t, dir)
		}
		for range 20 {
			k := &keeper{}
			b, err := z.get("a").Open(0)
			if err != nil {
				t.Fatal(err)
			}
			_ = b.CopyTo(k, 0, chunk)
			b.Close()
			if _, err := body(z.get("b"), 0, chunk); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(k.kept, pattern(2 * chunk)[:len(k.kept)]) {
				t.Fatal("another response's bytes are in the buffer")
			}
		}
	}
}

func TestAZoneThatIsTakenBackIsAsTheOtherProcessLeftIt(t *testing.T) {
	dir := t.TempDir()
	old := open(t, dir)
	old.put(t, metaOf("a"), pattern(9))
	old.put(t, metaOf("b"), pattern(8))
	next := run(t, Options{Dir: dir})
	until(t, "the new one has the zone", next.Ready)
	next.RemoveURL(KeyOf("a", "").URL)
	next.put(t, metaOf("b"), pattern(7))
	next.end()
	until(t, "the old one has the zone again", old.Ready)
	if old.get("a") != nil {
		t.Error("what the other one deleted is served")
	}
	if o := old.get("b"); o == nil || o.Length != 7 {
		t.Error("an earlier response is served")
	}
	if used, _, n := old.Usage(); n != 1 || used != fileSizes(dir) {
		t.Errorf("%d objects in %d bytes, the files have %d", n, used, fileSizes(dir))
	}
}

// half writes half of what it is given, for a time.
type half struct {
	logFile
	full bool
}

func (h *half) WriteAt(p []byte, at int64) (int, error) {
	if h.full {
		n, _ := h.logFile.WriteAt(p[:len(p)/2], at)
		return n, syscall.ENOSPC
	}
	return h.logFile.WriteAt(p, at)
}

func TestTheLogGoesOnAfterAWriteThatFailed(t *testing.T) {
	dir := t.TempDir()
	j := &journal{dir: dir}
	if err := j.next(); err != nil {
		t.Fatal(err)
	}
	h := &half{logFile: j.file, full: true}
	j.file = h
	want := ""
	for i := range uint64(9) {
		want += fmt.Sprint(i, " ")
		j.append(opPut, &entry{id: i})
		if err := j.flush(); (err == nil) == h.full {
			t.Fatal(err)
		}
		h.full = i%3 != 1
	}
	h.full = false
	j.close()
	var got strings.Builder
	(&journal{dir: dir}).replay(func(_ uint8, e entry) { fmt.Fprint(&got, e.id, " ") })
	if got.String() != want {
		t.Errorf("%q is not %q", got.String(), want)
	}
	j = &journal{dir: dir}
	_ = j.next()
	h = &half{logFile: j.file, full: true}
	j.file = h
	for range maxBuffered / recordSize * 2 {
		j.append(opPut, &entry{})
	}
	if len(j.buffer) > maxBuffered+recordSize {
		t.Errorf("%d bytes wait for a disk that takes none", len(j.buffer))
	}
}

func TestTheScrubDeletesWhatIsDamagedBeforeAClientAsksForIt(t *testing.T) {
	z := open(t, t.TempDir())
	for says, n := range bodies {
		z.put(t, metaOf(says), pattern(n))
		hurt := z.put(t, metaOf("damaged "+says), pattern(n))
		b, err := os.ReadFile(z.path(hurt.id))
		if err == nil {
			b[preamble+n-1] ^= 1
			err = os.WriteFile(z.path(hurt.id), b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.scrubOnce(&pace{}); err != nil {
		t.Fatal(err)
	}
	until(t, "both are deleted", func() bool { return z.counts.Damaged.Load() == uint64(len(bodies)) })
	for says, n := range bodies {
		if o := z.get(says); o == nil || o.Length != int64(n) {
			t.Errorf("%s that is whole is gone", says)
		}
		if z.get("damaged "+says) != nil {
			t.Errorf("%s is still there", says)
		}
	}
}
