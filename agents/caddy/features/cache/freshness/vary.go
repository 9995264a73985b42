package freshness

import (
	"net/http"
	"net/textproto"
	"slices"
	"strings"
)

// MaxVary is how many fields the Vary of a stored response may name; one that names more is not stored.
const MaxVary = 16

type variance uint8

const (
	variesByNone variance = iota
	variesBySome
	variesByAll
)

func varies(lines []string) variance {
	found := variesByNone
	n := 0
	for member := range members(lines) {
		if n++; member == "*" || n > MaxVary || !isToken(member) {
			return variesByAll
		}
		found = variesBySome
	}
	return found
}

// VaryNames are the fields that a response varies by (RFC 9110 section 12.5.5), in canonical form, sorted, each once. The
// order in which an origin names them does not matter. "*" gives none: such a response is not stored.
func VaryNames(response http.Header) []string {
	var names []string
	for member := range members(response["Vary"]) {
		names = append(names, textproto.CanonicalMIMEHeaderKey(member))
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// AppendVariant appends what a request has in the fields that responses vary by. Two requests with equal results match (RFC
// 9111 section 4.1): white space around the members of lists and the number of lines do not matter, except in fields that are
// no lists, and a field that is missing is not one that is empty. request returns the lines of a field.
func AppendVariant(b []byte, names []string, request func(name string) []string) []byte {
	for _, name := range names {
		lines := request(name)
		if lines == nil {
			b = append(b, 0)
			continue
		}
		b = append(b, 1)
		if single(name) {
			for _, line := range lines {
				b = append(append(b, line...), 0)
			}
			continue
		}
		first := true
		for member := range members(lines) {
			if !first {
				b = append(b, ',')
			}
			first = false
			b = append(b, member...)
		}
		b = append(b, 0)
	}
	return b
}

// single names the fields that are no lists: in them a comma or white space is a part of the value.
func single(name string) bool {
	switch name {
	case "Authorization", "Cookie", "From", "Host", "Origin", "Referer", "User-Agent":
		return true
	}
	return false
}

// HasToken reports whether a list has a member, in any case.
func HasToken(lines []string, token string) bool {
	for member := range members(lines) {
		if strings.EqualFold(member, token) {
			return true
		}
	}
	return false
}
