package store

import (
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// claimLasts is how long a claim counts after it was last renewed.
const claimLasts = 5 * time.Second

// lock is the right to write to a zone. It ends with the process.
type lock struct {
	dir  string
	name string
	file *os.File
	// It was given to another process: this one takes it back only if that one died.
	gave bool
}

func (l *lock) claim() string { return filepath.Join(l.dir, "claim") }

// take tries to get the lock. Where another process has it, that one finds the claim and lets go.
func (l *lock) take() (bool, error) {
	if l.gave && l.wanted() {
		return false, nil
	}
	if err := os.MkdirAll(l.dir, 0o700); err != nil {
		return false, err
	}
	file, err := os.OpenFile(filepath.Join(l.dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return false, err
	}
	if syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		_ = file.Close()
		if l.gave {
			return false, nil
		}
		return false, os.WriteFile(l.claim(), []byte(l.name), 0o600)
	}
	l.file = file
	if claimed, err := os.ReadFile(l.claim()); err == nil && string(claimed) == l.name {
		_ = os.Remove(l.claim())
	}
	return true, nil
}

// wanted reports whether another process claims the zone, and lives.
func (l *lock) wanted() bool {
	claimed, err := os.ReadFile(l.claim())
	if err != nil || string(claimed) == l.name {
		return false
	}
	info, err := os.Stat(l.claim())
	return err == nil && time.Since(info.ModTime()) < claimLasts
}

func (l *lock) release() {
	if l.file != nil {
		_ = l.file.Close()
		l.file = nil
	}
}
