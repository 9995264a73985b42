package hold

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// ErrAway says that no holder answers: whoever asks can open the socket itself, and give it to the holder later.
var ErrAway = errors.New("the holder of sockets does not respond")

// Client asks the holder of a path. It connects when it needs to, and may be used by several goroutines.
type Client struct {
	path string

	mu   sync.Mutex
	conn *net.UnixConn
}

// NewClient makes a client of the holder at a path.
func NewClient(path string) *Client { return &Client{path: path} }

// Listen returns a listener on a TCP socket that the holder has or opens.
func (c *Client) Listen(address string) (net.Listener, error) {
	file, err := c.open(Socket{"tcp", address})
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return net.FileListener(file)
}

// ListenPacket returns a UDP socket that the holder has or opens.
func (c *Client) ListenPacket(address string) (net.PacketConn, error) {
	file, err := c.open(Socket{"udp", address})
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return net.FilePacketConn(file)
}

func (c *Client) open(s Socket) (*os.File, error) {
	_, passed, err := c.ask(request{Do: "open", Socket: s})
	if err != nil {
		return nil, err
	}
	if len(passed) != 1 {
		closeAll(passed)
		return nil, fmt.Errorf("%w: %d descriptors came", ErrAway, len(passed))
	}
	return os.NewFile(uintptr(passed[0]), s.String()), nil
}

// Adopt gives a socket to a holder that does not have it; both have it then.
func (c *Client) Adopt(s Socket, opened syscall.Conn) error {
	fd, err := duplicate(opened)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	_, _, err = c.ask(request{Do: "adopt", Socket: s}, fd)
	return err
}

// Close has the holder close a socket. Who else has it keeps it.
func (c *Client) Close(s Socket) error {
	_, _, err := c.ask(request{Do: "close", Socket: s})
	return err
}

// List returns the names of what the holder has.
func (c *Client) List() (all []Socket, err error) {
	for more := true; more; {
		answer, _, err := c.ask(request{Do: "list", From: len(all)})
		if err != nil {
			return nil, err
		}
		all, more = append(all, answer.Sockets...), answer.More && len(answer.Sockets) > 0
	}
	return all, nil
}

// ask sends a request, over a new connection where the former one has ended.
func (c *Client) ask(r request, given ...int) (*reply, []int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for fresh := false; ; fresh = true {
		if c.conn == nil {
			conn, err := net.DialTimeout("unix", c.path, messageTime)
			if err != nil {
				return nil, nil, fmt.Errorf("%w: %w", ErrAway, err)
			}
			c.conn, fresh = conn.(*net.UnixConn), true
		}
		answer, passed, err := exchange(c.conn, r, given...)
		if err == nil {
			if err = answer.err(); err != nil {
				closeAll(passed)
				passed = nil
			}
			return answer, passed, err
		}
		_ = c.conn.Close()
		c.conn = nil
		if fresh {
			return nil, nil, fmt.Errorf("%w: %w", ErrAway, err)
		}
	}
}

// exchange sends a request and waits for its reply, for longer than a hand-over of the sockets takes.
func exchange(conn *net.UnixConn, r request, given ...int) (*reply, []int, error) {
	if err := send(conn, r, given...); err != nil {
		return nil, nil, err
	}
	_ = conn.SetReadDeadline(time.Now().Add(turnTime + messageTime))
	answer := &reply{}
	passed, err := receive(conn, maxReply, answer)
	return answer, passed, err
}
