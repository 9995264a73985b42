package waf

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// Characters of a masked value, and of a run of letters or digits in it: neither a word nor its length can be read.
	maxMasked = 64
	maxRun    = 8
	// Bytes looked at of a value, and of those that stand before what matched.
	maxAround = 512
	before    = 16
)

// Names that hold a secret: with one of these inside, or of one of these words alone.
var (
	secretParts = []string{
		"pass", "pwd", "secret", "token", "auth", "apikey", "accesskey", "privatekey", "session", "cookie", "csrf", "xsrf",
		"credential", "signature", "密码", "密碼", "口令", "令牌",
	}
	secretWords = []string{"key", "sid", "jwt", "sig", "pin", "otp", "cvv", "cvc", "iban", "ssn"}
)

// mayBeTold reports whether the value of a part of a request is told masked: none of a cookie, and none of what its name
// says is a secret.
func mayBeTold(part, name string) bool {
	if part != "argument" && part != "header" {
		return false
	}
	isBetween := func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }
	words := strings.FieldsFunc(strings.ToLower(name), isBetween)
	whole := strings.Join(words, "")
	return !slices.ContainsFunc(secretParts, func(s string) bool { return strings.Contains(whole, s) }) &&
		!slices.ContainsFunc(words, func(w string) bool { return slices.Contains(secretWords, w) })
}

// around is the piece of a value in which a rule says that it matched; the beginning where it says nothing.
func around(value, told string) string {
	from := 0
	if _, rest, found := strings.Cut(told, "Matched Data: "); found {
		if what, _, ended := strings.Cut(rest, " found within "); ended && what != "" {
			from = max(0, strings.Index(value, what)-before)
		}
	}
	return value[from:min(len(value), from+maxAround)]
}

// readable are words of attacks, which say nothing of anybody. What else a text has is masked.
var readable = map[string]bool{}

func init() {
	for w := range strings.FieldsSeq(`alert and any bash bin by case cat char chmod cmd concat copy count curl data delete document drop
		dual echo else end etc eval exec execute exists file from group having href html http https iframe img in information insert
		into is javascript like limit ls load null not onclick onerror onload or order passwd php powershell print proc prompt
		query schema script select set sh shell sleep src style svg system table tables then union update values vbscript waitfor
		wget when where window`) {
		readable[w] = true
	}
}

// masked is what may be read of a value: its marks, and the words that attacks are made of. Letters become "x", digits "0".
func masked(value string) string {
	var b strings.Builder
	room := maxMasked
	put := func(s string, n int) {
		if n = min(n, room); n > 0 {
			b.WriteString(s[:n])
			room -= n
		}
	}
	for value != "" && room > 0 {
		r, size := utf8.DecodeRuneInString(value)
		run := len(value)
		same := func(is func(rune) bool) string {
			if end := strings.IndexFunc(value, func(r rune) bool { return !is(r) }); end >= 0 {
				run = end
			}
			return value[:run]
		}
		switch {
		case unicode.IsDigit(r):
			put("00000000", min(utf8.RuneCountInString(same(unicode.IsDigit)), maxRun))
		case unicode.IsSpace(r):
			same(unicode.IsSpace)
			put(" ", 1)
		case r > ' ' && r < 0x7f && !isLetter(r):
			run = size
			put(value, 1)
		default:
			if w := strings.ToLower(same(isHidden)); readable[w] {
				put(w, len(w))
			} else {
				put("xxxxxxxx", min(utf8.RuneCountInString(w), maxRun))
			}
		}
		value = value[run:]
	}
	return b.String()
}

func isLetter(r rune) bool { return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' }

// isHidden reports whether a character is neither a digit, a space nor a mark of ASCII.
func isHidden(r rune) bool {
	return isLetter(r) || !unicode.IsDigit(r) && !unicode.IsSpace(r) && (r >= 0x7f || r <= ' ')
}
