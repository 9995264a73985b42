package requestlog

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// What clients send becomes text that every database takes, of so many bytes at most; characters are never cut apart.
func TestTextIsCleanWhateverClientsSend(t *testing.T) {
	long := strings.Repeat("x", 8<<10)
	for sent, want := range map[string]string{
		"":                               "",
		"/plain?a=b":                     "/plain?a=b",
		"a\x00b":                         "a?b",
		"\xff\xfe":                       "?",
		"a\xffb\xffc":                    "a?b?c",
		"\xc3\xa9\x00\xc3":               "é??",
		"\x1b[31mred":                    "\x1b[31mred",
		long:                             long[:2048],
		long[:2047] + "é":                long[:2047],
		long[:2045] + "😀":                long[:2045],
		long[:2044] + "😀":                long[:2044] + "😀",
		long[:2047] + "\xff\xff":         long[:2047] + "?",
		strings.Repeat("\xff\x00", 4096): "",
	} {
		got := clean(sent, maxPath)
		if want != "" && got != want {
			t.Errorf("%.40q becomes %.40q of %d bytes", sent, got, len(got))
		}
		if len(got) > maxPath || !utf8.ValidString(got) || strings.Contains(got, "\x00") {
			t.Errorf("%.40q becomes %.40q of %d bytes", sent, got, len(got))
		}
	}
}

func FuzzText(f *testing.F) {
	f.Add("a\x00b\xff", 4)
	f.Fuzz(func(t *testing.T, sent string, most int) {
		most = min(max(most, 0), maxPath)
		got := clean(sent, most)
		if len(got) > most || !utf8.ValidString(got) || strings.Contains(got, "\x00") {
			t.Errorf("%q becomes %q", sent, got)
		}
	})
}
