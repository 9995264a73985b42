package bodies

import (
	"strings"
	"unicode/utf8"
)

const (
	// Bytes of one value, and of raw text: what is longer goes on in another one, which says again the end of the one before.
	MaxValue, ValueOverlap = 128 << 10, 1 << 10
	// What of a kind of arguments becomes one each; text beyond is joined.
	MaxArguments = 256
	// Bytes of a joined value, and how much of it the next one says again: whatever lies across the border is whole in one.
	MaxJoined, joinedOverlap = 4 << 10, 256
	// What means nothing to any rule at the beginning of a line, and at the end of a value that goes on in the next one.
	plainWord, plainEnd = "x ", " x"
	// What joined values are named. No exclusion has this name: one for an argument is for nothing that was joined.
	joinedName = ""
)

// Arguments takes names and values for a collection. Each is one of its own up to a number; of what follows, names and
// values are joined as lines, so that rules see all text and none of it costs a run of every rule.
type Arguments struct {
	Add   func(name, value string)
	count int
	// Endless arguments are never joined.
	Endless bool
	// They are of a browser's report on what a page did.
	Report bool
	rest   []byte
	// The name of the last one that was put.
	last string
	// Texts of documents in values that became values of their own.
	leaves int
	// The last one began with what the one before ended with, and nothing else is in it.
	repeated bool
}

// Joined are arguments of which none is one of its own: all text is joined.
func Joined(add func(name, value string)) *Arguments {
	return &Arguments{Add: add, count: MaxArguments}
}

func (a *Arguments) full() bool { return a.count >= MaxArguments && !a.Endless }

// Put takes an argument. One that is too long becomes several of its name.
func (a *Arguments) Put(name, value string) {
	if a.last = name; !a.putDocument(name, value) {
		a.put(name, a.readable(name, value))
	}
}

func (a *Arguments) put(name, value string) {
	for !a.full() {
		a.count++
		if len(value) <= MaxValue {
			a.Add(Apart(name), value)
			return
		}
		end := MaxValue - len(plainEnd)
		a.Add(Apart(name), value[:end]+plainEnd)
		value = plainWord + value[end-ValueOverlap:]
	}
	a.Join(name)
	a.Join(value)
}

// readable is a value as rules see it: without what looks like an attack in every article, query and image, and is none. It
// goes by the value, never by the name alone, which anybody may give to anything.
func (a *Arguments) readable(name, value string) string {
	if a.Report && isSample(name, value) {
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

// Join takes text that is no argument of its own. To rules a line that begins with the name of a program is a command,
// though a value that begins with it is none, such as "find the best": a line begins with a word that is none, then, unless
// it would be a command as a value, too.
func (a *Arguments) Join(text string) {
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
func (a *Arguments) more(text string) {
	for text != "" {
		n := min(len(text), MaxJoined-len(plainEnd)-len(a.rest))
		a.rest, a.repeated = append(a.rest, text[:n]...), false
		if text = text[n:]; len(a.rest) == MaxJoined-len(plainEnd) {
			a.Add(Apart(joinedName), string(a.rest)+plainEnd)
			// What begins in the middle of a text begins nothing.
			copy(a.rest[copy(a.rest, plainWord):], a.rest[len(a.rest)-joinedOverlap+len(plainWord):])
			a.rest = a.rest[:joinedOverlap]
			a.repeated = true
		}
	}
}

// End gives what is left.
func (a *Arguments) End() {
	if len(a.rest) > 0 && !a.repeated {
		a.Add(Apart(joinedName), string(a.rest))
	}
	a.rest = nil
}

// Apart copies a name to where no other one is. The engine knows what it made of a value by the address of the name and
// the place of the value, and places change from rule to rule: of two values under one address it takes one for the other.
func Apart(name string) string { return strings.Clone(name + " ")[:len(name)] }

// maxSample is how many characters of a script browsers put into a report.
const maxSample = 40

// isSample reports whether an argument of a report is the beginning of a script that a page may not run: code by its nature.
func isSample(name, value string) bool {
	return (strings.HasSuffix(name, ".script-sample") || strings.HasSuffix(name, ".body.sample")) && utf8.RuneCountInString(value) <= maxSample
}
