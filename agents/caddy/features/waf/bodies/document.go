package bodies

import (
	stdjson "encoding/json"
	"strings"
)

// maxLeaves is how many texts of documents in values become values of their own; others are lines of one.
const maxLeaves = 128

// putDocument takes a value that is a document of JSON, as editors put into fields of forms: its texts have the name of the
// field. Texts in them are not read as documents again.
func (a *Arguments) putDocument(name, value string) bool {
	if a.full() || len(value) > MaxValue || !BeginsLikeJSON(value) || !stdjson.Valid([]byte(value)) {
		return false
	}
	var lines strings.Builder
	line := func(text string) {
		if len(text) > 1 && !isCommand(text) {
			lines.WriteString(plainWord)
		}
		lines.WriteString(text)
		lines.WriteByte('\n')
	}
	d := stdjson.NewDecoder(strings.NewReader(value))
	d.UseNumber()
	known := map[string]bool{}
	// Of each open object, whether a name is next; arrays are no objects.
	type level struct{ object, name bool }
	var open []level
	for {
		token, err := d.Token()
		if err != nil {
			break
		}
		at := len(open) - 1
		if delim, isDelim := token.(stdjson.Delim); isDelim {
			switch delim {
			case '{', '[':
				open = append(open, level{delim == '{', delim == '{'})
				continue
			default:
				open = open[:at]
				at--
			}
		} else if at >= 0 && open[at].name {
			open[at].name = false
			if key, _ := token.(string); !known[key] {
				known[key] = true
				line(key)
			}
			continue
		} else if text, isText := token.(string); isText && text != "" {
			if a.leaves++; a.leaves <= maxLeaves {
				a.Add(Apart(name), a.readable(name, text))
			} else {
				line(a.readable(name, text))
			}
		}
		if at >= 0 && open[at].object {
			open[at].name = true
		}
	}
	a.put(name, lines.String())
	return true
}
