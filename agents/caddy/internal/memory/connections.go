package memory

import (
	"math"

	"golang.org/x/sys/unix"
)

const (
	// Journals, sockets, logs and what runs beside connections.
	reservedFiles = 512
	// A connection may need another one to an origin.
	filesPerConnection = 2
	// What an idle connection takes at most, with its buffers here and in the kernel. Half of the memory is for them.
	bytesPerConnection = 64 << 10
	minConnections     = 256
)

// Connections is how many client connections the files and the memory of this process are enough for.
func Connections() int { return ConnectionsOf(OpenFiles(), Limit()) }

// ConnectionsOf is how many client connections so many files and bytes are enough for.
func ConnectionsOf(files, bytes uint64) int {
	most := min(bytes/2/bytesPerConnection, math.MaxInt32)
	if files > reservedFiles {
		most = min(most, (files-reservedFiles)/filesPerConnection)
	} else {
		most = 0
	}
	return max(int(most), minConnections)
}

// OpenFiles is how many files this process may have open.
func OpenFiles() uint64 {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
		return 0
	}
	return limit.Cur
}
