package waf

import (
	"regexp"
	"strings"
	"unicode"
)

var (
	// call is a name with parentheses that have no others in them.
	call = regexp.MustCompile(`([A-Za-z0-9_]+)(\s*)\(([^()]*)\)`)
	// page is a page of a manual: a digit, or a letter with one.
	page = regexp.MustCompile(`^(?:[1-9]|n)$`)
	// inSentence is a name with empty parentheses that has a word before it, and two after it.
	inSentence = regexp.MustCompile(`\b([A-Za-z]+) ([a-z0-9_]+)\(\) ([A-Za-z]+) ([A-Za-z]+)\b`)
	// apart is a mark after a name that no call has there.
	apart = regexp.MustCompile(`([\])}.,:?!])(\s*)\(`)

	phpJoins = wordsOf("and or xor instanceof new print clone include include_once require require_once echo function fn static yield from throw match as use global return")
	sqlJoins = wordsOf("select from using as distinct distinctrow for in both leading trailing all any some order by asc desc separator interval over case when then else end" +
		" and or not is null like rlike regexp sounds between div mod xor union except intersect collate at exists binary year month day hour minute second week quarter" +
		" respect ignore within group filter where having limit offset with without rows range values escape similar ilike glob match returning on format")
)

// withoutPHPNames returns a value without names before parentheses that have no arguments of PHP in them.
func withoutPHPNames(value, _ string) string {
	value = inSentence.ReplaceAllStringFunc(value, func(found string) string {
		part := inSentence.FindStringSubmatch(found)
		if phpJoins[strings.ToLower(part[1])] || phpJoins[strings.ToLower(part[3])] || phpJoins[strings.ToLower(part[4])] {
			return found
		}
		return part[1] + " x " + part[3] + " " + part[4]
	})
	return call.ReplaceAllStringFunc(value, func(found string) string {
		part := call.FindStringSubmatch(found)
		if isPhrase(part[3], phpJoins) || part[2] == "" && page.MatchString(part[3]) {
			return "x" + part[2] + " " + part[3] + " "
		}
		return found
	})
}

// withoutSQLNames returns a value without names before parentheses that have no arguments of SQL in them.
func withoutSQLNames(value, _ string) string {
	value = apart.ReplaceAllString(value, "${1}x${2}(")
	return call.ReplaceAllStringFunc(value, func(found string) string {
		part := call.FindStringSubmatch(found)
		if isPhrase(part[3], sqlJoins) {
			return "x" + part[2] + " " + part[3] + " "
		}
		return found
	})
}

// isPhrase reports whether a text has two words beside each other that no language of programs lets stand so: neither joins
// expressions, and nothing begins a string, a variable or a comment.
func isPhrase(text string, joins map[string]bool) bool {
	if strings.ContainsAny(text, "\"'`$\\{}[]#/*@=<>;&|") || strings.Contains(text, "--") {
		return false
	}
	before, phrase := "", false
	for word := range strings.FieldsSeq(text) {
		joined := strings.ToLower(strings.TrimRight(word, ",."))
		if joins[joined] {
			return false
		}
		if before != "" && isPlainWord(before) && isPlainWord(strings.TrimRight(word, ",.")) {
			phrase = true
		}
		before = word
	}
	return phrase
}

// isPlainWord reports whether a text has only letters, and begins with one.
func isPlainWord(text string) bool {
	return text != "" && strings.IndexFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsMark(r) }) < 0
}
