package expr

import (
	"errors"
	"strings"
)

var errPattern = errors.New("the expression has a pattern outside the supported subset")

// checkedPattern is a pattern of the subset of regular expressions.
type checkedPattern struct {
	groups int
	// Instructions of its program, with repetitions written out.
	size int
}

// checkRegex reads a pattern of the subset, in which repetitions follow a character, an escape or a class, never a group.
func checkRegex(source string) (checkedPattern, error) {
	if len(source) > maxRegex || hasByte(source, func(c byte) bool { return c < ' ' || c > '~' }) {
		return checkedPattern{}, errPattern
	}
	r := regexReader{source: source}
	if !r.alternatives() || r.at < len(source) {
		return checkedPattern{}, errPattern
	}
	// The whole is saved as a group, and ends with a match.
	return checkedPattern{groups: r.groups, size: r.size + 3}, nil
}

// regexReader's methods answer false for what is not in the subset.
type regexReader struct {
	source string
	at     int
	groups int
	size   int
}

// peek is the byte at an offset from here; 0 after the end.
func (r *regexReader) peek(offset int) byte {
	if r.at+offset < len(r.source) {
		return r.source[r.at+offset]
	}
	return 0
}

// alternatives reads up to the end or an unopened parenthesis. The length of the pattern bounds how deep it calls itself.
func (r *regexReader) alternatives() bool {
	for {
		if !r.sequence() {
			return false
		}
		if r.peek(0) != '|' {
			return true
		}
		r.at++
		r.size += 2
	}
}

func (r *regexReader) sequence() bool {
	for {
		ok := true
		switch c := r.peek(0); c {
		case 0, '|', ')':
			return true
		case '(':
			ok = r.group()
		case '*', '+', '?', '{', '}', ']':
			return false
		case '^', '$':
			r.at++
			r.size++
		case '[':
			ok = r.class() && r.repetition()
		case '\\':
			if next := r.peek(1); next == 'b' || next == 'B' {
				r.at += 2
				r.size++
				break
			}
			_, ok = r.escape()
			ok = ok && r.repetition()
		default:
			r.at++
			ok = r.repetition()
		}
		if !ok {
			return false
		}
	}
}

func (r *regexReader) group() bool {
	r.at++
	r.groups++
	r.size += 2
	if r.peek(0) == '?' || !r.alternatives() || r.peek(0) != ')' {
		return false
	}
	r.at++
	return true
}

// Of an escape or a member of a class that stands for several bytes.
const severalBytes = -1

// escape reads what a backslash and what follows it stand for: a byte, or several.
func (r *regexReader) escape() (int, bool) {
	c := r.peek(1)
	r.at += 2
	switch {
	case c == 'd' || c == 'D' || c == 'w' || c == 'W':
		return severalBytes, true
	case c == 't':
		return '\t', true
	case c == 'n':
		return '\n', true
	case c == 'f':
		return '\f', true
	case c == 'r':
		return '\r', true
	case isPunctuation(c):
		return int(c), true
	case c == 'x':
		high, low := r.peek(0), r.peek(1)
		if high < '0' || high > '7' || !isHex(low) {
			return 0, false
		}
		r.at += 2
		return int(high-'0')<<4 | int(unhex(low)), true
	}
	return 0, false
}

func isPunctuation(c byte) bool {
	return c >= '!' && c <= '/' || c >= ':' && c <= '@' || c >= '[' && c <= '`' || c >= '{' && c <= '~'
}

// unhex is the value of a digit in hex.
func unhex(c byte) byte {
	switch {
	case c <= '9':
		return c - '0'
	case c >= 'a':
		return c - 'a' + 10
	}
	return c - 'A' + 10
}

// class reads [abc], [^a-z] or [\d_-]. Other engines take [:x:] for a class of its own, so nobody may write it.
func (r *regexReader) class() bool {
	opening := r.peek(1)
	start := r.at
	r.at++
	if opening == '^' {
		r.at++
	}
	first := r.at
	if r.peek(0) == ']' {
		return false
	}
	for r.peek(0) != ']' {
		low, dash, ok := r.member(first)
		if !ok {
			return false
		}
		if next := r.peek(1); r.peek(0) != '-' || next == ']' || next == 0 {
			continue
		}
		r.at++
		high, dashToo, ok := r.member(first)
		if !ok || dash || dashToo || low == severalBytes || high < low {
			return false
		}
	}
	if strings.IndexByte(":.=", opening) >= 0 && r.at > start+2 && r.source[r.at-1] == opening {
		return false
	}
	r.at++
	return true
}

// member reads one byte or escape of a class; dash tells of a bare one, which can only be first or last.
func (r *regexReader) member(first int) (b int, dash, ok bool) {
	c := r.peek(0)
	switch c {
	case 0, '[':
		return 0, false, false
	case '\\':
		b, ok = r.escape()
		return b, false, ok
	case '-':
		if next := r.peek(1); r.at != first && next != ']' && next != 0 {
			return 0, false, false
		}
		dash = true
	}
	r.at++
	return int(c), dash, true
}

// repetition reads the one that may follow a byte, and counts both.
func (r *regexReader) repetition() bool {
	least, most, unbounded := 1, 1, false
	switch r.peek(0) {
	case '*':
		least, unbounded = 0, true
	case '+':
		unbounded = true
	case '?':
		least = 0
	case '{':
		end := strings.IndexByte(r.source[r.at:], '}')
		if end < 0 {
			return false
		}
		low, high, between := strings.Cut(r.source[r.at+1:r.at+end], ",")
		var ok, okToo bool
		least, ok = repeatCount(low)
		switch {
		case !between:
			most, okToo = least, true
		case high == "":
			unbounded, okToo = true, true
		default:
			most, okToo = repeatCount(high)
		}
		if !ok || !okToo || !unbounded && most < least {
			return false
		}
		r.at += end
	default:
		r.size++
		return true
	}
	r.at++
	if r.peek(0) == '?' {
		r.at++
	}
	r.size += least
	if unbounded {
		r.size += 3
	} else {
		r.size += 2 * (most - least)
	}
	return true
}

// repeatCount reads a bound without zeros in front.
func repeatCount(digits string) (int, bool) {
	if digits == "" || len(digits) > 4 || len(digits) > 1 && digits[0] == '0' {
		return 0, false
	}
	n := 0
	for i := range len(digits) {
		if digits[i] < '0' || digits[i] > '9' {
			return 0, false
		}
		n = 10*n + int(digits[i]-'0')
	}
	return n, n <= maxRepeat
}
