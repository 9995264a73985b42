package confine

import (
	"errors"
	"unsafe"

	"golang.org/x/sys/unix"
)

// kept is for ports below 1024. It stays only where it was held.
const kept = unix.CAP_NET_BIND_SERVICE

// dropCapabilities gives up every capability but the one kept, in every set: nothing that this process could run gets
// one back. The bounding set shrinks only where the process may do that (CAP_SETPCAP); where it may not, no new
// privileges makes what is left in it void.
func dropCapabilities() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	if err := unix.Capget(&header, &sets[0]); err != nil {
		return err
	}
	permitted := sets[0].Permitted & (1 << kept)
	if err := dropBounding(); err != nil {
		return err
	}
	// Kernels before 4.3 have no ambient set.
	if err := everyThread(unix.SYS_PRCTL, unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0); err != nil && !errors.Is(err, unix.EINVAL) {
		return err
	}
	sets = [2]unix.CapUserData{{Effective: permitted, Permitted: permitted}}
	return everyThread(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&sets[0])), 0)
}

func dropBounding() error {
	// The kernel names the first one it does not know as invalid.
	for capability := uintptr(0); ; capability++ {
		held, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, capability, 0, 0, 0)
		if errors.Is(err, unix.EINVAL) {
			return nil
		}
		if err != nil {
			return err
		}
		if held == 0 || capability == kept {
			continue
		}
		err = everyThread(unix.SYS_PRCTL, unix.PR_CAPBSET_DROP, capability, 0)
		if errors.Is(err, unix.EPERM) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
