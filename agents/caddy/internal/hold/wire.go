package hold

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	maxRequest = 1 << 10
	// A page of names has at most so many descriptors, and is smaller than this.
	pageSockets = 64
	maxReply    = 32 << 10
	// From the first byte of a request to its last one, and for a reply to be taken.
	messageTime = 2 * time.Second
)

// Socket names one that is held: "tcp" or "udp", and an address and port, such as ":80" or "[::1]:443".
type Socket struct {
	Network string `json:"network"`
	Address string `json:"address"`
}

func (s Socket) String() string { return s.Network + " " + s.Address }

type request struct {
	Do string `json:"do"`
	Socket
	From int `json:"from,omitempty"`
}

type reply struct {
	// Sockets has a name for each descriptor that came along, or of each socket that is held.
	Sockets []Socket `json:"sockets,omitempty"`
	More    bool     `json:"more,omitempty"`
	Problem string   `json:"problem,omitempty"`
	// Errno is what the kernel said, where it said something.
	Errno int `json:"errno,omitempty"`
}

var errMalformed = errors.New("the message is malformed")

// parse returns the address of a socket, invalid for all of a machine, and its port.
func (s Socket) parse() (netip.Addr, uint16, error) {
	if s.Network != "tcp" && s.Network != "udp" {
		return netip.Addr{}, 0, fmt.Errorf("%q is neither tcp nor udp", s.Network)
	}
	host, text, err := net.SplitHostPort(s.Address)
	if err != nil {
		return netip.Addr{}, 0, fmt.Errorf("%q is not [address]:port", s.Address)
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil || port == 0 {
		return netip.Addr{}, 0, fmt.Errorf("%q is no port", text)
	}
	if host == "" {
		return netip.Addr{}, uint16(port), nil
	}
	address, err := netip.ParseAddr(host)
	if err != nil {
		return netip.Addr{}, 0, fmt.Errorf("%q is no address", host)
	}
	return address, uint16(port), nil
}

// send sends a message with descriptors, which stay the sender's.
func send(conn *net.UnixConn, message any, descriptors ...int) error {
	line, err := json.Marshal(message)
	if err != nil {
		return err
	}
	var beside []byte
	if len(descriptors) > 0 {
		beside = unix.UnixRights(descriptors...)
	}
	_ = conn.SetWriteDeadline(time.Now().Add(messageTime))
	line = append(line, '\n')
	n, _, err := conn.WriteMsgUnix(line, beside, nil)
	if err == nil && n < len(line) {
		_, err = conn.Write(line[n:])
	}
	return err
}

// receive reads a message of at most limit bytes into one. The descriptors are the caller's, also those of a message that is
// malformed: there are none then.
func receive(conn *net.UnixConn, limit int, message any) (descriptors []int, err error) {
	defer func() {
		if err != nil {
			closeAll(descriptors)
			descriptors = nil
		}
	}()
	buffer, beside := make([]byte, limit), make([]byte, unix.CmsgSpace(4*pageSockets))
	filled := 0
	for {
		n, besideBytes, flags, _, err := conn.ReadMsgUnix(buffer[filled:], beside)
		if besideBytes > 0 {
			got, problem := rights(beside[:besideBytes])
			descriptors = append(descriptors, got...)
			if problem != nil {
				return descriptors, problem
			}
		}
		if err != nil {
			return descriptors, err
		}
		if n == 0 {
			return descriptors, net.ErrClosed
		}
		filled += n
		if flags&unix.MSG_CTRUNC != 0 || len(descriptors) > pageSockets {
			return descriptors, errMalformed
		}
		end := bytes.IndexByte(buffer[:filled], '\n')
		if end == filled-1 {
			break
		}
		if end >= 0 || filled == limit {
			return descriptors, errMalformed
		}
		_ = conn.SetReadDeadline(time.Now().Add(messageTime))
	}
	if json.Unmarshal(buffer[:filled], message) != nil {
		return descriptors, errMalformed
	}
	return descriptors, nil
}

func rights(beside []byte) (descriptors []int, err error) {
	messages, err := unix.ParseSocketControlMessage(beside)
	if err != nil {
		return nil, err
	}
	for i := range messages {
		// Credentials and the like are no descriptors.
		got, problem := unix.ParseUnixRights(&messages[i])
		if problem == nil {
			descriptors = append(descriptors, got...)
		}
	}
	return descriptors, nil
}

func closeAll(descriptors []int) {
	for _, fd := range descriptors {
		_ = unix.Close(fd)
	}
}

// failure is a reply that says what went wrong.
func failure(err error) *reply {
	r := &reply{Problem: err.Error()}
	var errno syscall.Errno
	if errors.As(err, &errno) {
		r.Problem, r.Errno = errno.Error(), int(errno)
	}
	return r
}

func (r *reply) err() error {
	switch {
	case r.Errno != 0:
		return syscall.Errno(r.Errno)
	case r.Problem != "":
		return errors.New(r.Problem)
	}
	return nil
}
