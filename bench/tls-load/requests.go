package main

import (
	"bufio"
	"crypto/tls"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"sync"
	"time"
)

// Frames of HTTP/2 (RFC 9113) as far as a client needs them that sends one request over and over.
const (
	frameData         = 0
	frameHeaders      = 1
	frameReset        = 3
	frameSettings     = 4
	framePing         = 6
	frameGoAway       = 7
	frameWindowUpdate = 8
	frameContinuation = 9

	flagEndStream  = 1
	flagAck        = 1
	flagEndHeaders = 4
	flagPadded     = 8

	frameHeadBytes = 9
	preface        = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
	// A window that no answer of a benchmark fills, and when the connection's is filled up again.
	windowBytes  = 1 << 30
	refillBytes  = 1 << 20
	lastStreamID = 1 << 30
	// :status 200 of the static table of HPACK.
	status200 = 0x88
)

type tally struct{ requests, unexpected int }

// requests keeps a number of streams busy on each of a number of connections. The load of a client of the library would
// cost more than the answers of some servers; this one reads of them what it has to.
func requests(arguments []string) error {
	flags := flag.NewFlagSet("requests", flag.ExitOnError)
	address := flags.String("address", "", "host:port")
	host := flags.String("host", "localhost", "name that is asked for")
	seconds := flags.Float64("seconds", 1, "how long")
	connections := flags.Int("connections", 16, "connections")
	streams := flags.Int("streams", 4, "requests under way on each of them")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	dialled := make([]*client, *connections)
	for i := range dialled {
		c, err := dial(*address, *host)
		if err != nil {
			return err
		}
		dialled[i] = c
	}
	begun := time.Now()
	end := begun.Add(time.Duration(*seconds * float64(time.Second)))
	var all tally
	var failed error
	var mu sync.Mutex
	var workers sync.WaitGroup
	for _, c := range dialled {
		workers.Go(func() {
			counted, err := c.run(*streams, end)
			mu.Lock()
			defer mu.Unlock()
			all.requests += counted.requests
			all.unexpected += counted.unexpected
			failed = errors.Join(failed, err)
		})
	}
	workers.Wait()
	if failed != nil {
		return failed
	}
	return json.NewEncoder(os.Stdout).Encode(map[string]any{
		"seconds": time.Since(begun).Seconds(), "requests": all.requests, "unexpected": all.unexpected,
	})
}

// client is a connection.
type client struct {
	conn *tls.Conn
	in   *bufio.Reader
	out  []byte
	// Of a request, in HPACK without the table that changes.
	fields []byte
	next   uint32
	// Bytes of bodies since the window was filled up.
	taken int
}

func dial(address, host string) (*client, error) {
	raw, err := net.DialTimeout("tcp", address, dialTime)
	if err != nil {
		return nil, err
	}
	conn := tls.Client(raw, &tls.Config{InsecureSkipVerify: true, ServerName: host, NextProtos: []string{"h2"}})
	if err := conn.Handshake(); err != nil {
		return nil, err
	}
	if conn.ConnectionState().NegotiatedProtocol != "h2" {
		return nil, errors.New("the server does not speak HTTP/2")
	}
	c := &client{conn: conn, in: bufio.NewReaderSize(conn, 64<<10), next: 1, fields: requestFields(host)}
	c.out = append(c.out, preface...)
	// SETTINGS_ENABLE_PUSH 0, SETTINGS_INITIAL_WINDOW_SIZE
	settings := []byte{0, 2, 0, 0, 0, 0, 0, 4}
	c.frame(frameSettings, 0, 0, binary.BigEndian.AppendUint32(settings, windowBytes))
	c.grant(windowBytes)
	return c, nil
}

// requestFields are those of GET /, as literals that nobody remembers.
func requestFields(host string) []byte {
	fields := []byte{0x82, 0x84, 0x87} // :method GET, :path /, :scheme https
	fields = append(fields, 0x01)      // :authority
	fields = append(append(fields, byte(len(host))), host...)
	fields = append(fields, 0x0f, 0x2b) // user-agent
	const agent = "tlsload"
	return append(append(fields, byte(len(agent))), agent...)
}

func (c *client) frame(kind, flag byte, stream uint32, payload []byte) {
	n := len(payload)
	c.out = append(c.out, byte(n>>16), byte(n>>8), byte(n), kind, flag)
	c.out = binary.BigEndian.AppendUint32(c.out, stream)
	c.out = append(c.out, payload...)
}

func (c *client) grant(bytes uint32) {
	c.frame(frameWindowUpdate, 0, 0, binary.BigEndian.AppendUint32(nil, bytes))
}

func (c *client) ask() {
	c.frame(frameHeaders, flagEndStream|flagEndHeaders, c.next, c.fields)
	c.next += 2
}

// run keeps so many requests under way until a time, and waits for the last answers.
func (c *client) run(streams int, end time.Time) (counted tally, _ error) {
	defer c.conn.Close()
	_ = c.conn.SetDeadline(end.Add(dialTime))
	for range streams {
		c.ask()
	}
	for under := streams; under > 0; {
		// What is answered is sent once nothing more is there to read.
		if c.in.Buffered() < frameHeadBytes {
			if _, err := c.conn.Write(c.out); err != nil {
				return counted, err
			}
			c.out = c.out[:0]
		}
		ended, ok, err := c.read()
		if err != nil {
			return counted, err
		}
		if !ok {
			counted.unexpected++
		}
		if !ended {
			continue
		}
		counted.requests++
		if time.Now().Before(end) && c.next < lastStreamID {
			c.ask()
		} else {
			under--
		}
	}
	return counted, nil
}

// read takes one frame: whether it ended an answer, and whether it is what was expected.
func (c *client) read() (ended, ok bool, _ error) {
	head, err := c.in.Peek(frameHeadBytes)
	if err != nil {
		return false, false, err
	}
	length := int(head[0])<<16 | int(head[1])<<8 | int(head[2])
	kind, flag := head[3], head[4]
	_, _ = c.in.Discard(frameHeadBytes)
	ended = (kind == frameData || kind == frameHeaders) && flag&flagEndStream != 0
	ok = true
	switch kind {
	case frameData:
		if c.taken += length; c.taken >= refillBytes {
			c.grant(uint32(c.taken))
			c.taken = 0
		}
	case frameHeaders:
		if flag&flagPadded != 0 {
			return false, false, errors.New("answers with padding are none of these benchmarks")
		}
		ok, length, err = c.isStatus200(length)
		if err != nil {
			return false, false, err
		}
	case frameSettings:
		if flag&flagAck == 0 {
			c.frame(frameSettings, flagAck, 0, nil)
		}
	case framePing:
		payload, err := c.in.Peek(length)
		if err != nil {
			return false, false, err
		}
		if flag&flagAck == 0 {
			c.frame(framePing, flagAck, 0, payload)
		}
	case frameReset:
		ended, ok = true, false
	case frameGoAway:
		return false, false, errors.New("the server ended the connection")
	case frameWindowUpdate, frameContinuation:
	default:
		return false, false, fmt.Errorf("a frame of type %d", kind)
	}
	_, err = c.in.Discard(length)
	return ended, ok, err
}

// isStatus200 looks at the first field of an answer, behind changes of the table's size; left is what of the frame was not
// read.
func (c *client) isStatus200(length int) (is bool, left int, _ error) {
	for left = length; left > 0; {
		first, err := c.in.ReadByte()
		if err != nil {
			return false, left, err
		}
		left--
		// 001xxxxx begins such a change, with five bits of it or more bytes that follow.
		if first>>5 != 1 {
			return first == status200, left, nil
		}
		for more := first&0x1f == 0x1f; more && left > 0; left-- {
			next, err := c.in.ReadByte()
			if err != nil {
				return false, left, err
			}
			more = next&0x80 != 0
		}
	}
	return false, 0, nil
}
