package encode

import (
	"net/http"
	"slices"
	"strings"

	"edge.svc/caddy/exchange"
)

const acceptEncoding = "Accept-Encoding"

var onlyAcceptEncoding = []string{acceptEncoding}

// vary says that the answer would be another for a client that accepts something else.
func vary(h http.Header) {
	values := h["Vary"]
	if exchange.HasToken(values, acceptEncoding) || exchange.HasToken(values, "*") {
		return
	}
	if before := strings.Join(values, ", "); before != "" {
		h["Vary"] = []string{before + ", " + acceptEncoding}
	} else {
		h["Vary"] = onlyAcceptEncoding
	}
}

// encodedHeader takes from a header what is not true of the encoded answer: its length, its parts, and sums of its bytes.
func encodedHeader(h http.Header) {
	for _, name := range [...]string{"Content-Length", "Accept-Ranges", "Content-Md5", "Digest", "Content-Digest", "Repr-Digest"} {
		delete(h, name)
	}
	if tag := h["Etag"]; len(tag) == 1 && !isWeak(tag[0]) {
		h["Etag"] = []string{"W/" + tag[0]}
	}
}

func isWeak(tag string) bool { return strings.HasPrefix(tag, `W/"`) }

// weakenUnchanged has an answer 304 name the tag that the client has: the weak one of what was compressed, unless it has the
// other as well.
func weakenUnchanged(x *exchange.Exchange, a *exchange.Answer) {
	tag := a.Header["Etag"]
	if len(tag) != 1 || isWeak(tag[0]) {
		return
	}
	asked, ok := readTags(x.In.Header["If-None-Match"])
	if ok && slices.Contains(asked, "W/"+tag[0]) && !slices.Contains(asked, tag[0]) {
		a.Header["Etag"] = []string{"W/" + tag[0]}
	}
}

// strengthen adds the strong form of each weak tag to a condition: the origin knows nothing of the weak ones that are the
// edge's. A tag that is weak at the origin, too, does not match for that. If-Range stays as it is: a part of what the
// origin has does not go with what was compressed, and a weak tag there gets the whole.
func strengthen(x *exchange.Exchange, name string) {
	lines := x.In.Header[name]
	if len(lines) == 0 || x.Out.Replaces(name) {
		return
	}
	tags, ok := readTags(lines)
	if !ok {
		return
	}
	all := tags
	for _, tag := range tags {
		if strong, weak := strings.CutPrefix(tag, "W/"); weak && !slices.Contains(tags, strong) {
			all = append(all, strong)
		}
	}
	if value := strings.Join(all, ", "); len(all) > len(tags) && len(value) <= maxCondition {
		x.Out.Edits = append(x.Out.Edits, exchange.HeaderEdit{Name: name, Values: []string{value}})
	}
}

const (
	// A longer field is more than most servers take.
	maxCondition = 8 << 10
	maxTags      = 64
)

// readTags reads a list of entity tags; a comma may stand in one. ok is false for what is no such list, and for "*".
func readTags(lines []string) (tags []string, ok bool) {
	for _, line := range lines {
		for rest := strings.Trim(line, " \t"); rest != ""; {
			if rest[0] == ',' {
				rest = strings.TrimLeft(rest[1:], " \t")
				continue
			}
			at := 0
			if strings.HasPrefix(rest, "W/") {
				at = 2
			}
			if at == len(rest) || rest[at] != '"' {
				return nil, false
			}
			end := strings.IndexByte(rest[at+1:], '"')
			if end < 0 || len(tags) == maxTags {
				return nil, false
			}
			end += at + 2
			tags = append(tags, rest[:end])
			if rest = strings.TrimLeft(rest[end:], " \t"); rest != "" && rest[0] != ',' {
				return nil, false
			}
		}
	}
	return tags, true
}
