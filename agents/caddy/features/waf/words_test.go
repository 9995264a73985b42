package waf

import (
	"math/rand/v2"
	"strings"
	"testing"

	coreruleset "github.com/corazawaf/coraza-coreruleset/v4"
	"github.com/corazawaf/coraza/v3/experimental/plugins/plugintypes"
)

// Words are found wherever they stand, and nothing else is.
func TestWords(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	text := func(most int) string {
		var b strings.Builder
		for range random.IntN(most) + 1 {
			b.WriteByte("abAB?("[random.IntN(6)])
		}
		return b.String()
	}
	for range 3000 {
		var list []string
		for range random.IntN(6) + 1 {
			list = append(list, text(5))
		}
		operator, err := newWords(plugintypes.OperatorOptions{Arguments: strings.Join(list, " ")})
		if err != nil {
			t.Fatal(err)
		}
		for range 5 {
			value, want := text(12), false
			for _, w := range list {
				want = want || strings.Contains(strings.ToLower(value), strings.ToLower(w))
			}
			if operator.Evaluate(nil, value) != want {
				t.Fatalf("%q in %q: not %v", list, value, want)
			}
		}
	}
	operator, err := newWordsOfFile(plugintypes.OperatorOptions{Arguments: "unix-shell.data", Path: []string{"nowhere", rulesFolder}, Root: coreruleset.FS})
	if err != nil {
		t.Fatal(err)
	}
	for value, want := range map[string]bool{"x /BIN/bash": true, "a${IFS}": true, "# comment": false, "": false, "hello": false} {
		if operator.Evaluate(nil, value) != want {
			t.Errorf("%q: not %v", value, want)
		}
	}
	if _, err := newWordsOfFile(plugintypes.OperatorOptions{Arguments: "none.data", Path: []string{rulesFolder}, Root: coreruleset.FS}); err == nil {
		t.Error("a file that is none")
	}
}
