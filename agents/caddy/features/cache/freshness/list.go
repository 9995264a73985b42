package freshness

import (
	"iter"
	"strings"
)

// Absent is the value of a directive with a time that is missing.
const Absent = -1

// members are the members of a list that is split at commas outside of quotes (RFC 9110 section 5.6.1), over several lines.
// Empty members are left out. A quote without an end quotes the rest of its line.
func members(lines []string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, line := range lines {
			for line != "" {
				end := outside(line, ',')
				member := trim(line[:end])
				if member != "" && !yield(member) {
					return
				}
				line = line[min(end+1, len(line)):]
			}
		}
	}
}

// outside is where a character is first, outside of quotes; the length of the text if it is not there.
func outside(text string, c byte) int {
	quoted := false
	for i := 0; i < len(text); i++ {
		switch at := text[i]; {
		case at == '"':
			quoted = !quoted
		case quoted && at == '\\':
			i++
		case !quoted && at == c:
			return i
		}
	}
	return len(text)
}

func trim(text string) string { return strings.Trim(text, " \t") }

// unquote returns the text of a quoted string (RFC 9110 section 5.6.4). ok is false where it has no end.
func unquote(value string) (text string, ok bool) {
	if len(value) < 2 || value[len(value)-1] != '"' {
		return "", false
	}
	inner := value[1 : len(value)-1]
	if strings.IndexAny(inner, `\"`) < 0 {
		return inner, true
	}
	b := make([]byte, 0, len(inner))
	for i := 0; i < len(inner); i++ {
		switch c := inner[i]; {
		case c == '"':
			return "", false
		case c == '\\':
			if i++; i == len(inner) {
				return "", false
			}
			b = append(b, inner[i])
		default:
			b = append(b, c)
		}
	}
	return string(b), true
}

// isToken reports whether a text is a token (RFC 9110 section 5.6.2).
func isToken(text string) bool {
	for i := range len(text) {
		c := text[i]
		if c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0 {
			continue
		}
		return false
	}
	return text != ""
}
