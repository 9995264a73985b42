package waf

import (
	"strings"
)

// withoutSemicolons returns the name of a file without semicolons that a space follows, if nothing in it ends the name or
// begins a parameter.
func withoutSemicolons(value, _ string) string {
	if strings.ContainsAny(value, "\"'=\\/\r\n") {
		return value
	}
	return strings.ReplaceAll(value, "; ", " ")
}
