package pages

import (
	"html"
	"strconv"
	"strings"
	"time"

	"edge.svc/caddy/exchange"
)

const (
	// MaxTemplateBytes is the size of the largest template.
	MaxTemplateBytes = 64 << 10
	// A path is the client's and may be long; more of it than this is cut off.
	maxPathBytes = 1024
	// A template may name a value thousands of times; none is written once the page is this long.
	maxPageBytes = 2 * MaxTemplateBytes
)

// Template is a page of an operator, compiled: what is written in it, and places of values.
type Template struct {
	pieces []piece
	size   int
}

// piece is a text and the value that follows it.
type piece struct {
	text  string
	value value
}

// value appends a value of the request as HTML.
type value func(b []byte, x *exchange.Exchange, status int) []byte

var values = map[string]value{
	"{{status}}": func(b []byte, _ *exchange.Exchange, status int) []byte {
		return strconv.AppendInt(b, int64(status), 10)
	},
	"{{request_id}}": func(b []byte, x *exchange.Exchange, _ int) []byte { return append(b, html.EscapeString(x.In.ID)...) },
	"{{client_ip}}": func(b []byte, x *exchange.Exchange, _ int) []byte {
		if !x.In.Client.IsValid() {
			return b
		}
		return append(b, html.EscapeString(x.In.Client.String())...)
	},
	"{{host}}": func(b []byte, x *exchange.Exchange, _ int) []byte { return append(b, html.EscapeString(x.In.Host)...) },
	"{{time}}": func(b []byte, x *exchange.Exchange, _ int) []byte {
		return x.Begun.UTC().AppendFormat(b, time.RFC3339)
	},
	"{{path}}": func(b []byte, x *exchange.Exchange, _ int) []byte {
		path := x.In.Target.Path
		path = strings.ToValidUTF8(path[:min(len(path), maxPathBytes)], "�")
		return append(b, html.EscapeString(path)...)
	},
}

// ParseTemplate compiles a template. Whatever is not one of its values is text.
func ParseTemplate(text string) *Template {
	t := &Template{size: len(text)}
	for rest := text; rest != ""; {
		text, name, after := cutValue(rest)
		t.pieces = append(t.pieces, piece{text, values[name]})
		rest = after
	}
	return t
}

// cutValue returns the text before the first value, and the value.
func cutValue(s string) (before, name, after string) {
	for from := 0; ; {
		at := strings.Index(s[from:], "{{")
		if at < 0 {
			return s, "", ""
		}
		at += from
		if end := strings.Index(s[at:], "}}"); end >= 0 {
			if name := s[at : at+end+len("}}")]; values[name] != nil {
				return s[:at], name, s[at+len(name):]
			}
		}
		from = at + 1
	}
}

// Put makes the template the body of an answer of the edge, for a failure with this status. Other headers stay.
func (t *Template) Put(x *exchange.Exchange, a *exchange.Answer, status int) {
	h := a.Header
	h["Cache-Control"] = noStore
	h["Content-Type"] = htmlType
	h["X-Content-Type-Options"] = noSniff
	h["Content-Security-Policy"] = templatePolicy
	b := x.Page()
	if cap(b) < t.size {
		b = make([]byte, 0, t.size+t.size/8)
	}
	for _, p := range t.pieces {
		b = append(b, p.text...)
		if p.value != nil && len(b) < maxPageBytes {
			b = p.value(b, x, status)
		}
	}
	x.SetBytes(a, b)
}

// templatePolicy lets a template look like the site: styles, images, fonts and media from anywhere. Scripts do not run, so
// that no value of a request becomes one, wherever a template writes it.
var templatePolicy = []string{"default-src 'none'; style-src 'unsafe-inline' *; img-src * data:; font-src * data:; media-src *; base-uri 'none'"}
