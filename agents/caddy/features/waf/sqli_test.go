package waf

import (
	"fmt"
	"strings"
	"testing"

	"github.com/corazawaf/coraza/v3/experimental/plugins/plugintypes"
)

// Whatever stands around it, an attack on SQL is found in values of which only pieces are looked at, and ordinary ones with as
// many quotes are none.
func TestSQLAmongQuotes(t *testing.T) {
	operator, err := newDetectSQLi(plugintypes.OperatorOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, attack := range []string{"' or '1'='1' -- ", "' union select a from b -- ", "'; drop table users -- "} {
		for _, padding := range []string{`''a`, `''`, `''''a b `, `\'`, `\'a`, `\\''a`, `a ''b'' c `, "``", `"" ''a `} {
			for shift := range 9 {
				before := strings.Repeat("a", shift) + strings.Repeat(padding, 10_000/len(padding))
				value := before + attack
				if quoteWork(value) <= maxQuoteWork {
					t.Fatalf("%q costs little", padding)
				}
				if !operator.Evaluate(fakeTransaction{}, value) || !operator.Evaluate(fakeTransaction{}, value+before) {
					t.Errorf("%q after %d and %q is not found", attack, shift, padding)
				}
			}
		}
	}
	var sheet, program, dump strings.Builder
	for i := range 1500 {
		fmt.Fprintf(&sheet, "\"article %d\",\"a \"\"good\"\" one, isn''t it\",\"%d.50\"\n", i, i)
		fmt.Fprintf(&program, "{\\\"id\\\":%d,\\\"text\\\":\\\"it\\'s a \\\"\\\"good\\\"\\\" one\\\"},", i)
		fmt.Fprintf(&dump, "It''s the %dth time that we didn''t find ''it''. ", i)
	}
	for _, value := range []string{sheet.String(), program.String(), dump.String()} {
		if quoteWork(value) <= maxQuoteWork || operator.Evaluate(fakeTransaction{}, value) {
			t.Errorf("%q: cost %d", value[:60], quoteWork(value))
		}
	}
}
