package waf

import (
	"regexp"
	"slices"
	"strings"

	"golang.org/x/text/encoding/htmlindex"

	"edge.svc/caddy/features/waf/bodies"
)

var (
	// mediaType is a media type with its parameters (RFC 9110, section 5.6.6): empty ones are valid, and values in quotes.
	// What expressions of templates are made of is not taken in either.
	mediaType = regexp.MustCompile(`^[\w!#&^.+*-]+/[\w!#&^.+*-]+(?:[ \t]*;(?:[ \t]*[\w!#&^.+*-]+=(?:[\w!#&'*+.^|~:/@?-]+|"[\w !#&'()*+,./:;=?@^|~-]*"))?)*[ \t]*$`)
	charset   = regexp.MustCompile(`(?i);[ \t]*charset\s*=\s*["']?([^;"'\s]*)`)
)

// withoutParameters returns "a/b" for a valid media type. What divides a body into parts is not taken in.
func withoutParameters(value, _ string) string {
	if !mediaType.MatchString(value) || strings.Contains(strings.ToLower(value), "boundary") || len(charset.FindAllString(value, -1)) > 1 {
		return value
	}
	return "a/b"
}

// withoutTypes returns "a/b" for a list of valid media types, which can be empty (RFC 9110, section 12.5.1).
func withoutTypes(value, _ string) string {
	for _, item := range splitList(value) {
		item = strings.Trim(item, " \t")
		if item == "" || item == "*" {
			continue
		}
		if !mediaType.MatchString(item) {
			return value
		}
		for _, found := range charset.FindAllStringSubmatch(item, -1) {
			if !slices.Contains(plainCharsets, canonicalCharset(found[1])) {
				return value
			}
		}
	}
	return "a/b"
}

// splitList divides a list at commas outside of quotes.
func splitList(list string) (items []string) {
	from, quoted := 0, false
	for i := range len(list) {
		switch c := list[i]; {
		case c == '"':
			quoted = !quoted
		case c == ',' && !quoted:
			items = append(items, list[from:i])
			from = i + 1
		}
	}
	return append(items, list[from:])
}

// plainCharsets are those in which each byte of ASCII is a character of ASCII, wherever it stands.
var plainCharsets = []string{"utf-8", "windows-1252", "iso-8859-2", "iso-8859-15", "windows-1250", "windows-1251", "koi8-r"}

// canonicalCharset is the name of a charset by any of its labels, "" for none (WHATWG Encoding, section 4.2).
func canonicalCharset(label string) string {
	e, err := htmlindex.Get(label)
	if err != nil {
		return ""
	}
	name, err := htmlindex.Name(e)
	if err != nil {
		return ""
	}
	return name
}

// charsetsOf are the charsets of a site, with the label of this request where it names one of them in another way.
func (s *settings) charsetsOf(contentType string) []string {
	found := charset.FindAllStringSubmatch(contentType, -1)
	if len(found) != 1 || !bodies.IsToken(found[0][1]) {
		return s.charsets
	}
	label := strings.ToLower(found[0][1])
	name := canonicalCharset(label)
	if name == "" {
		return s.charsets
	}
	for framed := range strings.FieldsSeq(s.charsets[0]) {
		if canonicalCharset(strings.Trim(framed, "|")) == name {
			return []string{s.charsets[0] + " |" + label + "|"}
		}
	}
	return s.charsets
}
