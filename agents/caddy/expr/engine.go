package expr

import (
	"io"
	"regexp"
	"unicode/utf8"
)

// engine runs a pattern of the subset over bytes, in time that is linear in the length of the subject. Nothing else knows
// which library does it: Go's, whose runes are made to be bytes.
type engine struct {
	regexp *regexp.Regexp
	needed needed
}

// newEngine compiles a pattern that was checked.
func newEngine(source string) (engine, error) {
	compiled, err := regexp.Compile(source)
	return engine{compiled, neededBy(source)}, err
}

// matches reports whether a part of the subject matches.
func (e engine) matches(subject string) bool {
	if !e.needed.allow(subject) {
		return false
	}
	if isASCII(subject) {
		return e.regexp.MatchString(subject)
	}
	return e.regexp.MatchReader(&byteRunes{rest: subject})
}

// find answers where the first match and its groups start and end, -1 for a group that took no part; nil without a match.
func (e engine) find(subject string) []int {
	if !e.needed.allow(subject) {
		return nil
	}
	if isASCII(subject) {
		return e.regexp.FindStringSubmatchIndex(subject)
	}
	return e.regexp.FindReaderSubmatchIndex(&byteRunes{rest: subject})
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// byteRunes reads every byte as the rune of its number.
type byteRunes struct{ rest string }

func (b *byteRunes) ReadRune() (rune, int, error) {
	if b.rest == "" {
		return 0, 0, io.EOF
	}
	r := rune(b.rest[0])
	b.rest = b.rest[1:]
	return r, 1, nil
}
