package h2

import "encoding/binary"

// Types of frames (RFC 9113 §6).
const (
	frameData         = 0x0
	frameHeaders      = 0x1
	framePriority     = 0x2
	frameReset        = 0x3
	frameSettings     = 0x4
	framePush         = 0x5
	framePing         = 0x6
	frameGoAway       = 0x7
	frameWindow       = 0x8
	frameContinuation = 0x9
)

const (
	flagEndStream  = 0x1
	flagAck        = 0x1
	flagEndHeaders = 0x4
	flagPadded     = 0x8
	flagPriority   = 0x20
)

// Settings (RFC 9113 §6.5.2).
const (
	settingTableSize  = 0x1
	settingPush       = 0x2
	settingStreams    = 0x3
	settingWindow     = 0x4
	settingFrameSize  = 0x5
	settingHeaderSize = 0x6
)

const (
	preface    = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
	headBytes  = 9
	pingBytes  = 8
	resetBytes = 4
	// Largest payload that a peer takes without saying more, and that this side takes.
	minFrame = 16 << 10
	// Largest window.
	maxWindow = 1<<31 - 1
	// Window of a stream, and of a connection, without a setting.
	firstWindow = 1<<16 - 1
	streamBits  = 1<<31 - 1
)

func appendHead(b []byte, length int, kind, flags byte, stream uint32) []byte {
	b = append(b, byte(length>>16), byte(length>>8), byte(length), kind, flags)
	return binary.BigEndian.AppendUint32(b, stream)
}

func appendWindow(b []byte, stream uint32, more uint32) []byte {
	return binary.BigEndian.AppendUint32(appendHead(b, resetBytes, frameWindow, 0, stream), more)
}

func appendReset(b []byte, stream, code uint32) []byte {
	return binary.BigEndian.AppendUint32(appendHead(b, resetBytes, frameReset, 0, stream), code)
}

func appendGoAway(b []byte, code uint32) []byte {
	b = appendHead(b, 2*resetBytes, frameGoAway, 0, 0)
	// Origins open no streams.
	b = binary.BigEndian.AppendUint32(b, 0)
	return binary.BigEndian.AppendUint32(b, code)
}

func appendSetting(b []byte, id uint16, value uint32) []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint16(b, id), value)
}

// appendBlock appends a header block as HEADERS and what continues it.
func appendBlock(b []byte, stream uint32, first, rest []byte, end bool, most int) []byte {
	kind, flags := byte(frameHeaders), byte(0)
	if end {
		flags = flagEndStream
	}
	// What begins the block goes into its first frame.
	n := min(len(rest), most-len(first))
	for {
		if n == len(rest) {
			flags |= flagEndHeaders
		}
		b = appendHead(b, len(first)+n, kind, flags, stream)
		b = append(append(b, first...), rest[:n]...)
		if rest = rest[n:]; len(rest) == 0 {
			return b
		}
		kind, flags, first, n = frameContinuation, 0, nil, min(len(rest), most)
	}
}
