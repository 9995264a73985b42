package store

import (
	"encoding/binary"
	"os"
	"sync"
)

// maxTouched is how many URLs are kept at most. Beyond, nothing that earlier processes left comes back.
const maxTouched = 1 << 18

// touched are the URLs of which something was removed while not all files of earlier processes are known. What the log or the
// sweep still finds of them is older than the removal. They are kept on disk, too: the process may die before the sweep ends.
type touched struct {
	name string

	mu   sync.Mutex
	off  bool
	urls map[uint64]struct{}
	all  bool

	// Held while the file is written, which a hanging disk may make long.
	writing sync.Mutex
	file    *os.File
}

// begin keeps URLs from now on, and those that an earlier process kept.
func (t *touched) begin() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.off = false
	b, err := os.ReadFile(t.name)
	if err != nil && !os.IsNotExist(err) {
		t.all = true
	}
	for ; len(b) >= 8; b = b[8:] {
		t.add(binary.LittleEndian.Uint64(b))
	}
}

// pause keeps no more URLs: another process has the zone, or none.
func (t *touched) pause() {
	t.mu.Lock()
	t.off = true
	t.mu.Unlock()
	t.close()
}

func (t *touched) close() {
	t.writing.Lock()
	defer t.writing.Unlock()
	if t.file != nil {
		_ = t.file.Close()
		t.file = nil
	}
}

func (t *touched) add(url uint64) {
	if t.urls == nil {
		t.urls = map[uint64]struct{}{}
	}
	if len(t.urls) >= maxTouched {
		t.all = true
		return
	}
	t.urls[url] = struct{}{}
}

// note keeps a URL of which something is removed next. write is what may use the disk.
func (t *touched) note(url uint64, write func(func() error)) {
	t.mu.Lock()
	_, known := t.urls[url]
	noted := !t.off && !known && !t.all
	if noted {
		t.add(url)
	}
	t.mu.Unlock()
	if noted {
		write(func() error { return t.append(url) })
	}
}

func (t *touched) append(url uint64) (err error) {
	t.writing.Lock()
	defer t.writing.Unlock()
	if t.isOff() {
		return nil
	}
	if t.file == nil {
		if t.file, err = os.OpenFile(t.name, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600); err != nil {
			return err
		}
	}
	_, err = t.file.Write(binary.LittleEndian.AppendUint64(nil, url))
	return err
}

func (t *touched) isOff() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.off
}

// unless does what is not to be done for a URL that is kept, and reports whether it did. No URL is noted meanwhile.
func (t *touched) unless(url uint64, do func()) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, is := t.urls[url]; is || t.all {
		return false
	}
	do()
	return true
}

// end forgets all URLs: every file is known.
func (t *touched) end() {
	t.mu.Lock()
	t.off, t.urls, t.all = true, nil, false
	t.mu.Unlock()
	t.close()
	_ = os.Remove(t.name)
}
