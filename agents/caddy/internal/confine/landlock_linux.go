package confine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Rights of a rule. Nothing is ever run, and no device made.
const (
	readFile  = unix.LANDLOCK_ACCESS_FS_READ_FILE
	readTree  = readFile | unix.LANDLOCK_ACCESS_FS_READ_DIR
	writeFile = readFile | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE
	writeTree = readTree | writeFile | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK |
		unix.LANDLOCK_ACCESS_FS_REFER
)

// Rights of files that each version of Landlock knows, beside those of the versions before.
var known = []uint64{
	1: unix.LANDLOCK_ACCESS_FS_MAKE_SYM<<1 - 1,
	2: unix.LANDLOCK_ACCESS_FS_REFER,
	3: unix.LANDLOCK_ACCESS_FS_TRUNCATE,
	4: 0,
	5: unix.LANDLOCK_ACCESS_FS_IOCTL_DEV,
}

type rule struct {
	path   string
	rights uint64
	// A missing one of the system is none of our business.
	optional bool
}

// limitFiles lets this process reach the files of the system it needs and these folders, and nothing else. What is open
// already, and what is reached over sockets, is not concerned.
func limitFiles(folders Folders) error {
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return fmt.Errorf("this kernel does not support Landlock (%w)", errno)
	}
	var handled uint64
	for _, rights := range known[:min(int(version)+1, len(known))] {
		handled |= rights
	}
	attributes := unix.LandlockRulesetAttr{Handled_access_fs: handled}
	// Kernels of the first version know the first field only.
	set, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attributes)), unsafe.Sizeof(attributes.Handled_access_fs), 0)
	if errno != 0 {
		return fmt.Errorf("cannot create a Landlock ruleset: %w", errno)
	}
	defer unix.Close(int(set))
	for _, r := range rules(folders) {
		if err := r.add(int(set), handled); err != nil {
			return fmt.Errorf("%s: %w", r.path, err)
		}
	}
	if err := everyThread(unix.SYS_LANDLOCK_RESTRICT_SELF, set, 0, 0); err != nil {
		return fmt.Errorf("cannot enter the Landlock ruleset: %w", err)
	}
	return nil
}

func rules(folders Folders) []rule {
	list := []rule{
		// Name service, certificates and their links. Folders rather than files: these files are replaced, not written.
		{"/etc", readTree, true},
		{"/usr/share/ca-certificates", readTree, true},
		{"/usr/local/share/ca-certificates", readTree, true},
		{"/usr/share/zoneinfo", readTree, true},
		// Limits of sockets, of memory and of processors. Landlock itself keeps what belongs to other processes closed.
		{"/proc", readTree, true},
		{"/sys/fs/cgroup", readTree, true},
		{"/dev/null", writeFile, true},
		{"/dev/urandom", readFile, true},
	}
	// Where a resolver writes it, usually below /run.
	if path, err := filepath.EvalSymlinks("/etc/resolv.conf"); err == nil && filepath.Dir(path) != "/" {
		list = append(list, rule{filepath.Dir(path), readTree, true})
	}
	for _, name := range []string{"SSL_CERT_FILE", "SSL_CERT_DIR"} {
		for _, path := range filepath.SplitList(os.Getenv(name)) {
			list = append(list, rule{path, readTree, true})
		}
	}
	for _, path := range folders.Read {
		list = append(list, rule{path, readTree, false})
	}
	for _, path := range folders.Write {
		list = append(list, rule{path, writeTree, false})
	}
	return list
}

func (r rule) add(set int, handled uint64) error {
	fd, err := unix.Open(r.path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if r.optional && (errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.EACCES)) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var about unix.Stat_t
	if err := unix.Fstat(fd, &about); err != nil {
		return err
	}
	rights := r.rights & handled
	if about.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &= writeFile
	}
	attributes := unix.LandlockPathBeneathAttr{Allowed_access: rights, Parent_fd: int32(fd)}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(set), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&attributes)), 0, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}
