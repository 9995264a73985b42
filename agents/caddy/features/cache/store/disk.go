package store

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
)

// Disk is what a store keeps its files on.
type Disk interface {
	// Open opens a file to read, Edit one to write to.
	Open(name string) (File, error)
	Edit(name string) (File, error)
	// Create makes a file that is not there yet, and its folder; Put makes one at once.
	Create(name string) (File, error)
	Put(name string, b []byte) error
	Remove(name string) error
}

// File is an open file.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Size() (int64, error)
	// Descriptor is the file for the kernel to send from; nil has the bytes read.
	Descriptor() *os.File
}

// System is the disk of the system.
type System struct{}

type systemFile struct{ *os.File }

func (f systemFile) Descriptor() *os.File { return f.File }

func (f systemFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func opened(file *os.File, err error) (File, error) {
	if err != nil {
		return nil, err
	}
	return systemFile{file}, nil
}

// Open opens a file to read.
func (System) Open(name string) (File, error) { return opened(os.Open(name)) }

// Edit opens a file to write to.
func (System) Edit(name string) (File, error) { return opened(os.OpenFile(name, os.O_RDWR, 0)) }

// Create makes a file.
func (System) Create(name string) (File, error) {
	const flags = os.O_RDWR | os.O_CREATE | os.O_EXCL
	file, err := os.OpenFile(name, flags, 0o600)
	if errors.Is(err, os.ErrNotExist) {
		if err = os.MkdirAll(filepath.Dir(name), 0o700); err == nil {
			file, err = os.OpenFile(name, flags, 0o600)
		}
	}
	return opened(file, err)
}

// Put makes a file by three system calls. Package os would add one, which asks whether the file can be polled.
func (System) Put(name string, b []byte) error {
	fd, err := openNew(name)
	if errors.Is(err, os.ErrNotExist) {
		if err = os.MkdirAll(filepath.Dir(name), 0o700); err == nil {
			fd, err = openNew(name)
		}
	}
	if err != nil {
		return err
	}
	for len(b) > 0 && err == nil {
		var n int
		if n, err = syscall.Write(fd, b); errors.Is(err, syscall.EINTR) {
			err = nil
		}
		b = b[max(n, 0):]
	}
	if failed := syscall.Close(fd); err == nil {
		err = failed
	}
	if err != nil {
		_ = syscall.Unlink(name)
	}
	return err
}

func openNew(name string) (fd int, err error) {
	for {
		fd, err = syscall.Open(name, syscall.O_WRONLY|syscall.O_CREAT|syscall.O_EXCL|syscall.O_CLOEXEC, 0o600)
		if !errors.Is(err, syscall.EINTR) {
			return fd, err
		}
	}
}

// Remove deletes a file.
func (System) Remove(name string) error { return os.Remove(name) }
