package waf

import (
	"regexp"
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

// macro is a macro of the SQL data sources of Grafana.
var macro = regexp.MustCompile(`\$__(?:time(?:Epoch|Filter(?:_ms)?|From(?:_ms)?|To(?:_ms)?|Group(?:Alias)?|Interval)?|unixEpoch(?:Nano)?(?:Filter|From|To|Group(?:Alias)?)|` +
	`interval(?:_ms)?|rate_interval|range(?:_s|_ms)?|fromTime|toTime|date(?:Time)?Filter|adHocFilter)\b`)

// withoutMacros returns a value without macros of Grafana.
func withoutMacros(value, _ string) string { return macro.ReplaceAllString(value, "x") }
