package waf

import (
	"regexp"
	"strings"
)

var (
	// fieldLine is a line that begins like a header field, with its value.
	fieldLine = regexp.MustCompile(`(?i)([\r\n][^0-9A-Za-z_\r\n]*)(content-type|content-length|set-cookie|location|refresh|cookie|host|via)(\s*:[ \t\v\f]*)([^\r\n]*)`)
	// smiley stands at the beginning of a line.
	smiley  = regexp.MustCompile(`([\r\n]\s*):(-?[)(DdPpOo|/]+(?:\s|$))`)
	version = regexp.MustCompile(`(?i)\bhttp/\d(?:\.\d)?`)
	status  = regexp.MustCompile(`^\s+\d{3}\b`)
	// A method and a path, at most so long.
	requestLine = regexp.MustCompile(`(?i)\b[a-z]{3,}\s+\S*[/*]\S*\s+$`)
)

const longestLine = 1 << 10

// headerValues are what values of header fields look like.
var headerValues = map[string]*regexp.Regexp{
	"content-type":   regexp.MustCompile(`^\S*/|^$`),
	"content-length": regexp.MustCompile(`^\d|^$`),
	"set-cookie":     regexp.MustCompile(`=|^$`),
	"cookie":         regexp.MustCompile(`=|^$`),
	"location":       regexp.MustCompile(`^[/\\.?#%]|^\S*[/\\]|^\S*[:.]\S+\s*$|^[A-Za-z][\w+.-]*:\S|<|^$`),
	"refresh":        regexp.MustCompile(`^\d|^\S*[./:]\S|<|^$`),
	"host":           regexp.MustCompile(`^\S*[.:\[]\S*\s*$|^localhost|<|^$`),
	"via":            regexp.MustCompile(`^\d|^HTTP|<|^$`),
}

// withoutFields returns a value without lines that have the name of a header field and no value of one: "Location: Remote".
func withoutFields(value, _ string) string {
	value = fieldLine.ReplaceAllStringFunc(value, func(line string) string {
		part := fieldLine.FindStringSubmatch(line)
		if headerValues[strings.ToLower(part[2])].MatchString(part[4]) {
			return line
		}
		return part[1] + "x " + part[4]
	})
	return smiley.ReplaceAllString(value, "$1$2")
}

// withoutVersions returns a value without versions of HTTP, if no status follows one, and no method and path are before it.
func withoutVersions(value, _ string) string {
	for _, at := range version.FindAllStringIndex(value, -1) {
		if status.MatchString(value[at[1]:]) || requestLine.MatchString(value[max(0, at[0]-longestLine):at[0]]) {
			return value
		}
	}
	return version.ReplaceAllString(value, "x")
}
