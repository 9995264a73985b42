package bodies

import (
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// URLDecodeUni is the transformation of this name. The usual one takes the low byte of a character that it does not know:
// U+5A27, a Chinese character, becomes an apostrophe. Here characters become what they look like in ASCII, if anything,
// and else stay themselves.
func URLDecodeUni(text string) (decoded string, changed bool, err error) {
	at := strings.IndexAny(text, "%+")
	if at < 0 {
		return text, false, nil
	}
	out := append(make([]byte, 0, len(text)), text[:at]...)
	for i := at; i < len(text); {
		switch c := text[i]; {
		case c == '+':
			out, changed = append(out, ' '), true
			i++
			continue
		case c == '%' && i+5 < len(text) && text[i+1]|0x20 == 'u':
			if r, ok := hexNumber(text[i+2 : i+6]); ok {
				out, changed = AppendLookalike(out, rune(r)), true
				i += 6
				continue
			}
		case c == '%' && i+2 < len(text):
			if b, ok := hexNumber(text[i+1 : i+3]); ok {
				out, changed = append(out, byte(b)), true
				i += 3
				continue
			}
		}
		out = append(out, text[i])
		i++
	}
	if !changed {
		return text, false, nil
	}
	return string(out), true, nil
}

// JSDecode is the transformation of this name, in the same way: escapes of JavaScript become characters, and those what
// they look like. A backslash before anything else is dropped.
func JSDecode(text string) (decoded string, changed bool, err error) {
	at := strings.IndexByte(text, '\\')
	if at < 0 {
		return text, false, nil
	}
	out := append(make([]byte, 0, len(text)), text[:at]...)
	for i := at; i < len(text); {
		if text[i] != '\\' || i+1 == len(text) {
			out = append(out, text[i])
			i++
			continue
		}
		changed = true
		r, n := jsEscape(text[i+1:])
		if utf16.IsSurrogate(r) && strings.HasPrefix(text[i+1+n:], `\u`) {
			if low, more := jsEscape(text[i+2+n:]); utf16.IsSurrogate(low) {
				r, n = utf16.DecodeRune(r, low), n+1+more
			}
		}
		switch {
		case n > 0:
			out = AppendLookalike(out, r)
		case text[i+1] == 'x' && i+3 < len(text) && isHex(text[i+2:i+4]):
			b, _ := hexNumber(text[i+2 : i+4])
			out, n = append(out, byte(b)), 3
		case isOctal(text[i+1]):
			var b byte
			for n < 3 && i+1+n < len(text) && isOctal(text[i+1+n]) && b < 0o40 {
				b = b<<3 | (text[i+1+n] - '0')
				n++
			}
			out = append(out, b)
		default:
			c := text[i+1]
			if at := strings.IndexByte("abfnrtv", c); at >= 0 {
				c = "\a\b\f\n\r\t\v"[at]
			}
			out, n = append(out, c), 1
		}
		i += 1 + n
	}
	if !changed {
		return text, false, nil
	}
	return string(out), true, nil
}

// maxEscape is the length of the longest \u{H}, without the backslash.
const maxEscape = len("u{10ffff}")

// jsEscape reads what follows the backslash of \uHHHH or \u{H}: the character and how many bytes it is, 0 for none.
func jsEscape(text string) (r rune, length int) {
	if text == "" || text[0] != 'u' {
		return 0, 0
	}
	if strings.HasPrefix(text, "u{") {
		if end := strings.IndexByte(text[:min(len(text), maxEscape)], '}'); end > 2 && isHex(text[2:end]) {
			n, _ := hexNumber(text[2:end])
			return rune(n), end + 1
		}
		return 0, 0
	}
	if len(text) >= 5 && isHex(text[1:5]) {
		n, _ := hexNumber(text[1:5])
		return rune(n), 5
	}
	return 0, 0
}

func isHex(digits string) bool {
	_, ok := hexNumber(digits)
	return ok
}

func isOctal(c byte) bool { return c >= '0' && c <= '7' }

func hexNumber(digits string) (n int, ok bool) {
	for i := range len(digits) {
		switch c := digits[i]; {
		case '0' <= c && c <= '9':
			n = n<<4 | int(c-'0')
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			n = n<<4 | int(c|0x20-'a'+10)
		default:
			return 0, false
		}
	}
	return n, true
}

// lookalikes are characters that programs take for one of ASCII, beside those that Unicode says are made of one.
var lookalikes = map[rune]byte{
	0x00ab: '<', 0x00bb: '>', 0x00a6: '|', 0x00ad: '-', 0x00b7: '.', 0x00b4: '\'', 0x00d0: 'D', 0x00d8: 'O', 0x00f8: 'o', 0x0131: 'i',
	0x02b9: '\'', 0x02ba: '"', 0x02bb: '\'', 0x02bc: '\'', 0x02c8: '\'', 0x02ca: '\'', 0x02cb: '`', 0x02d0: ':',
	0x0300: '`', 0x0301: '\'', 0x030e: '"', 0x037e: ';',
	0x2010: '-', 0x2011: '-', 0x2012: '-', 0x2013: '-', 0x2014: '-', 0x2015: '-',
	0x2018: '\'', 0x2019: '\'', 0x201a: '\'', 0x201b: '\'', 0x201c: '"', 0x201d: '"', 0x201e: '"', 0x2032: '\'', 0x2033: '"', 0x2035: '`',
	0x2039: '<', 0x203a: '>', 0x2044: '/', 0x2212: '-', 0x2215: '/', 0x2216: '\\', 0x2217: '*', 0x2223: '|', 0x2236: ':', 0x223c: '~',
	0x2329: '<', 0x232a: '>', 0x3008: '<', 0x3009: '>', 0x301a: '[', 0x301b: ']', 0x301d: '"', 0x301e: '"',
}

// Chinese, Japanese and Korean, the bulk of what is not ASCII, looks like nothing in it.
const firstIdeograph, lastIdeograph = 0x3040, 0xd7ff

// AppendLookalike appends what programs of ASCII take a character for, else the character.
func AppendLookalike(out []byte, r rune) []byte {
	switch {
	case r < 0x80:
		return append(out, byte(r))
	case r >= firstIdeograph && r <= lastIdeograph:
		return utf8.AppendRune(out, r)
	}
	if b, ok := lookalikes[r]; ok {
		return append(out, b)
	}
	var own, made [64]byte
	parts := norm.NFKD.Append(made[:0], utf8.AppendRune(own[:0], r)...)
	if parts[0] < utf8.RuneSelf {
		return append(out, parts[0])
	}
	if r <= 0xff {
		return append(out, byte(r))
	}
	return utf8.AppendRune(out, r)
}
