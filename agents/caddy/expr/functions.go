package expr

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strings"
)

type function uint8

// The functions, in the order of contract/expression/functions.ts.
const (
	noFunction function = iota
	lowerFunction
	upperFunction
	lenFunction
	startsWithFunction
	endsWithFunction
	concatFunction
	urlDecodeFunction
	urlEncodeFunction
	base64EncodeFunction
	base64DecodeFunction
	md5Function
	sha1Function
	sha256Function
	substringFunction
	toStringFunction
	regexReplaceFunction
	wildcardReplaceFunction
)

type functionSpec struct {
	name    string
	returns kind
	// How many arguments it has, and how many of them have to be there.
	most, least int
	// Stands in value expressions only, and once in each.
	valueOnly bool
}

var functions = [...]functionSpec{
	lowerFunction:           {"lower", textKind, 1, 1, false},
	upperFunction:           {"upper", textKind, 1, 1, false},
	lenFunction:             {"len", numberKind, 1, 1, false},
	startsWithFunction:      {"starts_with", truthKind, 2, 2, false},
	endsWithFunction:        {"ends_with", truthKind, 2, 2, false},
	concatFunction:          {"concat", textKind, 8, 2, false},
	urlDecodeFunction:       {"url_decode", textKind, 1, 1, false},
	urlEncodeFunction:       {"url_encode", textKind, 1, 1, false},
	base64EncodeFunction:    {"base64_encode", textKind, 1, 1, false},
	base64DecodeFunction:    {"base64_decode", textKind, 1, 1, false},
	md5Function:             {"md5", textKind, 1, 1, false},
	sha1Function:            {"sha1", textKind, 1, 1, false},
	sha256Function:          {"sha256", textKind, 1, 1, false},
	substringFunction:       {"substring", textKind, 3, 2, false},
	toStringFunction:        {"to_string", textKind, 1, 1, false},
	regexReplaceFunction:    {"regex_replace", textKind, 3, 3, true},
	wildcardReplaceFunction: {"wildcard_replace", textKind, 4, 3, true},
}

var functionByName = func() map[string]function {
	byName := make(map[string]function, len(functions))
	for each, spec := range functions {
		if function(each) != noFunction {
			byName[spec.name] = function(each)
		}
	}
	return byName
}()

// plain are the functions of one string that make another.
var plain = map[function]func(string) string{
	lowerFunction:        func(s string) string { return mapped(s, lowerByte) },
	upperFunction:        func(s string) string { return mapped(s, upperByte) },
	urlDecodeFunction:    urlDecode,
	urlEncodeFunction:    urlEncode,
	base64EncodeFunction: func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) },
	base64DecodeFunction: base64Decode,
	md5Function: func(s string) string {
		sum := md5.Sum([]byte(s))
		return hex.EncodeToString(sum[:])
	},
	sha1Function: func(s string) string {
		sum := sha1.Sum([]byte(s))
		return hex.EncodeToString(sum[:])
	},
	sha256Function: func(s string) string {
		sum := sha256.Sum256([]byte(s))
		return hex.EncodeToString(sum[:])
	},
}

func upperByte(c byte) byte {
	if c >= 'a' && c <= 'z' {
		return c - 'a' + 'A'
	}
	return c
}

// mapped changes bytes one by one; nothing is allocated where none changes.
func mapped(s string, change func(byte) byte) string {
	for i := range len(s) {
		if change(s[i]) == s[i] {
			continue
		}
		changed := []byte(s)
		for ; i < len(changed); i++ {
			changed[i] = change(changed[i])
		}
		return string(changed)
	}
	return s
}

// urlDecode decodes once; + is a space, and a broken % stays.
func urlDecode(s string) string {
	if !strings.ContainsAny(s, "%+") {
		return s
	}
	decoded := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '+':
			decoded = append(decoded, ' ')
		case c == '%' && i+2 < len(s) && isHex(s[i+1]) && isHex(s[i+2]):
			decoded = append(decoded, unhex(s[i+1])<<4|unhex(s[i+2]))
			i += 2
		default:
			decoded = append(decoded, c)
		}
	}
	return string(decoded)
}

// urlEncode writes every byte that is not unreserved as %XX.
func urlEncode(s string) string {
	const digits = "0123456789ABCDEF"
	encoded := make([]byte, 0, len(s))
	for i := range len(s) {
		c := s[i]
		if isPlainByte(c) {
			encoded = append(encoded, c)
		} else {
			encoded = append(encoded, '%', digits[c>>4], digits[c&15])
		}
	}
	return string(encoded)
}

// base64Decode takes both alphabets, also mixed, with all of the padding or none; bits that are left over count for
// nothing. What is no base64 is "".
func base64Decode(s string) string {
	data := strings.TrimSuffix(strings.TrimSuffix(s, "="), "=")
	if len(data)%4 == 1 || len(data) != len(s) && len(s)%4 != 0 {
		return ""
	}
	// Go's decoder would skip line ends.
	if hasByte(data, func(c byte) bool { return c == '\r' || c == '\n' }) {
		return ""
	}
	decoded, err := base64.RawStdEncoding.DecodeString(mapped(data, func(c byte) byte {
		switch c {
		case '-':
			return '+'
		case '_':
			return '/'
		}
		return c
	}))
	if err != nil {
		return ""
	}
	return string(decoded)
}

// substring cuts bytes from an offset, counted from the end when it is negative.
func substring(s string, start, length int) string {
	if start < 0 {
		start = max(0, len(s)+start)
	}
	start = min(start, len(s))
	return s[start:min(start+length, len(s))]
}
