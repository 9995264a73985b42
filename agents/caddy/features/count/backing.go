package count

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// mapped is a file that is memory at the same time: what is stored in it outlives the process however it ends.
type mapped struct {
	disk disk
	file *os.File
	data []byte
}

// makeMapped makes a file of a fixed size, all of it taken on the disk before anything is stored: a disk that fills up
// later takes nothing away.
func makeMapped(d disk, path string, size int) (*mapped, error) {
	file, err := d.create(path)
	if err != nil {
		return nil, err
	}
	fail := func(err error) (*mapped, error) {
		file.Close()
		_ = os.Remove(path)
		return nil, err
	}
	if err := d.allocate(file, size); err != nil {
		return fail(err)
	}
	data, err := unix.Mmap(int(file.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return fail(err)
	}
	return &mapped{d, file, data}, nil
}

// give gives up the memory and leaves the file as it is.
func (m *mapped) give() error { return errors.Join(unix.Munmap(m.data), m.file.Close()) }

// close gives up the memory and cuts the file to so many bytes.
func (m *mapped) close(used int) error {
	return errors.Join(unix.Munmap(m.data), m.disk.truncate(m.file, int64(used)), m.file.Close())
}
