package origin

import (
	"io"
	"net"
	"os"
	"syscall"
	"time"
)

// turn is a short request and the wait for its response, in one call into the connection: the system is asked to tell of bytes
// before the request leaves, so that no read in vain comes between. It is made once for a connection.
type turn struct {
	request, room []byte
	// The request has left; how much came.
	sent bool
	n    int
	err  error
	step func(fd uintptr) bool
}

func newTurn() *turn {
	t := &turn{}
	t.step = t.on
	return t
}

// on writes the request, and reads once there is something to read.
func (t *turn) on(fd uintptr) (done bool) {
	if !t.sent {
		n, err := syscall.Write(int(fd), t.request)
		switch {
		case err == nil && n == len(t.request):
		case err == nil || err == syscall.EINTR || err == syscall.EAGAIN:
			// There is no room for it all. The rest leaves in the usual way.
			t.request = t.request[max(n, 0):]
			return true
		default:
			t.err = &net.OpError{Op: "write", Net: "tcp", Err: os.NewSyscallError("write", err)}
			return true
		}
		t.sent = true
		return false
	}
	for {
		n, err := syscall.Read(int(fd), t.room)
		switch {
		case err == syscall.EINTR:
			continue
		case err == syscall.EAGAIN:
			return false
		}
		switch t.n = max(n, 0); {
		case err != nil:
			t.err = &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", err)}
		case n == 0:
			t.err = io.EOF
		}
		return true
	}
}

// takesTurns reports whether nothing lies between a request and the socket.
func (c *conn) takesTurns() bool { return c.key.tls == plain && c.raw != nil && c.buf == nil }

// takeTurn writes a short request and waits a moment for the response, whose first bytes are in the buffer then. It returns how
// much of the request left. A failure to read is that of the next read, and where nothing came, that one waits on.
func (c *conn) takeTurn(request []byte, now time.Time) (n int, err error) {
	if err := c.arm(now.Add(patience)); err != nil {
		return 0, err
	}
	if c.turn == nil {
		c.turn = newTurn()
	}
	t := c.turn
	c.buf = smallBuffers.Get().(*[smallBuffer]byte)[:]
	t.request, t.room, t.sent, t.n, t.err = request, c.buf, false, 0, nil
	err = c.raw.Read(t.step)
	rest := t.request
	t.request, t.room = nil, nil
	if err == nil {
		err = t.err
	}
	switch {
	case t.sent && err != nil && isTimeout(err):
		c.watch()
	case t.sent:
		c.asked, c.failed = time.Time{}, err
		c.w, c.received = t.n, c.received+int64(t.n)
	case err != nil && !isTimeout(err):
		return 0, err
	default:
		// There was no room for all of it, or the moment is over already on a machine that is busy.
		n, err = c.Write(rest)
		return len(request) - len(rest) + n, err
	}
	return len(request), nil
}
