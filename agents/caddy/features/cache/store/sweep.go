package store

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// sweep goes through the files of earlier processes, once. A whole response that the index does not have was stored shortly
// before a crash, and comes back; any other file is deleted.
func (s *Store) sweep(first uint64, stop <-chan struct{}) {
	defer s.swept.Store(true)
	known := map[uint64]bool{}
	for part := range uint64(16) {
		clear(known)
		s.index.each(func(entries []entry) bool {
			for i := range entries {
				if (entries[i].id>>16)%16 == part {
					known[entries[i].id] = true
				}
			}
			return true
		})
		names, _ := filepath.Glob(filepath.Join(s.dir, fmt.Sprintf("%x[0-9a-f][0-9a-f]", part), "*"))
		for i, name := range names {
			if i%64 == 63 {
				// Requests have the disk meanwhile.
				time.Sleep(time.Millisecond)
			}
			select {
			case <-stop:
				return
			default:
			}
			id, err := strconv.ParseUint(filepath.Base(name), 16, 64)
			if err == nil && (id > first || known[id]) {
				continue
			}
			if !s.owns() {
				return
			}
			if err != nil || s.path(id) != name || !s.adopt(id, name) {
				_ = os.Remove(name)
				s.counts.Orphans.Add(1)
			}
		}
	}
	// Where another process has the zone by now, what it keeps is its own.
	if s.enter() {
		s.touched.end()
		s.leave()
	}
}

// adopt takes a file into the index.
func (s *Store) adopt(id uint64, name string) bool {
	file, err := s.disk.Open(name)
	if err != nil {
		return true
	}
	defer file.Close()
	first := make([]byte, preamble)
	size, err := file.Size()
	if err != nil {
		return true
	}
	if _, err := file.ReadAt(first, 0); err != nil || string(first) != string(s.preamble()) {
		return false
	}
	m, end, _, err := readEnd(file, id, size)
	if err != nil {
		return false
	}
	vary, ok := s.vary.of(m.Vary)
	if !ok {
		return false
	}
	k := KeyOf(m.Key, m.Variant)
	e := entry{url: k.URL, variant: k.Variant, id: id, size: uint64(size), sum: end.sum, used: s.seconds(), vary: vary}
	var replaced []entry
	if !s.touched.unless(e.url, func() { replaced = s.place(e, nil) }) {
		s.log.append(opRemove, &e)
		return false
	}
	for _, old := range replaced {
		if old.id == id {
			return false
		}
		s.erase(old)
	}
	s.log.append(opPut, &e)
	s.counts.Adopted.Add(1)
	return true
}

// Swept reports whether the files of earlier processes were looked through.
func (s *Store) Swept() bool { return s.swept.Load() }
