package waf

import (
	"regexp"
	"strings"
)

var (
	// quotedFile is the name of a file in quotes, with nothing in it that ends them for any reader.
	quotedFile = regexp.MustCompile(`(?i)^content-disposition:[ \t]*form-data;(?:[^"]*"[^"\\]*"[ \t]*;)*[^"]*\bfilename[ \t]*=[ \t]*"([^"\\]*)"`)
	// nameBegin begins a parameter that names a field or a file, also in the ways of RFC 2231.
	nameBegin = regexp.MustCompile(`(?i)name\s*(?:\*\d*\*?)?\s*=`)
	// extended is the end of a name of a file: some servers take no more of it before a semicolon.
	extended = regexp.MustCompile(`\.[\pL\pN]{1,8}\s*;`)
	// characterName is a character that HTML writes by its name or number.
	characterName = regexp.MustCompile(`(?i)&(?:#x?[0-9a-f]+|quot|apos|equals|semi|bsol);`)
	// parameter is one with any name, at the beginning or after a semicolon.
	parameter = regexp.MustCompile(`(?:^|;)\s*[\w!#$%&*+.^|~-]+\s*=`)
	// joined is a semicolon that something follows at once which can begin a parameter.
	joined = regexp.MustCompile(`;(?:[^ ).]|$)`)
)

// quotedName is the name of a file that the head of a part has in quotes, or "".
func quotedName(head string) string {
	if found := quotedFile.FindStringSubmatch(head); found != nil {
		return found[1]
	}
	return ""
}

// withoutMarks returns the name of a file without what ends no quoted string: apostrophes, semicolons before a space, and
// equals signs. Readers that end it all the same find no name in what follows, and no kind of a file before it.
func withoutMarks(value, raw string) string {
	if value != raw || strings.ContainsAny(value, "\"\\/\r\n") || nameBegin.MatchString(value) || characterName.MatchString(value) ||
		extended.MatchString(value) || joined.MatchString(value) {
		return value
	}
	if found := parameter.FindStringIndex(value); found != nil && (found[0] == 0 && value[0] != ';' || strings.Contains(value, "'")) {
		return value
	}
	return unmarking.Replace(value)
}

var unmarking = strings.NewReplacer("'", "", ";", "", "=", "")

// macro is a macro of the SQL data sources of Grafana.
var macro = regexp.MustCompile(`\$__(?:time(?:Epoch|Filter(?:_ms)?|From(?:_ms)?|To(?:_ms)?|Group(?:Alias)?|Interval)?|unixEpoch(?:Nano)?(?:Filter|From|To|Group(?:Alias)?)|` +
	`interval(?:_ms)?|rate_interval|range(?:_s|_ms)?|fromTime|toTime|date(?:Time)?Filter|adHocFilter)\b`)

// withoutMacros returns a value without macros of Grafana.
func withoutMacros(value, _ string) string { return macro.ReplaceAllString(value, "x") }
