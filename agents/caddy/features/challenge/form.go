package challenge

import "strings"

const maxFormBytes = 4096

// answerForm is what a page submits.
type answerForm struct {
	token, answer, back, alternative string
}

// readForm reads an application/x-www-form-urlencoded body. A field given twice has its first value; what is not
// encoded well stays as it is.
func readForm(body string) (form answerForm) {
	var seen [4]bool
	for rest, more := body, true; more; {
		var pair string
		pair, rest, more = strings.Cut(rest, "&")
		name, value, _ := strings.Cut(pair, "=")
		var to *string
		index := 0
		switch name {
		case "t":
			to, index = &form.token, 0
		case "a":
			to, index = &form.answer, 1
		case "r":
			to, index = &form.back, 2
		case "alt":
			to, index = &form.alternative, 3
		default:
			continue
		}
		if !seen[index] {
			seen[index] = true
			*to = unescape(value)
		}
	}
	return form
}

// unescape decodes "+" and "%xx".
func unescape(s string) string {
	if !strings.ContainsAny(s, "+%") {
		return s
	}
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '+':
			out = append(out, ' ')
		case c == '%' && i+2 < len(s) && unhex(s[i+1]) < 16 && unhex(s[i+2]) < 16:
			out = append(out, unhex(s[i+1])<<4|unhex(s[i+2]))
			i += 2
		default:
			out = append(out, c)
		}
	}
	return string(out)
}

func unhex(c byte) byte {
	switch {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10
	}
	return 16
}

// escapedBytes is the size a browser gives a text in such a body.
func escapedBytes(s string) int {
	n := 0
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '*', c == '-', c == '.', c == '_', c == ' ':
			n++
		default:
			n += 3
		}
	}
	return n
}
