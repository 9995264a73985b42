package listen

import (
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"
)

const (
	frameHeadBytes = 9
	// What RFC 9113 has every server take, and as much as nginx takes.
	maxFrameBytes = 16 << 10
	// Every client says it at once.
	prefaceTime = 10 * time.Second
	// A head of 64 KiB in frames of the usual size are five.
	maxContinuations = 32
)

// Names under which servers of HTTP/2 are found by what was negotiated. The second one takes connections of any kind.
const (
	protoHTTP2 = "h2"
	protoAny   = "unencrypted_http2"
)

var errPreface = errors.New("the client does not begin with the HTTP/2 preface")

// allowance is how many frames of a kind a client may send: so many at once, so many more each second, and so many more for
// each KiB that it gets.
type allowance struct {
	name               string
	burst, second, kib float64
}

type frameKind int

const (
	settingsFrames frameKind = iota
	pingFrames
	resetFrames
	priorityFrames
	windowFrames
	emptyFrames
	unknownFrames
	frameKinds
)

// Far above what clients do, and so little work that none of it is felt. Clients of gRPC ping, and Go's move windows, as
// answers come.
var allowances = [frameKinds]allowance{
	settingsFrames: {"settings", 100, 10, 0},
	pingFrames:     {"pings", 1000, 100, 1},
	resetFrames:    {"resets", 500, 100, 0},
	priorityFrames: {"priorities", 1000, 100, 0},
	windowFrames:   {"window_updates", 2000, 200, 4},
	emptyFrames:    {"empty_frames", 100, 10, 0},
	unknownFrames:  {"unknown_frames", 1000, 100, 0},
}

// spent is what a client has used of an allowance; it gets less again with time.
type spent struct {
	used  float64
	since time.Time
	sent  uint64
}

// framedConn looks at the frames of HTTP/2 that a client sends before the server does, which bounds streams, heads and
// answers that wait, but neither how often a client resets streams nor what else costs more to take than to send. Its reads
// belong to one goroutine.
type framedConn struct {
	net.Conn
	errors *tally
	// Where requests come from; nil where that is not ours.
	under *Conn

	// Of the head of the next frame what has come, or of the payload of the present one what is to come.
	head    [frameHeadBytes]byte
	headed  int
	payload uint32
	// The payload that begins is one of SETTINGS.
	settings bool
	// Bytes to come of an increment of the connection's window, and those that came.
	windowBytes   int
	window        uint32
	continuations int
	// What came of the present head, as it was sent.
	headBytes uint32
	spent     [frameKinds]spent
	over      error
	sent      atomic.Uint64
}

// errNoFrames says that this version of HTTP/2 takes no connections of ours, so that nothing would bound floods of frames.
var errNoFrames = fmt.Errorf("HTTP/2 of golang.org/x/net under %s has no server for connections of any kind (TLSNextProto[%q]), "+
	"which the limits on frames need: build the edge with the versions of its go.mod", runtime.Version(), protoAny)

// checkFrames fails where watchFrames could not do its work for a server that Caddy makes.
func checkFrames(configure func(*http.Server, *http2.Server) error) error {
	server := new(http.Server)
	if err := configure(server, new(http2.Server)); err != nil {
		return err
	}
	if server.TLSNextProto[protoHTTP2] == nil || server.TLSNextProto[protoAny] == nil {
		return errNoFrames
	}
	return nil
}

// watchFrames has the server take connections of HTTP/2 through framedConn. It reports false where the server speaks HTTP/2
// and takes no connections of ours; connections of HTTP/2 are then closed, because nothing would bound their frames.
func (w *Wrapper) watchFrames(server *http.Server) bool {
	if server.TLSNextProto[protoHTTP2] == nil {
		return true
	}
	serve := server.TLSNextProto[protoAny]
	if serve == nil {
		server.TLSNextProto[protoHTTP2] = func(_ *http.Server, conn *tls.Conn, _ http.Handler) { _ = conn.Close() }
		return false
	}
	server.TLSNextProto[protoHTTP2] = func(server *http.Server, conn *tls.Conn, handler http.Handler) {
		c := &framedConn{Conn: conn, errors: &w.registry.http2Errors}
		c.under, _ = conn.NetConn().(*Conn)
		if err := c.expect(http2.ClientPreface); err != nil {
			if errors.Is(err, errPreface) {
				c.errors.add("conn_PROTOCOL_ERROR_preface")
			}
			_ = conn.Close()
			return
		}
		// It unwraps the connection and makes no handshake.
		serve(server, tls.Client(anyConn{secureFrames{c, conn}}, nil), handler)
	}
	return true
}

// anyConn is how a connection that is no *tls.Conn is handed to a server of HTTP/2.
type anyConn struct{ net.Conn }

func (c anyConn) UnencryptedNetConn() net.Conn { return c.Conn }

// secureFrames tells the server what the handshake decided.
type secureFrames struct {
	*framedConn
	secure *tls.Conn
}

// ConnectionState is for the server of HTTP/2.
func (c secureFrames) ConnectionState() tls.ConnectionState { return c.secure.ConnectionState() }

func (c *framedConn) Write(p []byte) (int, error) {
	if c.under != nil {
		c.under.flow.writing.Store(time.Now().UnixNano())
		defer c.under.flow.writing.Store(0)
	}
	n, err := c.under.together(p, c.Conn.Write)
	c.sent.Add(uint64(n))
	return n, err
}

// Read reads what is within the allowances. Beyond them the server gets an error with which it says GOAWAY.
func (c *framedConn) Read(p []byte) (int, error) {
	if c.over != nil {
		return 0, c.over
	}
	if c.settings && uint32(len(p)) == c.payload {
		if n, err := io.ReadFull(c.Conn, p); err != nil {
			return n, err
		}
		c.settings, c.payload = false, 0
		lastCounts(p)
		c.streamsBeginWith(p)
		return len(p), nil
	}
	n, err := c.Conn.Read(p)
	if beyond := c.follow(p[:n]); beyond != nil {
		c.over = beyond
		return 0, beyond
	}
	return n, err
}

// follow finds the heads of frames in what was read.
func (c *framedConn) follow(p []byte) error {
	for len(p) > 0 {
		if c.payload > 0 {
			n := min(uint32(len(p)), c.payload)
			c.payload -= n
			c.settings = c.settings && n == 0
			c.widen(p[:n])
			p = p[n:]
			continue
		}
		n := copy(c.head[c.headed:], p)
		c.headed += n
		p = p[n:]
		if c.headed == frameHeadBytes {
			c.headed = 0
			if err := c.frame(time.Now()); err != nil {
				return err
			}
		}
	}
	return nil
}

// frame counts the frame whose head has come.
func (c *framedConn) frame(now time.Time) error {
	c.payload = uint32(c.head[0])<<16 | uint32(c.head[1])<<8 | uint32(c.head[2])
	flags := http2.Flags(c.head[4])
	c.settings, c.windowBytes = false, 0
	switch http2.FrameType(c.head[3]) {
	case http2.FrameData:
		if c.payload == 0 && !flags.Has(http2.FlagDataEndStream) {
			return c.spend(emptyFrames, now)
		}
	case http2.FrameHeaders:
		c.continuations, c.headBytes = 0, 0
		c.headGrows()
		if c.under != nil && c.under.refusals.Load() > maxRefusals {
			return c.refuse("refused_requests")
		}
	case http2.FrameContinuation:
		c.headGrows()
		if c.continuations++; c.continuations > maxContinuations {
			return c.refuse("continuations")
		}
	case http2.FrameSettings:
		c.settings = c.payload > 0 && c.payload <= maxFrameBytes
		return c.spend(settingsFrames, now)
	case http2.FramePing:
		return c.spend(pingFrames, now)
	case http2.FrameRSTStream:
		return c.spend(resetFrames, now)
	case http2.FramePriority:
		return c.spend(priorityFrames, now)
	case http2.FrameWindowUpdate:
		if binary.BigEndian.Uint32(c.head[5:])<<1 == 0 && c.payload == 4 {
			c.windowBytes, c.window = 4, 0
		}
		return c.spend(windowFrames, now)
	default:
		return c.spend(unknownFrames, now)
	}
	return nil
}

// widen reads an increment of the connection's window.
func (c *framedConn) widen(payload []byte) {
	for i := 0; i < len(payload) && c.windowBytes > 0; i++ {
		c.window = c.window<<8 | uint32(payload[i])
		if c.windowBytes--; c.windowBytes == 0 && c.under != nil {
			c.under.flow.left.Add(int64(c.window &^ (1 << 31)))
		}
	}
}

// streamsBeginWith reads from settings how large the window of each stream is at first.
func (c *framedConn) streamsBeginWith(payload []byte) {
	for ; c.under != nil && len(payload) >= settingBytes; payload = payload[settingBytes:] {
		if http2.SettingID(binary.BigEndian.Uint16(payload)) == http2.SettingInitialWindowSize {
			c.under.flow.stream.Store(int64(binary.BigEndian.Uint32(payload[2:])) - firstWindow)
		}
	}
}

// headGrows counts a head that becomes larger than what a server takes, which net/http refuses without a word to anybody
// else. One that is larger only once it is unpacked is not seen here.
func (c *framedConn) headGrows() {
	before := c.headBytes
	c.headBytes += c.payload
	if before <= maxHeaderBlock && c.headBytes > maxHeaderBlock {
		c.errors.add(largeHead)
	}
}

// spend takes one frame of a kind from what is allowed.
func (c *framedConn) spend(kind frameKind, now time.Time) error {
	if allowed := &allowances[kind]; !c.spent[kind].within(allowed, now, c.sent.Load()) {
		return c.refuse(allowed.name)
	}
	return nil
}

// within takes one from an allowance and reports whether there was one; sent is what the client got so far.
func (s *spent) within(allowed *allowance, now time.Time, sent uint64) bool {
	back := now.Sub(s.since).Seconds()*allowed.second + float64(sent-s.sent)/1024*allowed.kib
	s.used = max(0, s.used-back) + 1
	s.since, s.sent = now, sent
	return s.used <= allowed.burst
}

func (c *framedConn) refuse(what string) error {
	c.errors.add("conn_ENHANCE_YOUR_CALM_" + what)
	return http2.ConnectionError(http2.ErrCodeEnhanceYourCalm)
}

const settingBytes = 6

// lastCounts makes of settings that come twice in a frame ones that nobody knows, but for the last: net/http would refuse
// the connection, where RFC 9113 has them apply in their order.
func lastCounts(payload []byte) {
	if len(payload)%settingBytes != 0 || len(payload) > maxSettings*settingBytes {
		return
	}
	var seen []uint16
	unknown := uint16(0xf000)
	for at := len(payload) - settingBytes; at >= 0; at -= settingBytes {
		id := binary.BigEndian.Uint16(payload[at:])
		if slices.Contains(seen, id) {
			for unknown++; slices.Contains(seen, unknown); unknown++ {
			}
			id = unknown
			binary.BigEndian.PutUint16(payload[at:], id)
		}
		seen = append(seen, id)
	}
}

// A frame with more settings than there are goes to the server as it came.
const maxSettings = 32
