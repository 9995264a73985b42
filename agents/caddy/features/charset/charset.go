// Package charset says in which charset the text of a site's origins is, where the site has one.
package charset

import (
	"errors"
	"strings"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
)

const kind = "site-content"

func init() { core.ConfigureKind(kind, core.KindOptions{Features: []string{"site-content-v1"}}) }

// settings are those of a site, immutable.
type settings struct {
	// "; charset=utf-8"
	parameter string
	// It takes the place of a charset of the origin.
	force bool
}

var part = core.PartOf(kind, "charset", compile)

const maxName = 40

func compile(_ *core.Core, _ string, m *configv1.SiteContent) (*settings, error) {
	name := m.GetCharset()
	if name == "" {
		return nil, nil
	}
	for i := range len(name) {
		if c := name[i]; c != '-' && c != '_' && (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') || len(name) > maxName {
			return nil, errors.New("the charset is not a name of one")
		}
	}
	return &settings{"; charset=" + name, m.GetForceCharset()}, nil
}

// Response is the response stage that names the charset.
func Response(*core.Core) exchange.ResponseStage {
	return func(x *exchange.Exchange, a *exchange.Answer) {
		if x.Plan == nil {
			return
		}
		s := part.Of(x.Plan)
		if s == nil {
			return
		}
		if values := a.Header["Content-Type"]; len(values) == 1 {
			if value := s.applied(values[0]); value != values[0] {
				a.Header["Content-Type"] = []string{value}
			}
		}
	}
}

// applied is a value of Content-Type with the charset, or as it was: without a type of text, or with a charset that stays.
func (s *settings) applied(value string) string {
	mediaType, _, _ := strings.Cut(value, ";")
	if !isText(strings.ToLower(strings.Trim(mediaType, " \t"))) {
		return value
	}
	start, end, whole := charsetIn(value)
	switch {
	case !whole:
		return value
	case start < 0:
		return strings.TrimRight(value, " \t;") + s.parameter
	case s.force:
		return strings.TrimRight(value[:start], " \t") + s.parameter + value[end:]
	}
	return value
}

func isText(mediaType string) bool {
	switch mediaType {
	case "application/javascript", "application/json", "application/xml":
		return true
	}
	return strings.HasPrefix(mediaType, "text/")
}

// charsetIn finds the parameter "charset" with the semicolon before it; start is -1 where there is none. A value with a quote
// that has no end is not whole.
func charsetIn(value string) (start, end int, whole bool) {
	for at := strings.IndexByte(value, ';'); at >= 0 && at < len(value); {
		next, closed := parameterEnd(value, at+1)
		if !closed {
			return -1, -1, false
		}
		name, _, found := strings.Cut(value[at+1:next], "=")
		if found && strings.EqualFold(strings.Trim(name, " \t"), "charset") {
			return at, next, true
		}
		at = next
	}
	return -1, -1, true
}

// parameterEnd is where the next semicolon outside of quotes is.
func parameterEnd(value string, at int) (end int, closed bool) {
	quoted := false
	for ; at < len(value); at++ {
		switch c := value[at]; {
		case c == '"':
			quoted = !quoted
		case c == '\\' && quoted:
			at++
		case c == ';' && !quoted:
			return at, true
		}
	}
	return len(value), !quoted
}
