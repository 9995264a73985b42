package svcwaf

import (
	"os"
	"path/filepath"
	"sync/atomic"

	"edge.svc/caddy/exchange"
)

const (
	// What the beginnings of all bodies may take in memory, and in files beyond.
	maxRoom  = 16 << 20
	maxFiled = 1 << 30
)

// room bounds what looks at bodies keep.
type room struct {
	folder string
	taken  atomic.Int64
	filed  atomic.Int64
}

func (r *room) Take(bytes int) bool {
	if r.taken.Add(int64(bytes)) > maxRoom {
		r.taken.Add(-int64(bytes))
		return false
	}
	return true
}

func (r *room) Give(bytes int) { r.taken.Add(-int64(bytes)) }

// File makes a file that has no name any more when it is given.
func (r *room) File() (exchange.SpoolFile, error) {
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

// clean removes what a process left behind that was killed between making a file and removing its name.
func (r *room) clean() {
	left, _ := filepath.Glob(filepath.Join(r.folder, "body-*"))
	for _, name := range left {
		_ = os.Remove(name)
	}
}

// spoolFile counts what is in it.
type spoolFile struct {
	*os.File
	room  *room
	bytes int64
}

// WriteAt fails with exchange.ErrNoRoom where all files together are too large.
func (f *spoolFile) WriteAt(p []byte, at int64) (int, error) {
	if f.room.filed.Add(int64(len(p))) > maxFiled {
		f.room.filed.Add(-int64(len(p)))
		return 0, exchange.ErrNoRoom
	}
	f.bytes += int64(len(p))
	return f.File.WriteAt(p, at)
}

func (f *spoolFile) Close() error {
	f.room.filed.Add(-f.bytes)
	f.bytes = 0
	return f.File.Close()
}
