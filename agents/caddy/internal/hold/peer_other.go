//go:build !linux

package hold

import "net"

// allowed relies on the rights of the socket's folder alone.
func allowed(*net.UnixConn) bool { return true }
