package exchange

import (
	"net/http"
	"net/url"
	"strings"
)

// Target is the one reading of what a request asks for.
type Target struct {
	// Raw is path and query as the client sent them, in the origin form: for an absolute target without scheme and host.
	Raw string
	// Path is the decoded path, Canonical its canonical form. What denies matches the canonical one.
	Path, Canonical string
	// Query is what follows the first question mark, as it was sent.
	Query string
	// Ambiguous says that another reader could take the target for another path: it is neither a path nor the absolute
	// form of one over HTTP.
	Ambiguous bool
}

func readTarget(r *http.Request) Target {
	t := Target{Raw: r.RequestURI, Path: r.URL.Path, Query: r.URL.RawQuery}
	t.Canonical = CanonicalPath(t.Path)
	switch {
	case strings.HasPrefix(t.Raw, "/"):
	case t.Raw == "" || r.URL.Host == "":
		// Without a host nothing says that the first "://" is not of the path or the query. A request that the edge itself
		// makes has no line of its own.
		t.Raw = r.URL.RequestURI()
		t.Ambiguous = r.RequestURI != "" || !strings.HasPrefix(r.URL.Path, "/")
	default:
		t.Raw = originForm(t.Raw)
		t.Ambiguous = r.URL.Scheme != "http" && r.URL.Scheme != "https"
	}
	return t
}

// originForm cuts scheme and authority off an absolute target.
func originForm(absolute string) string {
	_, rest, _ := strings.Cut(absolute, "://")
	at := strings.IndexAny(rest, "/?")
	switch {
	case at < 0:
		return "/"
	case rest[at] == '?':
		return "/" + rest[at:]
	}
	return rest[at:]
}

// Exact reports whether the path was sent in its canonical form, without any encoding. What exempts asks for it as well:
// an origin could read another spelling as another path.
func (t *Target) Exact() bool {
	raw, _, _ := strings.Cut(t.Raw, "?")
	return raw == t.Canonical
}

// RewrittenTarget is the target of a rewrite: path is an encoded path, brought into canonical form here. Bytes that no path
// and no query may have are encoded, so that nothing can end the path or the request line.
func RewrittenTarget(path, query string) *Target {
	path = CanonicalPath(decodeUnreserved(path))
	raw := AppendEncoded(make([]byte, 0, len(path)+len(query)+1), path, encodedPathByte)
	if query != "" {
		raw = AppendEncoded(append(raw, '?'), query, queryByte)
	}
	decoded, err := url.PathUnescape(path)
	if err != nil {
		decoded = path
	}
	return &Target{Raw: string(raw), Path: decoded, Canonical: CanonicalPath(decoded), Query: query}
}

// pathByte and queryByte say which bytes stand for themselves (RFC 3986, section 3.3 and 3.4). A query keeps its "%".
func pathByte(c byte) bool {
	switch {
	case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		return true
	}
	return strings.IndexByte("-._~!$&'()*+,;=:@/", c) >= 0
}

// encodedPathByte is pathByte in a path that is encoded already.
func encodedPathByte(c byte) bool { return c == '%' || pathByte(c) }

func queryByte(c byte) bool { return pathByte(c) || c == '?' || c == '%' }

// AppendEncoded appends a text with all bytes percent-encoded but those that plain says stand for themselves.
func AppendEncoded(b []byte, text string, plain func(byte) bool) []byte {
	const hex = "0123456789ABCDEF"
	for i := range len(text) {
		if c := text[i]; plain(c) {
			b = append(b, c)
		} else {
			b = append(b, '%', hex[c>>4], hex[c&15])
		}
	}
	return b
}

const reservedPrefix = "/.svc/"

// Reserved reports whether the path is under the reserved prefix, also in the spellings that an origin could read so.
func (t *Target) Reserved() bool {
	if strings.HasPrefix(t.Path, reservedPrefix) || strings.HasPrefix(t.Canonical, reservedPrefix) {
		return true
	}
	return strings.Contains(t.Path, ".svc") && strings.IndexByte(t.Path, '\\') >= 0 &&
		strings.HasPrefix(CanonicalPath(strings.ReplaceAll(t.Path, `\`, "/")), reservedPrefix)
}
