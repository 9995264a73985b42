package rules

import (
	"net/netip"
	"strings"

	"edge.svc/caddy/exchange"
	"edge.svc/caddy/expr"
)

var _ expr.Values = (*request)(nil)

// Text is the value of a field of strings. Path, query and header are as rules before left them; everything else of a
// request is as it was asked.
func (q *request) Text(field expr.Field, name string) string {
	in := &q.x.In
	switch field {
	case expr.Host:
		return in.Host
	case expr.Method:
		return in.Method
	case expr.Path:
		return q.target().Canonical
	case expr.PathExtension:
		return extensionOf(q.target().Canonical)
	case expr.RawPath:
		raw, _, _ := strings.Cut(q.target().Raw, "?")
		return raw
	case expr.Query:
		return q.target().Query
	case expr.URI:
		return in.Target.Raw
	case expr.FullURI:
		return q.full()
	case expr.RequestHeader:
		return q.requestHeader(name)
	case expr.Cookie:
		if q.cookies == nil {
			q.cookies = in.Header["Cookie"]
		}
		return cookieOf(q.cookies, name)
	case expr.Argument:
		return argumentOf(q.target().Query, name)
	case expr.Referer:
		return q.often(&q.referer, "Referer")
	case expr.UserAgent:
		return q.often(&q.userAgent, "User-Agent")
	case expr.Version:
		return versionOf(in.Major, in.Minor)
	case expr.Scheme:
		return in.Scheme
	case expr.RequestID:
		return in.ID
	case expr.JA4:
		return in.JA4()
	case expr.Country:
		return q.countryOfClient()
	case expr.ASName:
		return q.systemOfClient().name
	case expr.ResponseHeader:
		return q.responseHeader(name)
	case expr.MediaType:
		return mediaType(q.responseHeader("Content-Type"))
	case expr.CacheStatus:
		state, _ := exchange.CacheStatus.Known(q.x)
		return state.Word
	}
	// No database knows parts of countries.
	return ""
}

// Number is the value of a field of numbers.
func (q *request) Number(field expr.Field) int64 {
	switch field {
	case expr.TimestampSec:
		return q.x.Begun.Unix()
	case expr.ServerPort:
		return int64(q.x.In.Port)
	case expr.ASNumber:
		return int64(q.systemOfClient().number)
	case expr.ResponseCode:
		if q.answer != nil {
			return int64(q.answer.Status)
		}
	}
	return 0
}

// Truth is the value of a field that is true or false.
func (q *request) Truth(field expr.Field) bool { return field == expr.SSL && q.x.In.Secure() }

// Address is the value of a field of addresses.
func (q *request) Address(field expr.Field) netip.Addr {
	switch field {
	case expr.Source:
		return q.x.In.Client.WithZone("").Unmap()
	case expr.Peer:
		return q.x.In.Peer.WithZone("").Unmap()
	}
	return netip.Addr{}
}

// Contains reports whether a list has an address. What depends on a list that never came whole fails.
func (q *request) Contains(list string, address netip.Addr) bool {
	if q.rules.lists == nil {
		q.missing = true
		return false
	}
	in, whole := q.rules.lists.Contains(q.x.Tables, list, address)
	q.missing = q.missing || !whole
	return in && whole
}

func (q *request) countryOfClient() string {
	c := &q.country
	if !c.asked && q.rules.geo != nil {
		c.value, c.ready = q.rules.geo.Country(q.Address(expr.Source))
	}
	c.asked = true
	q.missing = q.missing || !c.ready
	return c.value
}

func (q *request) systemOfClient() system {
	s := &q.system
	if !s.asked && q.rules.geo != nil {
		s.value.number, s.value.name, s.ready = q.rules.geo.AS(q.Address(expr.Source))
	}
	s.asked = true
	q.missing = q.missing || !s.ready
	return s.value
}

// full is the URL that was asked for, without a port.
func (q *request) full() string {
	if q.fullURI == "" {
		in := &q.x.In
		q.fullURI = in.Scheme + "://" + in.Host + in.Target.Raw
	}
	return q.fullURI
}

// joinedField is a field of several lines, in one.
type joinedField struct {
	name, value string
	response    bool
}

// join is a header's value in one line. What was joined is kept until the field changes.
func (q *request) join(name string, lines []string, response bool) string {
	switch len(lines) {
	case 0:
		return ""
	case 1:
		return lines[0]
	}
	for i := range q.joined {
		if known := &q.joined[i]; known.name == name && known.response == response {
			return known.value
		}
	}
	value := strings.Join(lines, ", ")
	q.joined = append(q.joined, joinedField{name, value, response})
	return value
}

// changed forgets what was found out of headers.
func (q *request) changed() {
	q.joined = q.joined[:0]
	q.userAgent.known, q.referer.known = false, false
}

type oftenField struct {
	value string
	known bool
}

// often is a field that many rules ask for; it is looked up once.
func (q *request) often(f *oftenField, name string) string {
	if !f.known {
		f.value, f.known = q.requestHeader(name), true
	}
	return f.value
}

func (q *request) requestHeader(name string) string {
	if name == "Host" {
		return q.x.In.HostRaw
	}
	lines := q.x.In.Header[name]
	if len(q.x.Out.Edits) > 0 && !q.asked {
		lines = edited(lines, q.x.Out.Edits, name)
	}
	return q.join(name, lines, false)
}

// edited is the lines of a field after the edits.
func edited(lines []string, edits []exchange.HeaderEdit, name string) []string {
	for i := range edits {
		switch edit := &edits[i]; {
		case edit.Name != name:
		case edit.Add:
			lines = append(lines[:len(lines):len(lines)], edit.Values...)
		default:
			lines = edit.Values
		}
	}
	return lines
}

func (q *request) responseHeader(name string) string {
	if q.answer == nil {
		return ""
	}
	return q.join(name, q.answer.Header[name], true)
}

// cookieOf is the first cookie of a name, as it was sent. Parts without "=" are none.
func cookieOf(lines []string, name string) string {
	for _, line := range lines {
		for at := 0; ; at++ {
			found := strings.Index(line[at:], name)
			if found < 0 {
				break
			}
			at += found
			end := at + len(name)
			if end < len(line) && line[end] == '=' && beginsPair(line[:at]) {
				value, _, _ := strings.Cut(line[end+1:], ";")
				return strings.TrimRight(value, " \t")
			}
		}
	}
	return ""
}

// beginsPair reports whether what follows is the beginning of a cookie.
func beginsPair(before string) bool {
	for at := len(before) - 1; at >= 0; at-- {
		if c := before[at]; c != ' ' && c != '\t' {
			return c == ';'
		}
	}
	return true
}

// argumentOf is the first parameter of a name, as it was sent.
func argumentOf(query, name string) string {
	for at := 0; ; at++ {
		found := strings.Index(query[at:], name)
		if found < 0 {
			return ""
		}
		at += found
		end := at + len(name)
		switch {
		case at > 0 && query[at-1] != '&':
		case end == len(query) || query[end] == '&':
			return ""
		case query[end] == '=':
			value, _, _ := strings.Cut(query[end+1:], "&")
			return value
		}
	}
}

// extensionOf is what follows the last dot of the last segment, in lower case.
func extensionOf(path string) string {
	segment := path[strings.LastIndexByte(path, '/')+1:]
	dot := strings.LastIndexByte(segment, '.')
	if dot < 0 {
		return ""
	}
	return lowerASCII(segment[dot+1:])
}

func mediaType(contentType string) string {
	kind, _, _ := strings.Cut(contentType, ";")
	return lowerASCII(strings.Trim(kind, " \t"))
}

// lowerASCII is s with A to Z in lower case, s itself where it has none.
func lowerASCII(s string) string {
	for i := range len(s) {
		if 'A' <= s[i] && s[i] <= 'Z' {
			b := []byte(s)
			for ; i < len(b); i++ {
				if 'A' <= b[i] && b[i] <= 'Z' {
					b[i] += 'a' - 'A'
				}
			}
			return string(b)
		}
	}
	return s
}

func versionOf(major, minor int) string {
	switch {
	case major == 1 && minor == 0:
		return "HTTP/1.0"
	case major == 1:
		return "HTTP/1.1"
	case major == 2:
		return "HTTP/2.0"
	}
	return "HTTP/3.0"
}
