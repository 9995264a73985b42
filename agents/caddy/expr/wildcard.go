package expr

import (
	"bytes"
	"errors"
	"strings"
	"sync"
)

var (
	errWildcard    = errors.New("the expression has a wildcard that is malformed or too long")
	errReplacement = errors.New("the expression has a replacement that is malformed or too long")
)

// wildcard is a pattern in which a star stands for any number of bytes.
type wildcard struct {
	// The texts between the stars, one more than there are stars; in lower case unless case counts.
	parts         [][]byte
	caseSensitive bool
}

func parseWildcard(source string, caseSensitive bool) (wildcard, error) {
	if len(source) > maxWildcardBytes || hasByte(source, isControl) {
		return wildcard{}, errWildcard
	}
	w := wildcard{caseSensitive: caseSensitive}
	var part []byte
	for i := 0; i < len(source); i++ {
		c := source[i]
		switch c {
		case '*':
			if w.parts = append(w.parts, part); len(w.parts) > maxStars {
				return wildcard{}, errWildcard
			}
			part = nil
			continue
		case '\\':
			if i++; i == len(source) || source[i] != '*' && source[i] != '\\' {
				return wildcard{}, errWildcard
			}
			c = source[i]
		}
		if !caseSensitive {
			c = lowerByte(c)
		}
		part = append(part, c)
	}
	w.parts = append(w.parts, part)
	return w, nil
}

// stars is where each star of a match starts and ends.
type stars [maxStars][2]int

// foldedBytes are copies of subjects that are larger than what fits on the stack.
var foldedBytes = sync.Pool{New: func() any { return new([]byte) }}

// match compares all of the subject. Earlier stars take as little as they can; the last one takes the rest.
func (w *wildcard) match(subject string, found *stars) bool {
	if len(subject) <= 256 {
		var small [256]byte
		return w.matchFolded(append(small[:0], subject...), found)
	}
	large := foldedBytes.Get().(*[]byte)
	defer foldedBytes.Put(large)
	*large = append((*large)[:0], subject...)
	return w.matchFolded(*large, found)
}

// matchFolded may change the subject.
func (w *wildcard) matchFolded(subject []byte, found *stars) bool {
	if !w.caseSensitive {
		for i, c := range subject {
			subject[i] = lowerByte(c)
		}
	}
	first, rest := w.parts[0], w.parts[1:]
	if len(rest) == 0 {
		return bytes.Equal(subject, first)
	}
	if !bytes.HasPrefix(subject, first) {
		return false
	}
	at := len(first)
	for i, part := range rest[:len(rest)-1] {
		next := bytes.Index(subject[at:], part)
		if next < 0 {
			return false
		}
		found[i] = [2]int{at, at + next}
		at += next + len(part)
	}
	last := rest[len(rest)-1]
	if len(subject)-len(last) < at || !bytes.HasSuffix(subject, last) {
		return false
	}
	found[len(rest)-1] = [2]int{at, len(subject) - len(last)}
	return true
}

// replace answers the replacement when all of the subject matches, else the subject itself.
func (w *wildcard) replace(subject string, with replacement) (string, Failure) {
	var found stars
	if !w.match(subject, &found) {
		return subject, 0
	}
	return with.ofStars(subject, &found)
}

// ofStars is the replacement of a subject that matches.
func (r replacement) ofStars(subject string, found *stars) (string, Failure) {
	return r.filled("", func(star int) string { return subject[found[star-1][0]:found[star-1][1]] }, "")
}

// replacement is what a match is replaced with: literal texts, and numbers of groups or stars.
type replacement []replacementPart

type replacementPart struct {
	text string
	// Counted from 1; 0 for a text.
	capture int
}

// parseReplacement reads a replacement for so many groups or stars. A dollar sign that names none means itself.
func parseReplacement(source string, captures int) (replacement, error) {
	if len(source) > maxReplacementBytes || hasByte(source, isControl) {
		return nil, errReplacement
	}
	var parts replacement
	start := 0
	for i := 0; i < len(source); {
		capture := captureAt(source[i:])
		if capture == 0 {
			i++
			continue
		}
		if capture > captures {
			return nil, errReplacement
		}
		if start < i {
			parts = append(parts, replacementPart{text: source[start:i]})
		}
		parts = append(parts, replacementPart{capture: capture})
		i += len("${1}")
		start = i
	}
	if start < len(source) {
		parts = append(parts, replacementPart{text: source[start:]})
	}
	return parts, nil
}

// captureAt is the number that a text names in front; 0 for none.
func captureAt(s string) int {
	if len(s) < len("${1}") || s[0] != '$' || s[1] != '{' || s[3] != '}' || s[2] < '1' || s[2] > '0'+maxCaptures {
		return 0
	}
	return int(s[2] - '0')
}

// filled is the replacement between what stays in front and behind.
func (r replacement) filled(before string, capture func(int) string, after string) (string, Failure) {
	length := len(before) + len(after)
	for _, part := range r {
		length += len(part.text)
		if part.capture > 0 {
			length += len(capture(part.capture))
		}
		if length > maxResultBytes {
			return "", ResultTooLong
		}
	}
	var b strings.Builder
	b.Grow(length)
	b.WriteString(before)
	for _, part := range r {
		b.WriteString(part.text)
		if part.capture > 0 {
			b.WriteString(capture(part.capture))
		}
	}
	b.WriteString(after)
	return b.String(), 0
}
