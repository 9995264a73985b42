package rules

import (
	"errors"
	"net/http"
	"strings"

	"golang.org/x/net/http/httpguts"

	"edge.svc/caddy/exchange"
	"edge.svc/caddy/expr"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
)

const (
	maxHeaderName = 64
	// Bytes that rules may put into the header of a request, and into that of its answer.
	maxGrown = 32 << 10
	// ": " and the end of the line.
	fieldExtra = 4
)

var (
	errHeader    = errors.New("the header name must be a valid name in lower case")
	errProtected = errors.New("a rule cannot change this header")
	errAppend    = errors.New("a value cannot be appended to this header")
)

func isHeaderName(name string) bool {
	return name != "" && len(name) <= maxHeaderName && httpguts.ValidHeaderFieldName(name) && lowerASCII(name) == name
}

// protected names the fields that no rule changes: they say who asks, who is logged in, where a message ends, and what
// nodes tell one another.
func protected(name string) bool {
	switch name {
	case "host", "authorization", "proxy-authorization", "cookie", "set-cookie", "content-length", "transfer-encoding",
		"connection", "upgrade", "te", "trailer", "cdn-loop":
		return true
	}
	return strings.HasPrefix(name, "x-svc-")
}

// edgeKeeps names the fields that rules do not change in answers of the edge itself: its pages, redirects and challenges
// do not work, or can be kept by others, without them.
func edgeKeeps(name string) bool {
	switch name {
	case "cache-control", "content-security-policy", "location", "retry-after", "x-request-id":
		return true
	}
	return protected(name)
}

// headerChange is what a rule does to a field: sets it, adds a line, or without a value removes it.
type headerChange struct {
	// In canonical form.
	name string
	// removes: value is not there.
	removes bool
	value   value
}

func (c *compiler) header(m *configv1.HeaderAction) (h headerChange, err error) {
	switch name := m.GetName(); {
	case !isHeaderName(name):
		return h, errHeader
	case protected(name):
		return h, errProtected
	}
	h.name = http.CanonicalHeaderKey(m.GetName())
	if h.removes = m.GetValue().GetValue() == nil; !h.removes {
		h.value, err = c.value(m.GetValue(), expr.ForHeader)
	}
	return h, err
}

// text is the value of a field that is set; ok is false where it cannot be, and the action is left out.
func (h *headerChange) text(q *request, r *rule) (text string, ok bool) {
	text, why := h.value.of(q)
	if why == "" && q.grown+len(h.name)+len(text)+fieldExtra > maxGrown {
		why = "header_too_large"
	}
	if why != "" {
		q.tell(r, "the value of a header failed: it is left as it is", why)
		return "", false
	}
	q.grown += len(h.name) + len(text) + fieldExtra
	return text, true
}

// requestHeader changes the header that rules after this one see, and the origin gets.
func (c *compiler) requestHeader(m *configv1.HeaderAction) (action, error) {
	h, err := c.header(m)
	if err == nil && m.GetAppend() {
		err = errAppend
	}
	return func(q *request, r *rule) verdict {
		edit := exchange.HeaderEdit{Name: h.name}
		if !h.removes {
			text, ok := h.text(q, r)
			if !ok {
				return goOn
			}
			edit.Values = []string{text}
		}
		setEdit(&q.x.Out, edit)
		q.changed()
		return q.applied(r)
	}, err
}

// setEdit has the last edit of a field be its only one.
func setEdit(out *exchange.Outbound, edit exchange.HeaderEdit) {
	for i := range out.Edits {
		if out.Edits[i].Name == edit.Name {
			out.Edits[i] = edit
			return
		}
	}
	out.Edits = append(out.Edits, edit)
}

// responseHeader changes the header that the client gets.
func (c *compiler) responseHeader(m *configv1.HeaderAction) (action, error) {
	h, err := c.header(m)
	if err == nil && m.GetAppend() && h.removes {
		err = errAppend
	}
	kept, appends := edgeKeeps(m.GetName()), m.GetAppend()
	return func(q *request, r *rule) verdict {
		if kept && q.answer.From == exchange.FromEdge {
			return goOn
		}
		header := q.answer.Header
		switch {
		case h.removes && filledIn(h.name):
			header[h.name] = nil
		case h.removes:
			delete(header, h.name)
		default:
			text, ok := h.text(q, r)
			if !ok {
				return goOn
			}
			var lines []string
			if appends {
				// The list may be of all answers.
				lines = header[h.name]
				lines = lines[:len(lines):len(lines)]
			}
			header[h.name] = append(lines, text)
		}
		q.changed()
		return q.applied(r)
	}, err
}

// filledIn names the fields that the server makes up where they are missing.
func filledIn(name string) bool { return name == "Content-Type" || name == "Date" }
