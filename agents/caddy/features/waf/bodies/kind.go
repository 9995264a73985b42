// Package bodies reads the bodies of requests for the rules of the WAF: it makes arguments and texts of forms, JSON, XML and
// multipart bodies, and undoes the encodings in them.
package bodies

import (
	stdjson "encoding/json"
	"io"
	"strings"

	"github.com/corazawaf/coraza/v3/collection"
)

// How a body is read.
const (
	Form      = "URLENCODED"
	Multipart = "MULTIPART"
	JSON      = "JSON"
	XML       = "XML"
	// Nothing is known of it: rules see it as it is, and no form is made of it. JSON is read as such, too.
	Raw = ""
)

// KindOf says how a body of a type is read.
func KindOf(contentType string) string {
	name := strings.ToLower(strings.TrimSpace(contentType))
	switch {
	case strings.HasPrefix(name, "application/x-www-form-urlencoded"):
		return Form
	case strings.HasPrefix(name, "multipart/form-data"):
		return Multipart
	case strings.HasPrefix(name, "application/json"), strings.HasPrefix(name, "text/json"), strings.HasPrefix(name, "application/csp-report"):
		return JSON
	}
	name, _, _ = strings.Cut(name, ";")
	name = strings.TrimSpace(name)
	switch {
	case strings.HasSuffix(name, "+json"):
		return JSON
	case strings.HasSuffix(name, "/xml"), strings.HasSuffix(name, "+xml"):
		return XML
	}
	return Raw
}

// IsGraphQL reports whether a body is one document of GraphQL.
func IsGraphQL(contentType string) bool {
	name, _, _ := strings.Cut(contentType, ";")
	return strings.EqualFold(strings.TrimSpace(name), "application/graphql")
}

// IsReport reports whether a body is what browsers send where a page did what its policy forbids.
func IsReport(contentType string) bool {
	name, _, _ := strings.Cut(strings.ToLower(contentType), ";")
	name = strings.TrimSpace(name)
	return name == "application/csp-report" || name == "application/reports+json"
}

// BeginsLikeJSON reports whether a text begins as an object or an array does.
func BeginsLikeJSON(text string) bool {
	text = strings.TrimLeft(text, " \t\r\n")
	return text != "" && (text[0] == '{' || text[0] == '[')
}

// IsJSON reports whether a text of an unknown type is objects or arrays, one or several: programs take them for what they
// are, whatever type they have.
func IsJSON(text string, whole bool) bool {
	if !BeginsLikeJSON(text) {
		return false
	}
	if !whole {
		return true
	}
	for d := stdjson.NewDecoder(strings.NewReader(text)); ; {
		var document stdjson.RawMessage
		if err := d.Decode(&document); err != nil {
			return err == io.EOF
		}
	}
}

// Set gives a variable of one value its value; its interface can only be read.
func Set(v collection.Collection, value string) { v.(interface{ Set(string) }).Set(value) }

// maxNameBytes is how long a token may be.
const maxNameBytes = 127

// IsToken reports whether a text is of what names are made of (RFC 9110, section 5.6.2), without what the rule set's own
// lists are divided by.
func IsToken(v string) bool {
	for i := range len(v) {
		switch c := v[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("!#$&'*+-.^_~", c) >= 0:
		default:
			return false
		}
	}
	return v != "" && len(v) <= maxNameBytes
}
