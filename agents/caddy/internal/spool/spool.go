// Package spool bounds what is kept of request bodies before an origin is asked, in memory and in files, over all
// exchanges.
package spool

import (
	"fmt"
	"io"
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

// Shares bounds what sites hold of something, together and each: a site takes more only while it holds less than is free.
// One alone gets half, and whoever holds much leaves room for whoever comes after.
type Shares struct {
	// Most is how much there is.
	Most int64

	mu sync.Mutex
	// How much of it is held, and by which site.
	all   int64
	sites map[string]int64
}

func (s *Shares) take(site string, bytes int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sites[site]+bytes > s.Most-s.all {
		return false
	}
	s.all += bytes
	s.sites[site] += bytes
	return true
}

func (s *Shares) give(site string, bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all -= bytes
	if s.sites[site] -= bytes; s.sites[site] == 0 {
		delete(s.sites, site)
	}
}

// Held returns how much all sites hold.
func (s *Shares) Held() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all
}

// Spool is the room of all sites.
type Spool struct {
	// Folder has the files.
	Folder        string
	Memory, Files Shares
}

// New returns a spool with its files in a folder, which it makes for the first of them.
func New(folder string) *Spool {
	return &Spool{Folder: folder, Memory: Shares{Most: maxMemory, sites: map[string]int64{}}, Files: Shares{Most: maxFiled, sites: map[string]int64{}}}
}

// Of returns the room of a site.
func (s *Spool) Of(site string) exchange.Room { return &siteRoom{s, site} }

// Restore removes files of an earlier process that was killed between making a file and removing its name.
func (s *Spool) Restore() {
	left, _ := filepath.Glob(filepath.Join(s.Folder, "body-*"))
	for _, name := range left {
		_ = os.Remove(name)
	}
}

// siteRoom is the room with the site that takes of it.
type siteRoom struct {
	*Spool
	site string
}

// Take reserves memory.
func (r *siteRoom) Take(bytes int) bool { return r.Memory.take(r.site, int64(bytes)) }

// Give returns it.
func (r *siteRoom) Give(bytes int) { r.Memory.give(r.site, int64(bytes)) }

// File makes a file that has no name any more when it is given.
func (r *siteRoom) File() (exchange.SpoolFile, error) {
	if err := os.MkdirAll(r.Folder, 0o700); err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(r.Folder, "body-")
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
	if !f.room.Files.take(f.room.site, int64(len(p))) {
		return 0, exchange.ErrNoRoom
	}
	f.bytes += int64(len(p))
	return f.File.WriteAt(p, at)
}

func (f *spoolFile) Close() error {
	f.room.Files.give(f.room.site, f.bytes)
	f.bytes = 0
	return f.File.Close()
}

// WriteMetrics shows how much is kept.
func (s *Spool) WriteMetrics(w io.Writer) {
	fmt.Fprintf(w, "# HELP svc_edge_spooled_body_bytes Request bodies kept until they are inspected or complete, in bytes.\n# TYPE svc_edge_spooled_body_bytes gauge\n"+
		"svc_edge_spooled_body_bytes{in=\"memory\"} %d\nsvc_edge_spooled_body_bytes{in=\"files\"} %d\n", s.Memory.Held(), s.Files.Held())
}

var _ exchange.Room = (*siteRoom)(nil)
