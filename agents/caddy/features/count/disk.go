package count

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// disk has the calls by which counts reach the disk. Tests make each of them fail.
type disk interface {
	// create makes a file that is not there yet.
	create(path string) (*os.File, error)
	// allocate takes all of a file's size on the disk.
	allocate(file *os.File, size int) error
	truncate(file *os.File, size int64) error
	write(path string, data []byte) error
	rename(from, to string) error
}

type realDisk struct{}

func (realDisk) create(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
}

func (realDisk) allocate(file *os.File, size int) error {
	err := unix.Fallocate(int(file.Fd()), 0, 0, int64(size))
	if !errors.Is(err, unix.EOPNOTSUPP) && !errors.Is(err, unix.ENOSYS) {
		return err
	}
	_, err = file.Write(make([]byte, size))
	return err
}

func (realDisk) truncate(file *os.File, size int64) error { return file.Truncate(size) }

func (realDisk) write(path string, data []byte) error { return os.WriteFile(path, data, 0o600) }

func (realDisk) rename(from, to string) error { return os.Rename(from, to) }

// replaceFile puts data in the place of a file, or leaves the file as it is.
func replaceFile(d disk, path string, data []byte) error {
	temporary := path + ".tmp"
	err := d.write(temporary, data)
	if err == nil {
		err = d.rename(temporary, path)
	}
	if err != nil {
		_ = os.Remove(temporary)
	}
	return err
}
