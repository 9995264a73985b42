package listen

import (
	"bytes"
	"strconv"
)

// lead takes empty lines out of what a client of HTTP/1 sends before a request line, first and after each request, which
// RFC 9112 §2.2 asks of servers and net/http does after POST alone. It touches nothing but CR and LF where a request line
// has to begin. It knows that place only while every head says in the plainest way how long its body is; after any other
// head all bytes pass as they came.
//
//	place     | bytes                                    | next
//	begins    | CR LF, LF                                | begins, without them
//	begins    | CR before anything else                  | opaque: no request begins so, and net/http refuses it
//	begins    | any other                                | head
//	head      | the empty line; no length                | begins
//	head      | the empty line; one Content-Length       | body of that length, then begins
//	head      | the empty line; chunks, upgrades, others | opaque
type lead struct {
	place leadPlace
	// CR came where a request line has to begin.
	returned bool
	// Bytes to come of a body.
	left int64
	// Beginning of the present line of a head, and bytes of the line.
	line   [maxLeadLine]byte
	length int
	// What the head says of its body: digits of its length, -1 for none, and whether nobody should guess.
	body   int64
	odd    bool
	within bool
}

type leadPlace uint8

const (
	leadBegins leadPlace = iota
	leadHead
	leadBody
	leadOpaque
)

// maxLeadLine holds Content-Length with the longest length, and some blanks.
const maxLeadLine = 48

// filter takes the lines out of p, in place, and returns how many bytes are left.
func (l *lead) filter(p []byte) int {
	if l.place == leadOpaque {
		return len(p)
	}
	kept := 0
	keep := func(part []byte) { kept += copy(p[kept:], part) }
	for at := 0; at < len(p); {
		switch l.place {
		case leadBegins:
			c := p[at]
			switch {
			case c == '\n':
				l.returned = false
				at++
			case l.returned:
				// In the place of one byte, so that there is room.
				p[at] = '\r'
				l.place = leadOpaque
			case c == '\r':
				l.returned = true
				at++
			default:
				l.place, l.length, l.body, l.odd, l.within = leadHead, 0, -1, false, false
			}
		case leadHead:
			n := l.scan(p[at:])
			keep(p[at : at+n])
			at += n
		case leadBody:
			n := int(min(l.left, int64(len(p)-at)))
			keep(p[at : at+n])
			at += n
			if l.left -= int64(n); l.left == 0 {
				l.place = leadBegins
			}
		case leadOpaque:
			keep(p[at:])
			return kept
		}
	}
	return kept
}

// scan reads a head up to its end, at most, and returns how many bytes that were.
func (l *lead) scan(p []byte) int {
	read := 0
	for read < len(p) {
		end := bytes.IndexByte(p[read:], '\n')
		part := p[read:]
		if end >= 0 {
			part = part[:end]
		}
		if l.length < maxLeadLine {
			copy(l.line[l.length:], part)
		}
		l.length += len(part)
		read += len(part)
		if end < 0 {
			return read
		}
		read++
		if l.endLine() {
			return read
		}
	}
	return read
}

// endLine looks at a whole line of a head and reports whether it was the empty one.
func (l *lead) endLine() bool {
	length := l.length
	line := l.line[:min(length, maxLeadLine)]
	l.length = 0
	if length == 1 && line[0] == '\r' || length == 0 {
		l.end()
		return true
	}
	if !l.within {
		// HTTP/2 begins with a request that no server of HTTP/1 takes.
		l.within, l.odd = true, bytes.HasPrefix(line, []byte("PRI "))
		return false
	}
	name, value, _ := bytes.Cut(line, []byte(":"))
	name = bytes.TrimSpace(name)
	switch {
	case bytes.EqualFold(name, []byte("Content-Length")):
		digits := string(bytes.TrimSpace(value))
		n, err := strconv.ParseUint(digits, 10, 62)
		// A second one, or one of several lines, is for net/http to judge.
		l.odd = l.odd || err != nil || l.body >= 0 || length > maxLeadLine || len(digits) > 1 && digits[0] == '0'
		l.body = int64(n)
	case bytes.EqualFold(name, []byte("Transfer-Encoding")), bytes.EqualFold(name, []byte("Upgrade")), line[0] == ' ', line[0] == '\t':
		l.odd = true
	}
	return false
}

func (l *lead) end() {
	switch {
	case l.odd:
		l.place = leadOpaque
	case l.body > 0:
		l.place, l.left = leadBody, l.body
	default:
		l.place = leadBegins
	}
}
