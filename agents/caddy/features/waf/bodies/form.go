package bodies

import "strings"

// ReadForm takes the fields of a piece of a form.
func ReadForm(text string, part bool, post *Arguments) {
	if part {
		var value string
		value, text, _ = strings.Cut(text, "&")
		post.Put(post.last, plainWord+unescape(value))
	}
	ReadPairs(text, post)
}

// ReadPairs takes names and values as queries and forms have them.
func ReadPairs(text string, to *Arguments) {
	for text != "" {
		var pair string
		pair, text, _ = strings.Cut(text, "&")
		if pair == "" {
			continue
		}
		name, value, _ := strings.Cut(pair, "=")
		to.Put(unescape(name), unescape(value))
	}
}

// unescape decodes what forms encode, and leaves what is no encoding.
func unescape(text string) string {
	at := strings.IndexAny(text, "%+")
	if at < 0 {
		return text
	}
	out := append(make([]byte, 0, len(text)), text[:at]...)
	for i := at; i < len(text); i++ {
		switch c := text[i]; {
		case c == '+':
			out = append(out, ' ')
		case c == '%' && i+2 < len(text):
			if b, ok := hexNumber(text[i+1 : i+3]); ok {
				out = append(out, byte(b))
				i += 2
				continue
			}
			out = append(out, c)
		default:
			out = append(out, c)
		}
	}
	return string(out)
}
