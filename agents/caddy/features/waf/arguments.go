package waf

import (
	"strings"
	"unicode/utf8"
)

const (
	// What of a kind of arguments becomes one each; text beyond is joined.
	maxArguments = 256
	// Bytes of a joined value, and how much of it the next one says again: whatever lies across the border is whole in one.
	maxJoined, joinedOverlap = 4 << 10, 256
	// What means nothing to any rule at the beginning of a line, and at the end of a value that goes on in the next one.
	plainWord, plainEnd = "x ", " x"
	// What joined values are named. No exclusion has this name: one for an argument is for nothing that was joined.
	joinedName = ""
)

// arguments takes names and values for a collection. Each is one of its own up to a number; of what follows, names and
// values are joined as lines, so that rules see all text and none of it costs a run of every rule.
type arguments struct {
	add   func(name, value string)
	count int
	// endless arguments are never joined.
	endless bool
	// They are of a browser's report on what a page did.
	report bool
	rest   []byte
	// The name of the last one that was put.
	last string
	// The last one began with what the one before ended with, and nothing else is in it.
	repeated bool
}

func (a *arguments) full() bool { return a.count >= maxArguments && !a.endless }

// put takes an argument. One that is too long becomes several of its name.
func (a *arguments) put(name, value string) {
	a.last, value = name, a.readable(name, value)
	for !a.full() {
		a.count++
		if len(value) <= maxValue {
			a.add(apart(name), value)
			return
		}
		end := maxValue - len(plainEnd)
		a.add(apart(name), value[:end]+plainEnd)
		value = plainWord + value[end-valueOverlap:]
	}
	a.join(name)
	a.join(value)
}

// readable is a value as rules see it: without what looks like an attack in every article, query and image, and is none. It
// goes by the value, never by the name alone, which anybody may give to anything.
func (a *arguments) readable(name, value string) string {
	if a.report && isSample(name, value) {
		return ""
	}
	if isQueryName(name) {
		if texts, ok := graphQLTexts(value); ok {
			return texts
		}
	}
	if isInlineImage(value) {
		return ""
	}
	return readMarkup(value)
}

// join takes text that is no argument of its own. To rules a line that begins with the name of a program is a command,
// though a value that begins with it is none, such as "find the best": a line begins with a word that is none, then, unless
// it would be a command as a value, too.
func (a *arguments) join(text string) {
	if text == "" {
		return
	}
	if len(a.rest) > 0 {
		a.more("\n")
		if len(text) > 1 && !isCommand(text) {
			a.more(plainWord)
		}
	}
	a.more(text)
}

// more takes text that goes on where the last one ended.
func (a *arguments) more(text string) {
	for text != "" {
		n := min(len(text), maxJoined-len(plainEnd)-len(a.rest))
		a.rest, a.repeated = append(a.rest, text[:n]...), false
		if text = text[n:]; len(a.rest) == maxJoined-len(plainEnd) {
			a.add(apart(joinedName), string(a.rest)+plainEnd)
			// What begins in the middle of a text begins nothing.
			copy(a.rest[copy(a.rest, plainWord):], a.rest[len(a.rest)-joinedOverlap+len(plainWord):])
			a.rest = a.rest[:joinedOverlap]
			a.repeated = true
		}
	}
}

// end gives what is left.
func (a *arguments) end() {
	if len(a.rest) > 0 && !a.repeated {
		a.add(apart(joinedName), string(a.rest))
	}
	a.rest = nil
}

// apart copies a name to where no other one is. The engine knows what it made of a value by the address of the name and
// the place of the value, and places change from rule to rule: of two values under one address it takes one for the other.
func apart(name string) string { return strings.Clone(name + " ")[:len(name)] }

// readPairs takes names and values as queries and forms have them.
func readPairs(text string, to *arguments) {
	for text != "" {
		var pair string
		pair, text, _ = strings.Cut(text, "&")
		if pair == "" {
			continue
		}
		name, value, _ := strings.Cut(pair, "=")
		to.put(unescape(name), unescape(value))
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

// readCookies takes the cookies of a header, and returns it without passes of the edge's own challenges, which are nobody's
// attack.
func readCookies(header string, to *arguments) (rest string) {
	kept := make([]byte, 0, len(header))
	for header != "" {
		var pair string
		pair, header, _ = strings.Cut(header, ";")
		name, value, _ := strings.Cut(strings.TrimLeft(pair, " \t"), "=")
		if name == passCookie && isPass(value) {
			continue
		}
		if len(kept) > 0 {
			kept = append(kept, ';')
		}
		kept = append(kept, pair...)
		if name != "" || value != "" {
			to.put(name, value)
		}
	}
	return strings.TrimLeft(string(kept), " ")
}

const (
	passCookie = "__ew_pass"
	// What every pass begins with, and bytes that none has more of.
	passVersion  = "v1."
	maxPassBytes = 1024
)

// isPass reports whether a cookie can be a pass. Whatever else has its name goes on to the origin like any other cookie.
func isPass(value string) bool {
	if len(value) > maxPassBytes || !strings.HasPrefix(value, passVersion) {
		return false
	}
	for i := range len(value) {
		switch c := value[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '.', c == '_', c == '-':
		default:
			return false
		}
	}
	return true
}

// maxSample is how many characters of a script browsers put into a report.
const maxSample = 40

// isSample reports whether an argument of a report is the beginning of a script that a page may not run: code by its nature.
func isSample(name, value string) bool {
	return (strings.HasSuffix(name, ".script-sample") || strings.HasSuffix(name, ".body.sample")) && utf8.RuneCountInString(value) <= maxSample
}
