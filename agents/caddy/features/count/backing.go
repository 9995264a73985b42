package count

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// mapped is a file that is memory at the same time: what is stored in it outlives the process however it ends.
type mapped struct {
	file *os.File
	data []byte
}

// makeMapped makes a file of a fixed size, all of it taken on the disk before anything is stored: a disk that fills up
// later takes nothing away.
func makeMapped(path string, size int) (*mapped, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	fail := func(err error) (*mapped, error) {
		file.Close()
		_ = os.Remove(path)
		return nil, err
	}
	if err := allocate(file, size); err != nil {
		return fail(err)
	}
	data, err := unix.Mmap(int(file.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return fail(err)
	}
	return &mapped{file, data}, nil
}

func allocate(file *os.File, size int) error {
	err := unix.Fallocate(int(file.Fd()), 0, 0, int64(size))
	if !errors.Is(err, unix.EOPNOTSUPP) && !errors.Is(err, unix.ENOSYS) {
		return err
	}
	_, err = file.Write(make([]byte, size))
	return err
}

// give gives up the memory and leaves the file as it is.
func (m *mapped) give() error { return errors.Join(unix.Munmap(m.data), m.file.Close()) }

// close gives up the memory and cuts the file to so many bytes.
func (m *mapped) close(used int) error {
	return errors.Join(unix.Munmap(m.data), m.file.Truncate(int64(used)), m.file.Close())
}
