package waf

import (
	"os"
	"path/filepath"
	"sync"

	"edge.svc/caddy/exchange"
)

const (
	// What the beginnings of all bodies may take in memory, and in files beyond.
	maxMemory = 4 << 20
	maxFiled  = 1 << 30
)

// shares bounds what sites hold of something, together and each: a site takes more only while it holds less than is free.
// One alone gets half, and whoever holds much leaves room for whoever comes after.
type shares struct {
	mu sync.Mutex
	// How much there is, and how much of it is held.
	most, all int64
	sites     map[string]int64
}

func (s *shares) take(site string, bytes int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sites[site]+bytes > s.most-s.all {
		return false
	}
	s.all += bytes
	s.sites[site] += bytes
	return true
}

func (s *shares) give(site string, bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all -= bytes
	if s.sites[site] -= bytes; s.sites[site] == 0 {
		delete(s.sites, site)
	}
}

func (s *shares) held() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all
}

// room bounds what looks at bodies keep.
type room struct {
	folder        string
	memory, files shares
}

func newRoom(folder string) *room {
	return &room{folder: folder, memory: shares{most: maxMemory, sites: map[string]int64{}}, files: shares{most: maxFiled, sites: map[string]int64{}}}
}

// of is what of the room is for a site.
func (r *room) of(site string) exchange.Room { return &siteRoom{r, site} }

// clean removes what a process left behind that was killed between making a file and removing its name.
func (r *room) clean() {
	left, _ := filepath.Glob(filepath.Join(r.folder, "body-*"))
	for _, name := range left {
		_ = os.Remove(name)
	}
}

// siteRoom is the room with the site that takes of it.
type siteRoom struct {
	*room
	site string
}

// Take reserves memory.
func (r *siteRoom) Take(bytes int) bool { return r.memory.take(r.site, int64(bytes)) }

// Give returns it.
func (r *siteRoom) Give(bytes int) { r.memory.give(r.site, int64(bytes)) }

// File makes a file that has no name any more when it is given.
func (r *siteRoom) File() (exchange.SpoolFile, error) {
	if err := os.MkdirAll(r.folder, 0o700); err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(r.folder, "body-")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		_ = f.Close()
		return nil, err
	}
	return &spoolFile{File: f, room: r}, nil
}

// spoolFile counts what is in it.
type spoolFile struct {
	*os.File
	room  *siteRoom
	bytes int64
}

// WriteAt fails with exchange.ErrNoRoom where all files together are too large, or those of the site.
func (f *spoolFile) WriteAt(p []byte, at int64) (int, error) {
	if !f.room.files.take(f.room.site, int64(len(p))) {
		return 0, exchange.ErrNoRoom
	}
	f.bytes += int64(len(p))
	return f.File.WriteAt(p, at)
}

func (f *spoolFile) Close() error {
	f.room.files.give(f.room.site, f.bytes)
	f.bytes = 0
	return f.File.Close()
}

var _ exchange.Room = (*siteRoom)(nil)
