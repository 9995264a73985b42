//go:build !race

// The race detector has nothing to see in one goroutine, and takes ten times as long.

package waf

import (
	"io/fs"
	"regexp"
	"strings"
	"testing"

	coreruleset "github.com/corazawaf/coraza-coreruleset/v4"
	"github.com/corazawaf/coraza/v3/experimental/plugins/plugintypes"
)

// Patterns are compiled when they are wanted first: each of the rule set can be.
func TestEveryPatternCanBeCompiled(t *testing.T) {
	names, _, err := ruleFiles()
	if err != nil {
		t.Fatal(err)
	}
	pattern := regexp.MustCompile(`"!?@rx ((?:[^"\\]|\\.)*)"`)
	count := 0
	for _, name := range names {
		content, err := fs.ReadFile(coreruleset.FS, name)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range pattern.FindAllStringSubmatch(string(content), -1) {
			operator, err := newRx(plugintypes.OperatorOptions{Arguments: strings.ReplaceAll(found[1], `\"`, `"`)})
			if err != nil {
				t.Fatalf("%s: %v", found[1], err)
			}
			operator.Evaluate(fakeTransaction{}, "a")
			count++
		}
	}
	if count < 200 {
		t.Errorf("%d patterns", count)
	}
}
