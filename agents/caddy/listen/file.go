package listen

import (
	"errors"
	"io"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"edge.svc/caddy/exchange"
)

// takesFiles reports whether the system sends files over the connection by itself.
func (c *Conn) takesFiles() bool {
	_, able := c.Conn.(syscall.Conn)
	return able && c.plain && !c.shared
}

// hold keeps the head of a response until what comes behind it. Whatever is not sent by the system sends it first.
func (c *Conn) hold(p []byte) (int, error) {
	if c.held == nil && len(p) <= maxGathered {
		c.held = gathers.Get().(*[]byte)
		*c.held = append((*c.held)[:0], p...)
		return len(p), nil
	}
	c.holding = false
	if err := c.release(); err != nil {
		return 0, err
	}
	return c.send(p)
}

// release sends what is held.
func (c *Conn) release() error {
	if c.held == nil {
		return nil
	}
	_, err := c.send(*c.held)
	c.letGo()
	return err
}

func (c *Conn) letGo() {
	*c.held = (*c.held)[:0]
	gathers.Put(c.held)
	c.held = nil
}

// sendFile has the system send what is held and a part of a file behind it, in as few segments as it can. Several connections
// may send one file at once: the place in it is each one's own.
func (c *Conn) sendFile(part *exchange.FilePart) (sent int64, err error) {
	raw, err := c.Conn.(syscall.Conn).SyscallConn()
	if err != nil {
		return 0, err
	}
	c.holding = false
	var head []byte
	if c.held != nil {
		head = *c.held
		defer c.letGo()
	}
	file, done := int(part.File.Fd()), 0
	defer runtime.KeepAlive(part.File)
	var failed error
	err = raw.Write(func(socket uintptr) bool {
		for {
			var n int
			switch {
			case done < len(head):
				n, failed = unix.SendmsgN(int(socket), head[done:], nil, nil, unix.MSG_MORE|unix.MSG_NOSIGNAL)
				done += max(n, 0)
			case part.Left == 0:
				return true
			default:
				n, failed = unix.Sendfile(int(socket), file, &part.At, int(part.Left))
				if n > 0 {
					part.Left, sent = part.Left-int64(n), sent+int64(n)
				} else if failed == nil {
					failed = io.ErrUnexpectedEOF
				}
			}
			switch {
			case errors.Is(failed, unix.EAGAIN):
				failed = nil
				return false
			case errors.Is(failed, unix.EINTR):
				failed = nil
			case failed != nil:
				return true
			}
		}
	})
	if err == nil {
		err = failed
	}
	c.meter.Sent(head[:done])
	c.meter.SentBody(sent)
	return sent, err
}
