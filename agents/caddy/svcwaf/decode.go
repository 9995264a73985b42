package svcwaf

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// urlDecodeUni is the transformation of this name. The usual one takes the low byte of a character that it does not know:
// U+5A27, a Chinese character, becomes an apostrophe. Here characters become what they look like in ASCII, if anything,
// and else stay themselves.
func urlDecodeUni(text string) (decoded string, changed bool, err error) {
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
				out, changed = appendLookalike(out, rune(r)), true
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

func appendLookalike(out []byte, r rune) []byte {
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
