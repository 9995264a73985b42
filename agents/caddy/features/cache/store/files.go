package store

import (
	"container/list"
	"sync"

	"golang.org/x/sys/unix"
)

// maxFiles is how many files stay open between two responses.
const maxFiles = 256

// files are those that are open, by the ids of their objects: to open a file costs a hit as much as to find and describe its
// response. The one that was used least recently closes. A body in a file never changes.
type files struct {
	mu    sync.Mutex
	byID  map[uint64]*sharedFile
	order list.List
}

// sharedFile is an open file that several responses may use. Its fields but file are under the lock of files.
type sharedFile struct {
	file File
	id   uint64
	uses int
	// Its place in the order; nil once no further response gets it.
	at *list.Element
	// It was used since the last look for files that nobody uses.
	used bool
}

// take returns the open file of an object, nil where there is none. Leave it.
func (f *files) take(id uint64) *sharedFile {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.byID[id]
	if s != nil {
		s.uses++
		s.used = true
		f.order.MoveToFront(s.at)
	}
	return s
}

// share has others use a file that was opened, and returns the one that they use.
func (f *files) share(id uint64, file File) *sharedFile {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s := f.byID[id]; s != nil {
		// Another response was faster.
		_ = file.Close()
		s.uses++
		return s
	}
	if f.byID == nil {
		f.byID = map[uint64]*sharedFile{}
	}
	s := &sharedFile{file: file, id: id, uses: 1, used: true}
	s.at, f.byID[id] = f.order.PushFront(s), s
	for f.order.Len() > maxFiles {
		f.drop(f.order.Back().Value.(*sharedFile))
	}
	return s
}

// leave ends the use of a file.
func (f *files) leave(s *sharedFile) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s.uses--
	f.close(s)
}

// forget has nobody use the file of an object any more, which is deleted: it takes room of the disk as long as it is open.
func (f *files) forget(id uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s := f.byID[id]; s != nil {
		f.drop(s)
	}
}

// closeUnused closes the files that nobody used since the last call.
func (f *files) closeUnused() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.byID {
		if !s.used && s.uses == 0 {
			f.drop(s)
		}
		s.used = false
	}
}

// drop takes a file out. The caller holds the lock.
func (f *files) drop(s *sharedFile) {
	f.order.Remove(s.at)
	delete(f.byID, s.id)
	s.at = nil
	f.close(s)
}

// close closes a file that nobody uses or gets. The caller holds the lock.
func (f *files) close(s *sharedFile) {
	if s.uses == 0 && s.at == nil {
		_ = s.file.Close()
	}
}

// inMemory reports whether the system has a place of a file in memory, so that nobody waits for a disk to read it.
func inMemory(file File, at int64) bool {
	var one [1]byte
	return readFromMemory(file, one[:], at) > 0
}

// readFromMemory reads what the system has in memory, and returns how much that is; 0 also where the system cannot tell.
func readFromMemory(file File, p []byte, at int64) int {
	open := file.Descriptor()
	if open == nil {
		return 0
	}
	n, err := unix.Preadv2(int(open.Fd()), [][]byte{p}, at, unix.RWF_NOWAIT)
	if err != nil {
		return 0
	}
	return n
}
