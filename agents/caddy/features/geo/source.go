package geo

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oschwald/maxminddb-golang/v2"

	nodev1 "edge.svc/caddy/gen/svc/node/v1"
)

// maxFile is the size of the largest file in bytes that is read; it is held in memory.
const maxFile = 256 << 20

// source is a file and the database it was when it could be read last.
type source[R comparable] struct {
	path   string
	decode func() func(maxminddb.Result) (R, error)

	// One at a time looks at the file.
	reading sync.Mutex
	seen    fileMark

	database atomic.Pointer[database[R]]
	// Why the file is not what is in use; "" when it is.
	problem atomic.Pointer[string]
}

// fileMark tells one content of a path from another.
type fileMark struct {
	size     int64
	modified time.Time
	file     fs.FileInfo
}

func (m fileMark) same(other fileMark) bool {
	return m.file != nil && other.file != nil && os.SameFile(m.file, other.file) && m.size == other.size && m.modified.Equal(other.modified)
}

func newSource[R comparable](path string, decode func() func(maxminddb.Result) (R, error)) *source[R] {
	return &source[R]{path: path, decode: decode}
}

// refresh reads the file when it is another one than the last. What was read before stays in use until a whole database
// takes its place. It answers what is wrong with the file, and whether that or the database is new.
func (s *source[R]) refresh() (changed bool, err error) {
	s.reading.Lock()
	defer s.reading.Unlock()
	before := s.lastProblem()
	changed, err = s.read()
	problem := ""
	if err != nil {
		problem = err.Error()
	}
	s.problem.Store(&problem)
	return changed || problem != before, err
}

// read reports whether there was another file to read.
func (s *source[R]) read() (bool, error) {
	if s.path == "" {
		return false, errors.New("no database is configured")
	}
	f, err := os.Open(s.path)
	if err != nil {
		s.seen = fileMark{}
		return false, err
	}
	defer f.Close()
	about, err := f.Stat()
	if err != nil {
		return false, err
	}
	mark := fileMark{about.Size(), about.ModTime(), about}
	if s.seen.same(mark) {
		if problem := s.lastProblem(); problem != "" {
			return false, errors.New(problem)
		}
		return false, nil
	}
	s.seen = mark
	if !about.Mode().IsRegular() || about.Size() > maxFile {
		return true, fmt.Errorf("%s is not a regular file of at most %d MiB", s.path, maxFile>>20)
	}
	content := make([]byte, about.Size())
	if _, err := io.ReadFull(f, content); err != nil {
		return true, fmt.Errorf("%s: %w", s.path, err)
	}
	d, err := open(content, s.decode())
	if err != nil {
		return true, fmt.Errorf("%s: %w", s.path, err)
	}
	s.database.Store(d)
	return true, nil
}

func (s *source[R]) lastProblem() string {
	if p := s.problem.Load(); p != nil {
		return *p
	}
	return ""
}

// report is what the node says of the database.
func (s *source[R]) report() *nodev1.GeoIpDatabase {
	report := &nodev1.GeoIpDatabase{Problem: s.lastProblem()}
	if d := s.database.Load(); d != nil {
		report.Ready = true
		if !d.built.IsZero() {
			report.BuiltAt = d.built.Unix()
		}
	}
	return report
}
