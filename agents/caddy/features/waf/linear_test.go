//go:build !race

// The race detector has nothing to see in one goroutine, and takes ten times as long.

package waf

import (
	"runtime"
	"strings"
	"testing"
	"time"

	coreruleset "github.com/corazawaf/coraza-coreruleset/v4"
	"github.com/corazawaf/coraza/v3"
	"github.com/corazawaf/coraza/v3/experimental/plugins/plugintypes"
)

// repeatedTexts are what decoders and scanners may begin again and again, and never come to the end of.
var repeatedTexts = []string{
	`\u{`, `\u{0`, `\u`, `\ud800`, `\x`, `\1`, `\`, `\\`, "&", "&#", "&#x", "&#x1", "&a", "&lt", "%", "%u", "%u00", "%uff0", "%2", "+", "<", "<!", "<!--", "<![CDATA[",
	"<a ", "<a b=", "<a b='", "</", "<?", "<%", "/*", "*/", "/*!", "--", "-->", "#", "'", `"`, "`", "(", ")", "((1", "{", "}", "[", "$(", "${", "@", "@`", "$a$",
	"q'[", "n'", "x'", "u&'", "0x", "1e", "1.", "a", "a.", "../", "./", "..", "/", "//", "/./a", ":", ";", "|", "a:b:", " ", "\t", "\n", "\r\n", "\x00", "\xa0", "\xc2", "\xe4\xb8", "娧",
	"1,", "a=", "or ", "select ", "case when ", "union all ", "in(", "not ", "binary ", "-", "- -", "~", "!", ":=", "data:", "javascript:", "style=", "YQ", "YQ=", "=",
}

// transformations and operators are those of the rule set that take more time for longer values, as rules spell them.
var (
	transformations = []string{
		"base64Decode", "cmdLine", "compressWhitespace", "cssDecode", "escapeSeqDecode", "hexEncode", "htmlEntityDecode", "jsDecode", "length", "lowercase",
		"normalizePath", "normalizePathWin", "removeCommentsChar", "removeNulls", "removeWhitespace", "replaceComments", "sha1", "urlDecodeUni", "utf8toUnicode",
	}
	operators = []string{
		"detectSQLi", "detectXSS", "validateUrlEncoding", "validateUtf8Encoding", "validateByteRange 1-255", "pmFromFile @owasp_crs/unix-shell.data", "pm union select from",
		"contains select from where", "endsWith x", "within a b c", `rx (?i)union\s+select`,
	}
)

// Whatever is in a value, what decodes it and what looks for something in it takes as much longer as the value is longer.
func TestDecodersAndOperatorsAreLinear(t *testing.T) {
	const short, times, tooMuch, worthAsking = 16 << 10, 8, 24, 40 * time.Millisecond
	// What others compute meanwhile does not count.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	rules := make(map[string]string, len(transformations)+len(operators))
	for _, name := range transformations {
		rules[name] = `SecRule ARGS "!@streq unlikely" "id:1,phase:2,pass,t:none,t:` + name + `"`
	}
	for _, name := range operators {
		rules[name] = `SecRule ARGS "@` + name + `" "id:1,phase:2,pass,t:none"`
	}
	for name, rule := range rules {
		waf, err := coraza.NewWAF(coraza.NewWAFConfig().WithRootFS(coreruleset.FS).WithDirectives("SecRuleEngine DetectionOnly\nSecRequestBodyAccess On\n" + rule))
		if err != nil {
			t.Fatal(name, err)
		}
		run := func(text string) time.Duration {
			tx := waf.NewTransaction()
			defer func() { _ = tx.Close() }()
			tx.ProcessRequestHeaders()
			tx.(plugintypes.TransactionState).Variables().ArgsPost().Add("a", text)
			begun := computed()
			if _, err := tx.ProcessRequestBody(); err != nil {
				t.Fatal(err)
			}
			return computed() - begun
		}
		fastest := func(text string) (least time.Duration) {
			least = time.Hour
			for range 5 {
				least = min(least, run(text))
			}
			return least
		}
		for _, piece := range repeatedTexts {
			long := strings.Repeat(piece, times*short/len(piece)) + "x'"
			if run(long) < worthAsking {
				continue
			}
			took, before := fastest(long), fastest(long[:short])
			if took > worthAsking && took > tooMuch*before {
				t.Errorf("%s of %q: %v for %d bytes, %v for %d", name, piece, before, short, took, len(long))
			}
		}
	}
}
