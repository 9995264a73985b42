package store

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Options of a Store.
type Options struct {
	// Dir is the folder of the zone, which is nobody else's.
	Dir string
	// MaxBytes is how much the files may have; 0 = 10 GiB. InactiveAfter is when an object that nobody asked for leaves; 0 = 7
	// days. Both can be changed with SetLimits.
	MaxBytes      int64
	InactiveAfter time.Duration
	// MemoryBytes is the room for objects in memory; 0 = 64 MiB.
	MemoryBytes int64
	// Now is nil for the real clock.
	Now func() time.Time
	// Free tells how large the disk is and how much of it is free; nil asks the system.
	Free func(dir string) (total, free int64, err error)
	// Disk is nil for the system's. DiskTimeout is how long a request waits for it; 0 = 5 s.
	Disk        Disk
	DiskTimeout time.Duration
	// Damaged hears of a file that is not what the index says; may be nil.
	Damaged func(id uint64, err error)
}

// Store keeps responses. Make it with New, and have it Run.
type Store struct {
	dir  string
	zone atomic.Pointer[[8]byte]
	disk Disk
	// Requests and fills use the disk within these.
	reads, writes *guard
	now           func() time.Time
	free          func(string) (int64, int64, error)
	told          func(uint64, error)
	index         index
	vary          varies
	memory        *memory
	files         files
	log           journal
	lock          lock
	seen          doorkeeper
	touched       touched

	maxBytes, inactive atomic.Int64
	used               atomic.Int64
	lastID             atomic.Uint64
	// The disk has too little room; how many bytes may be written until it has, or is looked at again.
	tight atomic.Bool
	room  atomic.Int64
	swept atomic.Bool
	evict chan struct{}
	// Of those that append heads to files.
	heads [64]sync.Mutex

	// This process may write to the zone; how many of its goroutines do.
	owned   atomic.Bool
	writing atomic.Int64
	// Closed once the sweep of the last time that the zone was taken has ended.
	sweeping chan struct{}

	counts Counts
}

// Counts are counters since the process began.
type Counts struct {
	Stored, Evicted, Inactive, Checked, Damaged, Adopted, Orphans, WriteErrors, ReadErrors, Refused atomic.Uint64
}

// New makes a store, and touches nothing: Run takes the zone, and loads its index while the store serves.
func New(o Options) *Store {
	s := &Store{dir: o.Dir, now: o.Now, free: o.Free, told: o.Damaged, evict: make(chan struct{}, 1), disk: o.Disk,
		reads: newGuard(o.DiskTimeout), writes: newGuard(o.DiskTimeout)}
	s.zone.Store(new([8]byte))
	s.room.Store(1 << 40)
	if s.disk == nil {
		s.disk = System{}
	}
	if s.now == nil {
		s.now = time.Now
	}
	if s.free == nil {
		s.free = diskSpace
	}
	if o.MemoryBytes == 0 {
		o.MemoryBytes = 64 << 20
	}
	s.memory = newMemory(o.MemoryBytes)
	s.log.dir = o.Dir
	s.touched.name = filepath.Join(o.Dir, "touched")
	var name [8]byte
	_, _ = rand.Read(name[:])
	s.lock = lock{dir: o.Dir, name: hex.EncodeToString(name[:])}
	s.SetLimits(o.MaxBytes, o.InactiveAfter)
	return s
}

// SetLimits changes how much the files may have, in bytes, and when what nobody asks for leaves; 0 is the default.
func (s *Store) SetLimits(maxBytes int64, inactiveAfter time.Duration) {
	if maxBytes == 0 {
		maxBytes = 10 << 30
	}
	if inactiveAfter == 0 {
		inactiveAfter = 7 * 24 * time.Hour
	}
	s.inactive.Store(int64(inactiveAfter))
	if s.maxBytes.Swap(maxBytes) > maxBytes {
		s.wakeEviction()
	}
}

// Usage is how much there is in the files, in bytes and objects, and how much there may be.
func (s *Store) Usage() (used, most int64, objects int) {
	return s.used.Load(), s.maxBytes.Load(), s.index.len()
}

// Counters are the counters of the store.
func (s *Store) Counters() *Counts { return &s.counts }

// ErrNotStoring says that this process does not write to the zone now.
var ErrNotStoring = errors.New("the zone takes no response now")

// enter reports whether this process may write to the zone, which it then keeps until leave.
func (s *Store) enter() bool {
	s.writing.Add(1)
	if s.owned.Load() {
		return true
	}
	s.writing.Add(-1)
	return false
}

func (s *Store) leave() { s.writing.Add(-1) }

// begin makes the zone this process's own, which holds its lock. Files with smaller ids than first are of earlier processes.
func (s *Store) begin() (first uint64, err error) {
	if s.sweeping != nil {
		<-s.sweeping
	}
	if err := s.readZone(); err != nil {
		return 0, err
	}
	// What this process knows of an earlier time is not what another one left.
	s.index.each(func(entries []entry) bool {
		for i := range entries {
			s.take(s.index.change(entries[i].url, entries[i].id, func(*entry) bool { return false }))
		}
		return true
	})
	s.touched.begin()
	s.vary.load(s.dir)
	highest := max(uint64(s.now().UnixMicro()), s.lastID.Load())
	s.log.replay(func(op uint8, e entry) {
		highest = max(highest, e.id+1)
		switch op {
		case opPut:
			if s.vary.known(e.vary) {
				s.touched.unless(e.url, func() { s.place(e, nil) })
			}
		case opRemove:
			s.take(s.index.change(e.url, e.id, func(*entry) bool { return false }))
		}
	})
	if highest, err = s.reserveIDs(highest); err != nil {
		return 0, err
	}
	s.lastID.Store(highest)
	if err := s.log.next(); err != nil {
		return 0, err
	}
	s.owned.Store(true)
	return highest, nil
}

// idsOfRun are more than a process gives files.
const idsOfRun = 1 << 40

// reserveIDs returns an id below which are those of all earlier processes, and notes where the next one begins: a crash may
// lose the log, and the clock may go back.
func (s *Store) reserveIDs(highest uint64) (uint64, error) {
	name := filepath.Join(s.dir, "ids")
	if b, err := os.ReadFile(name); err == nil && len(b) == 8 {
		if noted := binary.LittleEndian.Uint64(b); noted < 1<<63 {
			highest = max(highest, noted)
		}
	}
	if err := os.WriteFile(name+".new", binary.LittleEndian.AppendUint64(nil, highest+idsOfRun), 0o600); err != nil {
		return 0, err
	}
	return highest, os.Rename(name+".new", name)
}

// readZone reads the name of the zone that its files have, or makes one.
func (s *Store) readZone() error {
	name := filepath.Join(s.dir, "zone")
	b, err := os.ReadFile(name)
	zone := &[8]byte{}
	if err == nil && len(b) == len(zone) {
		copy(zone[:], b)
		s.zone.Store(zone)
		return nil
	}
	_, _ = rand.Read(zone[:])
	s.zone.Store(zone)
	if err := os.WriteFile(name+".new", zone[:], 0o600); err != nil {
		return err
	}
	return os.Rename(name+".new", name)
}

// place puts an entry into the index, and counts it instead of those that it replaces.
func (s *Store) place(e entry, wrong func() bool) (replaced []entry) {
	s.used.Add(int64(e.size))
	replaced = s.index.put(e, wrong)
	for i := range replaced {
		s.used.Add(-int64(replaced[i].size))
		s.memory.remove(replaced[i].id)
		s.files.forget(replaced[i].id)
	}
	return replaced
}

func (s *Store) take(e entry, ok bool) bool {
	if ok {
		s.used.Add(-int64(e.size))
		s.memory.remove(e.id)
		s.files.forget(e.id)
	}
	return ok
}

// Find returns the stored response for a request, nil without one. variant is asked for the hash of what the request has in a
// list of fields, at most once for each list; key is what the response must have been stored under.
func (s *Store) Find(url uint64, key string, variant func(vary []string) uint64) *Object {
	var last uint16
	var hash uint64
	asked := false
	e, ok := s.index.find(url, s.seconds(), func(vary uint16) uint64 {
		if !asked || vary != last {
			last, asked, hash = vary, true, variant(s.vary.names(vary))
		}
		return hash
	})
	if !ok {
		return nil
	}
	if o := s.memory.get(e.id); o != nil {
		if o.Key != key {
			return nil
		}
		return o
	}
	o, err := within(s.reads, func() (*Object, error) { return s.load(e) }, nil)
	if err == nil && !slices.Equal(o.Vary, s.vary.names(e.vary)) {
		err = errNotOurs
	}
	if err != nil {
		s.remove(e, err)
		return nil
	}
	if o.Key != key {
		return nil
	}
	s.memory.put(o)
	return o
}

func (s *Store) seconds() uint32 { return uint32(s.now().Unix()) }

// passing reports whether a failure says nothing about the file.
func passing(err error) bool {
	for _, may := range [...]error{ErrSlow, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EAGAIN, syscall.EINTR} {
		if errors.Is(err, may) {
			return true
		}
	}
	return false
}

// remove deletes what an entry says because of a failure, where this process may.
func (s *Store) remove(e entry, why error) {
	if passing(why) {
		s.counts.ReadErrors.Add(1)
		return
	}
	if !errors.Is(why, os.ErrNotExist) {
		s.counts.Damaged.Add(1)
		if s.told != nil {
			s.told(e.id, why)
		}
	}
	s.drop(e.url, e.id)
}

func (s *Store) damaged(o *Object, err error) { s.remove(entry{url: o.url, id: o.id}, err) }

// Remove deletes an object. Responses that are on their way go on.
func (s *Store) Remove(o *Object) { s.drop(o.url, o.id) }

// RemoveURL deletes all objects of a URL.
func (s *Store) RemoveURL(url uint64) {
	s.touch(url)
	for _, e := range s.index.removeURL(url) {
		s.take(e, true)
		s.erase(e)
	}
}

// touch says that what earlier processes left of a URL is not to come back.
func (s *Store) touch(url uint64) {
	s.touched.note(url, func(write func() error) {
		if s.writes.attempt(write, nil) != nil {
			s.counts.WriteErrors.Add(1)
		}
	})
}

func (s *Store) drop(url, id uint64) bool {
	s.touch(url)
	e, ok := s.index.change(url, id, func(*entry) bool { return false })
	if s.take(e, ok) {
		s.erase(e)
	}
	return ok
}

// erase deletes the file of an entry that is not in the index any more.
func (s *Store) erase(e entry) {
	if s.enter() {
		s.log.append(opRemove, &e)
		s.leave()
		_ = s.delete(e.id)
	}
}

// delete deletes a file. A hanging disk may do it later.
func (s *Store) delete(id uint64) error {
	err := s.writes.attempt(func() error {
		if !s.enter() {
			return ErrNotStoring
		}
		defer s.leave()
		return s.disk.Remove(s.path(id))
	}, nil)
	if err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, ErrNotStoring) {
		s.counts.WriteErrors.Add(1)
	}
	return err
}

func (s *Store) setChecked(o *Object) {
	if _, ok := s.index.change(o.url, o.id, func(e *entry) bool { e.flags |= checked; return true }); !ok {
		return
	}
	next := *o
	next.checked = true
	s.memory.replace(o, &next)
}

// Create begins a response, nil where this process does not store now.
func (s *Store) Create() *Writer {
	if !s.owns() {
		return nil
	}
	return &Writer{store: s, id: s.lastID.Add(1)}
}

// Admits reports whether a response is to be stored: always while there is much room, above 80 % full at its second request,
// and never while the disk has too little room.
func (s *Store) Admits(k Key, length int64) bool {
	switch most := s.maxBytes.Load(); {
	case !s.takes(length):
	case s.used.Load() <= most/5*4, s.seen.again(k):
		return true
	}
	s.counts.Refused.Add(1)
	return false
}

// takes reports whether there is room for a response of so many bytes.
func (s *Store) takes(length int64) bool {
	most := s.maxBytes.Load()
	// Beyond the bound, eviction must catch up first.
	return !s.tight.Load() && s.room.Load() >= 0 && length <= most/2 && s.used.Load() <= most+most/16
}

// spend notes bytes that were written to the disk.
func (s *Store) spend(n int64) {
	if s.room.Add(-n) < 0 {
		s.wakeEviction()
	}
}

// Commit makes the response a stored one, in place of an earlier one of its key. The Writer is over, but can be read. Nothing is
// stored where wrong says that the response is no more what it should be; nil never does.
func (w *Writer) Commit(k Key, m *Meta, wrong func() bool) (*Object, error) {
	s := w.store
	vary, ok := s.vary.of(m.Vary)
	if !ok || !s.owns() {
		w.Abort()
		return nil, ErrNotStoring
	}
	o := &Object{Meta: m, Length: w.length, store: s, url: k.URL, id: w.id, sums: w.sums, checked: true}
	e := entry{url: k.URL, variant: k.Variant, id: w.id, used: s.seconds(), vary: vary, flags: checked}
	at := preamble + w.length
	end, sum := appendEnd(nil, m, w.id, w.length, at, w.sums)
	if len(end) > maxHead {
		w.Abort()
		return nil, ErrNotStoring
	}
	e.size, e.sum = uint64(at)+uint64(len(end)), sum
	if o.Length > 0 && o.Length <= smallBody {
		o.body = slices.Clone(w.buffer[:o.Length])
	}
	if err := w.finish(end); err != nil {
		s.counts.WriteErrors.Add(1)
		w.Abort()
		return nil, err
	}
	// The zone may have gone to another process meanwhile, which finds the file.
	if !s.enter() {
		if wrong != nil && wrong() {
			_ = s.writes.attempt(func() error { return s.disk.Remove(s.path(w.id)) }, nil)
		}
		w.end(false)
		return nil, ErrNotStoring
	}
	o.estimate()
	s.memory.put(o)
	replaced := s.place(e, wrong)
	if len(replaced) == 1 && replaced[0].id == e.id {
		s.leave()
		_ = s.delete(e.id)
		w.end(false)
		return nil, ErrNotStoring
	}
	for i := range replaced {
		s.log.append(opRemove, &replaced[i])
	}
	s.log.append(opPut, &e)
	s.leave()
	for i := range replaced {
		_ = s.delete(replaced[i].id)
	}
	s.counts.Stored.Add(1)
	if s.used.Load() > s.maxBytes.Load() {
		s.wakeEviction()
	}
	w.end(false)
	return o, nil
}

// finish writes what is not in the file yet, and the end.
func (w *Writer) finish(end []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return errEnded
	}
	s, file, id, at := w.store, w.file, w.id, preamble+w.flushed
	var rest []byte
	if file == nil {
		rest = make([]byte, 0, preamble+int(w.length)+len(end))
		rest, at = append(rest, s.preamble()...), 0
	}
	if w.buffer != nil {
		rest = append(rest, w.buffer[:w.length-w.flushed]...)
	}
	rest = append(rest, end...)
	s.spend(int64(len(rest)))
	return s.writes.attempt(func() error {
		if !s.enter() {
			return ErrNotStoring
		}
		defer s.leave()
		if file == nil {
			return s.disk.Put(s.path(id), rest)
		}
		_, err := file.WriteAt(rest, at)
		return err
	}, func() { _ = s.disk.Remove(s.path(id)) })
}

// maxGrowth is how much all heads of a file may have, in bytes.
const maxGrowth = 256 << 10

// Refresh gives an object another head after a validation. It fails where the object is gone, or its file has grown too much:
// then the response is to be fetched again.
func (s *Store) Refresh(o *Object, m *Meta) (*Object, error) {
	return within(s.writes, func() (*Object, error) {
		if !s.enter() {
			return nil, ErrNotStoring
		}
		defer s.leave()
		mu := &s.heads[o.id%uint64(len(s.heads))]
		mu.Lock()
		defer mu.Unlock()
		return s.refresh(o, m)
	}, nil)
}

func (s *Store) refresh(o *Object, m *Meta) (*Object, error) {
	file, err := s.disk.Edit(s.path(o.id))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	at, err := file.Size()
	if err != nil {
		return nil, err
	}
	end, sum := appendEnd(nil, m, o.id, o.Length, at, o.sums)
	if at-preamble-o.Length+int64(len(end)) > maxGrowth+int64(len(o.sums))*8 {
		return nil, ErrNotStoring
	}
	s.spend(int64(len(end)))
	if _, err := file.WriteAt(end, at); err != nil {
		return nil, err
	}
	var next entry
	was, ok := s.index.change(o.url, o.id, func(e *entry) bool {
		e.size, e.sum, e.used = uint64(at)+uint64(len(end)), sum, s.seconds()
		next = *e
		return true
	})
	if !ok {
		return nil, os.ErrNotExist
	}
	s.used.Add(int64(next.size) - int64(was.size))
	s.log.append(opPut, &next)
	fresh := *o
	fresh.Meta = m
	fresh.estimate()
	s.memory.put(&fresh)
	return &fresh, nil
}
