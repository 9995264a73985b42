package h2

import (
	"encoding/binary"
	"io"

	"golang.org/x/net/http2/hpack"
)

const (
	readBuffer = 32 << 10
	// Of the origin's header compression.
	tableSize = 4096
)

// reader is what reading a connection needs from one frame to the next.
type reader struct {
	decoder *hpack.Decoder
	// A header block that is not whole: the stream, its flags, and frames that continued it.
	block     []byte
	open      bool
	stream    uint32
	flags     byte
	continued int
	blockState
}

// read handles what the origin sends, until the connection ends.
func (c *Conn) read() {
	buffer := make([]byte, readBuffer)
	for w, over := 0, false; !over; {
		n, err := c.net.Read(buffer[w:])
		w += n
		var used int
		used, over = c.frames(buffer[:w], err)
		w = copy(buffer, buffer[used:w])
	}
}

// frames handles the whole frames of p, and the end of reading. It returns the length of them, and whether the connection is
// over.
func (c *Conn) frames(p []byte, err error) (used int, over bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.health.reads++
	for c.err == nil {
		n := c.frame(p[used:])
		if n == 0 {
			break
		}
		used += n
	}
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		c.fail(err)
	}
	return used, c.err != nil
}

// frame handles the frame that p begins with, under the lock. It returns the length of it, 0 where it is not whole.
func (c *Conn) frame(p []byte) int {
	if len(p) < headBytes {
		return 0
	}
	length := int(p[0])<<16 | int(p[1])<<8 | int(p[2])
	kind, flags, id := p[3], p[4], uint32At(p[5:])&streamBits
	if !c.started && (kind != frameSettings || flags&flagAck != 0) {
		c.fail(ErrNotHTTP2)
		return 0
	}
	if length > minFrame {
		c.breaks(codeFrameSize, "a frame is too large")
		return 0
	}
	if len(p) < headBytes+length {
		return 0
	}
	payload := p[headBytes : headBytes+length]
	if c.reader.open && (kind != frameContinuation || id != c.reader.stream) {
		c.breaks(codeProtocol, "a header block is interrupted")
		return 0
	}
	switch kind {
	case frameData:
		c.data(id, flags, payload)
	case frameHeaders:
		c.headers(id, flags, payload)
	case frameContinuation:
		c.continuation(id, flags, payload)
	case frameReset:
		c.resetBy(id, payload)
	case frameSettings:
		c.settings(id, flags, payload)
	case framePing:
		c.pong(id, flags, payload)
	case frameGoAway:
		c.goAway(id, payload)
	case frameWindow:
		c.window(id, payload)
	case framePriority:
		if id == 0 {
			c.breaks(codeProtocol, "PRIORITY has no stream")
		} else if length != 5 {
			c.breaks(codeFrameSize, "PRIORITY has another size")
		}
		c.wasted()
	case framePush:
		c.breaks(codeProtocol, "pushes are off")
	default:
		c.wasted()
	}
	return headBytes + length
}

// breaks ends the connection for an error of the origin, under the lock.
func (c *Conn) breaks(code uint32, what string) { c.fail(&connError{code, what}) }

// find returns the stream of a frame, nil where it is over. ok is false where there never was one.
func (c *Conn) find(id uint32, kind string) (s *Stream, ok bool) {
	if s = c.streams[id]; s != nil {
		return s, true
	}
	if id == 0 || id&1 == 0 || id > c.lastID {
		c.breaks(codeProtocol, kind+" has a stream that nobody opened")
		return nil, false
	}
	return nil, true
}

// unpad cuts the padding off a payload.
func (c *Conn) unpad(flags byte, payload []byte) ([]byte, bool) {
	if flags&flagPadded == 0 {
		return payload, true
	}
	if len(payload) == 0 || int(payload[0]) >= len(payload) {
		c.breaks(codeProtocol, "a frame has more padding than bytes")
		return nil, false
	}
	return payload[1 : len(payload)-int(payload[0])], true
}

func (c *Conn) data(id uint32, flags byte, payload []byte) {
	s, ok := c.find(id, "DATA")
	if !ok {
		return
	}
	size := int64(len(payload))
	if c.receive -= size; c.receive < 0 {
		c.breaks(codeFlowControl, "DATA is beyond the window of the connection")
		return
	}
	if payload, ok = c.unpad(flags, payload); !ok {
		return
	}
	// What streams hold is bounded by their own windows.
	if c.taken += size; c.taken >= connWindow/4 {
		c.out = appendWindow(c.out, 0, uint32(c.taken))
		c.receive, c.taken = c.receive+c.taken, 0
		c.signal()
	}
	if s == nil || len(payload) == 0 && flags&flagEndStream == 0 {
		c.wasted()
		if s == nil {
			return
		}
	} else {
		c.health.blocked, c.health.waste = false, 0
	}
	s.data(payload, size, flags&flagEndStream != 0)
}

func (c *Conn) resetBy(id uint32, payload []byte) {
	s, ok := c.find(id, "RST_STREAM")
	switch {
	case !ok:
	case len(payload) != resetBytes:
		c.breaks(codeFrameSize, "RST_STREAM has another size")
	case s == nil:
		c.wasted()
	default:
		s.resetBy(uint32At(payload))
	}
}

func (c *Conn) pong(id uint32, flags byte, payload []byte) {
	switch {
	case id != 0:
		c.breaks(codeProtocol, "PING has a stream")
	case len(payload) != pingBytes:
		c.breaks(codeFrameSize, "PING has another size")
	case flags&flagAck != 0:
		c.wasted()
		if c.health.pinging {
			c.pinged()
		}
	default:
		c.wasted()
		c.out = append(appendHead(c.out, pingBytes, framePing, flagAck, 0), payload...)
		c.signal()
	}
}

func (c *Conn) goAway(id uint32, payload []byte) {
	if id != 0 {
		c.breaks(codeProtocol, "GOAWAY has a stream")
		return
	}
	if len(payload) < 2*resetBytes {
		c.breaks(codeFrameSize, "GOAWAY has another size")
		return
	}
	c.wasted()
	last := uint32At(payload) & streamBits
	c.draining, c.leaving = true, true
	for id, s := range c.streams {
		// A stream whose response has begun was processed, whatever the origin says.
		if id > last && !s.hasHead {
			delete(c.streams, id)
			s.fail(ErrUnprocessed)
		}
	}
	c.rest()
}

func (c *Conn) window(id uint32, payload []byte) {
	if len(payload) != resetBytes {
		c.breaks(codeFrameSize, "WINDOW_UPDATE has another size")
		return
	}
	more := int64(uint32At(payload) & streamBits)
	c.wasted()
	if id == 0 {
		if c.send += more; more == 0 || c.send > maxWindow {
			c.breaks(windowCode(more), "WINDOW_UPDATE of the connection is 0 or too much")
			return
		}
		c.grant()
		return
	}
	s, ok := c.find(id, "WINDOW_UPDATE")
	if !ok || s == nil {
		return
	}
	if s.send += more; more == 0 || s.send > maxWindow {
		s.abort(ErrMalformed, windowCode(more))
		return
	}
	s.sendable()
}

func windowCode(more int64) uint32 {
	if more == 0 {
		return codeProtocol
	}
	return codeFlowControl
}

func (c *Conn) settings(id uint32, flags byte, payload []byte) {
	c.wasted()
	switch {
	case id != 0:
		c.breaks(codeProtocol, "SETTINGS has a stream")
		return
	case len(payload)%6 != 0 || flags&flagAck != 0 && len(payload) > 0:
		c.breaks(codeFrameSize, "SETTINGS has another size")
		return
	case flags&flagAck != 0:
		return
	}
	for ; len(payload) > 0; payload = payload[6:] {
		if !c.setting(binary.BigEndian.Uint16(payload), uint32At(payload[2:])) {
			return
		}
	}
	c.out = appendHead(c.out, 0, frameSettings, flagAck, 0)
	if !c.started {
		c.started = true
		close(c.ready)
	}
	c.grant()
	c.signal()
}

// setting takes one setting of the origin. The size of its table means nothing to an encoder without one.
func (c *Conn) setting(id uint16, value uint32) bool {
	switch id {
	case settingPush:
		if value != 0 {
			c.breaks(codeProtocol, "a server turns pushes on")
		}
	case settingStreams:
		c.most = value
	case settingWindow:
		if value > maxWindow {
			c.breaks(codeFlowControl, "the window of streams is too large")
			break
		}
		more := int64(value) - c.streamSend
		c.streamSend = int64(value)
		for _, s := range c.streams {
			if s.send += more; s.send > maxWindow {
				c.breaks(codeFlowControl, "the window of a stream is too large")
				break
			}
			s.sendable()
		}
	case settingFrameSize:
		if value < minFrame || value >= 1<<24 {
			c.breaks(codeProtocol, "the size of frames is not allowed")
			break
		}
		// More than that gives others no turn.
		c.maxFrame = minFrame
	}
	return c.err == nil
}
