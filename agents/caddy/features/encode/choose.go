package encode

import (
	"slices"
	"strconv"
	"strings"

	"edge.svc/caddy/exchange"
)

// Where weights are equal and no rule says otherwise.
var usualOrder = []exchange.Coding{exchange.Zstd, exchange.Brotli, exchange.Gzip}

// choices are the codings that an answer may have, best first.
type choices struct {
	coding [exchange.Gzip]exchange.Coding
	n      int
}

func (c *choices) all() []exchange.Coding { return c.coding[:c.n] }

// fits lists the codings that the site has for an answer, and rules leave, in the order in which they are preferred.
func (s *settings) fits(x *exchange.Exchange, a *exchange.Answer) (list choices) {
	if untouchable(x, a) {
		return list
	}
	length, known := lengthOf(a)
	if known && s.maxLength > 0 && length > s.maxLength {
		return list
	}
	contentType, told := typeOf(a)
	if told && partial(a) && contentType == "multipart/byteranges" {
		// The parts hide the type of the whole.
		contentType, told = "", false
	}
	if !told && !notModified(a) && !partial(a) || neverCompressed(contentType) {
		return list
	}
	o := &x.Overrides
	order := usualOrder
	if o.HasCodings {
		order = o.Codings
	}
	for _, coding := range order {
		c := s.codings[coding]
		if c == nil || known && length < c.minLength || told && !c.types[contentType] || !switchOf(o, coding).Or(true) {
			continue
		}
		list.coding[list.n] = coding
		list.n++
	}
	return list
}

// switchOf is the rules' switch of a coding. They only choose among those of the site.
func switchOf(o *exchange.Overrides, c exchange.Coding) exchange.Switch {
	switch c {
	case exchange.Zstd:
		return o.Zstd
	case exchange.Brotli:
		return o.Brotli
	}
	return o.Gzip
}

// welcome keeps those that the client accepts, what it likes best first.
func (c *choices) welcome(a accepted) {
	kept := slices.DeleteFunc(c.all(), func(coding exchange.Coding) bool { return a.weight(coding) == 0 })
	slices.SortStableFunc(kept, func(one, other exchange.Coding) int { return int(a.weight(other)) - int(a.weight(one)) })
	c.n = len(kept)
}

func notModified(a *exchange.Answer) bool { return a.Status == 304 }

func partial(a *exchange.Answer) bool { return a.Status == 206 }

// untouchable reports whether an answer stays as it is whatever its type is: of a status that is not compressed, encoded
// already, or not to be changed on its way. An answer without change, or of a part, counts as the answer that it stands for.
func untouchable(x *exchange.Exchange, a *exchange.Answer) bool {
	switch a.Status {
	case 200, 206, 304, 403, 404:
	default:
		return true
	}
	return a.Upgrade != nil || a.Bytes != nil || len(a.Header["Content-Encoding"]) > 0 ||
		exchange.HasToken(a.Header["Cache-Control"], "no-transform") || exchange.HasToken(x.In.Header["Cache-Control"], "no-transform")
}

// lengthOf is the length of an answer, where that is known before it comes; of the whole where the answer is a part.
func lengthOf(a *exchange.Answer) (length uint64, known bool) {
	if partial(a) {
		return completeLength(a.Header["Content-Range"])
	}
	values := a.Header["Content-Length"]
	if len(values) != 1 || notModified(a) {
		return 0, false
	}
	length, err := strconv.ParseUint(values[0], 10, 63)
	return length, err == nil
}

// completeLength reads how long the whole is that a part was taken from (RFC 9110 §14.4).
func completeLength(values []string) (length uint64, known bool) {
	if len(values) != 1 {
		return 0, false
	}
	_, complete, _ := strings.Cut(values[0], "/")
	length, err := strconv.ParseUint(strings.Trim(complete, " \t"), 10, 63)
	return length, err == nil
}

// typeOf is the media type of an answer.
func typeOf(a *exchange.Answer) (name string, told bool) {
	values := a.Header["Content-Type"]
	if len(values) != 1 {
		return "", false
	}
	return sameType(mediaType(values[0])), true
}

// mediaType is the type that a Content-Type field names, in lower case and without parameters.
func mediaType(value string) string {
	name, _, _ := strings.Cut(value, ";")
	return strings.ToLower(strings.Trim(name, " \t"))
}

// neverCompressed names what is read as it comes, in a framing of its own, and what is a piece of something.
func neverCompressed(contentType string) bool {
	return contentType == "text/event-stream" || contentType == "multipart/byteranges" ||
		contentType == "application/grpc" || strings.HasPrefix(contentType, "application/grpc+") || strings.HasPrefix(contentType, "application/grpc-web")
}
