package hold

import (
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// allowed reports whether the process at the other end belongs to the user of this one, or to root.
func allowed(conn *net.UnixConn) bool {
	raw, err := conn.SyscallConn()
	if err != nil {
		return false
	}
	var peer *unix.Ucred
	var failed error
	err = raw.Control(func(fd uintptr) { peer, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	return err == nil && failed == nil && allows(int(peer.Uid), os.Geteuid())
}

func allows(peer, own int) bool { return peer == own || peer == 0 }
