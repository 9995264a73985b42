package waf

import (
	"regexp/syntax"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/corazawaf/coraza/v3/experimental/plugins/plugintypes"
	"github.com/wasilibs/go-re2"
	re2bytes "github.com/wasilibs/go-re2/experimental"
)

// rx is the operator @rx by RE2, over bytes: patterns of the rule set are made for bytes, and RE2 needs a tenth of the
// time that package regexp takes for the bodies of forms. A pattern is compiled when it is wanted first: most sites have no
// use for those of higher paranoia levels, which are as many again.
type rx struct {
	compiled func() *re2.Regexp
	// It was compiled.
	ready *atomic.Bool
	// The pattern is for bytes outside of characters.
	outside bool
}

// asciiRules is what patterns begin with that look for "<" and ">" with the highest bit set, which some programs once took
// for them. The same bytes are parts of characters: of every twentieth in Chinese.
const asciiRules = `\x{bc}`

func newRx(options plugintypes.OperatorOptions) (plugintypes.Operator, error) {
	source := "(?s)" + options.Arguments
	if _, err := syntax.Parse(source, syntax.Perl); err != nil {
		return nil, err
	}
	made := func() (any, error) {
		compiled, ready := sync.OnceValue(func() *re2.Regexp { return compilePattern(source) }), new(atomic.Bool)
		return rx{compiled, ready, strings.HasPrefix(options.Arguments, asciiRules)}, nil
	}
	if options.Memoizer == nil {
		one, err := made()
		return one.(rx), err
	}
	one, err := options.Memoizer.Do("svc rx "+source, made)
	if err != nil {
		return nil, err
	}
	return one.(rx), nil
}

// compilePattern panics where a pattern is none to RE2: no inspection goes on without one of its rules.
func compilePattern(source string) *re2.Regexp {
	if p, err := re2bytes.CompileLatin1(source); err == nil {
		return p
	}
	return re2.MustCompile(source)
}

// maxCaptured is how many groups, the whole match among them, a rule can use.
const maxCaptured = 9

// Evaluate reports a match. Once the time of an inspection is over nothing matches any more.
func (o rx) Evaluate(tx plugintypes.TransactionState, value string) bool {
	b := budgetOf(tx.ID())
	if b == nil {
		return o.evaluate(tx, value)
	}
	if b.over {
		return false
	}
	if !o.ready.Load() {
		b.excuse(func() { o.compiled() })
		o.ready.Store(true)
	}
	if len(value) < measuredBytes {
		if b.calls++; b.calls%sampledCalls != 0 {
			return o.evaluate(tx, value)
		}
		begun := time.Now()
		matched := o.evaluate(tx, value)
		took := time.Since(begun)
		if took < interrupted {
			took *= sampledCalls
		}
		b.spend(took)
		return matched
	}
	begun := time.Now()
	matched := o.evaluate(tx, value)
	b.spend(time.Since(begun))
	return matched
}

func (o rx) evaluate(tx plugintypes.TransactionState, value string) bool {
	if o.outside {
		value = withoutCharacters(value)
	}
	if !tx.Capturing() {
		return o.compiled().MatchString(value)
	}
	at := o.compiled().FindStringSubmatchIndex(value)
	if at == nil {
		return false
	}
	for i := 0; i < len(at)/2 && i < maxCaptured; i++ {
		text := ""
		if at[2*i] >= 0 {
			text = value[at[2*i]:at[2*i+1]]
		}
		tx.CaptureField(i, text)
	}
	return true
}

// lastOfTwoBytes is the last character that UTF-8 writes in two bytes.
const lastOfTwoBytes = 0x7ff

// hasMark reports whether a letter stands before the name of an element whose second byte some programs take for "<". It is
// one of Cyrillic and later scripts: Latin letters and a Greek "mu" do stand before others.
func hasMark(text string) bool {
	for i := 1; i+1 < len(text); i++ {
		if text[i] != 0xbc || text[i-1] < 0xd0 || text[i-1] > 0xdf {
			continue
		}
		if rest := strings.TrimPrefix(text[i+1:], "/"); rest != "" && rest[0]|0x20 >= 'a' && rest[0]|0x20 <= 'z' {
			return true
		}
	}
	return false
}

// withoutCharacters leaves out characters beyond Latin-1: the two marks, written in UTF-8, are in it. Other letters of two
// bytes are left out where none stands like a mark.
func withoutCharacters(text string) string {
	out, most := make([]byte, 0, len(text)), rune(unicode.MaxLatin1)
	if hasMark(text) {
		most = lastOfTwoBytes
	}
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		if size == 1 || r <= most {
			out = append(out, text[i:i+size]...)
		}
		i += size
	}
	return string(out)
}
