package rules

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"edge.svc/caddy/exchange"
	"edge.svc/caddy/expr"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
)

const (
	maxParameters = 16
	// Of a parameter's name and of its value where that stands there.
	maxParameterName, maxParameterValue = 64, 256
	// Of what a rewrite or redirect makes, path and query together.
	maxTargetBytes = 16 << 10
)

var (
	errQuery      = errors.New("the query has a parameter that is invalid, out of order, or there twice")
	errParameters = fmt.Errorf("the query sets or removes more than %d parameters", maxParameters)
)

// queryEdit changes the query of a target.
type queryEdit struct {
	preserve bool
	set      []parameter
	// Names of those set, too.
	remove []string
}

type parameter struct {
	name  string
	value value
}

func (c *compiler) query(m *configv1.QueryEdit) (e queryEdit, err error) {
	e.preserve = m.GetPreserve()
	if len(m.GetSet()) > maxParameters || len(m.GetRemove()) > maxParameters {
		return e, errParameters
	}
	for _, p := range m.GetSet() {
		name := p.GetName()
		if !isParameterName(name) || len(e.set) > 0 && e.set[len(e.set)-1].name >= name {
			return e, errQuery
		}
		v, err := c.value(p.GetValue(), expr.ForQuery)
		if err != nil {
			return e, err
		}
		if v.computed == nil && (len(v.text) > maxParameterValue || strings.ContainsFunc(v.text, func(r rune) bool { return r < ' ' || r > '~' })) {
			return e, errQuery
		}
		e.set, e.remove = append(e.set, parameter{name, v}), append(e.remove, name)
	}
	for _, name := range m.GetRemove() {
		if !isParameterName(name) || slices.Contains(e.remove, name) {
			return e, errQuery
		}
		e.remove = append(e.remove, name)
	}
	return e, nil
}

func isParameterName(name string) bool {
	return name != "" && len(name) <= maxParameterName && !strings.ContainsFunc(name, func(r rune) bool { return r > '~' || !unreserved(byte(r)) })
}

// unreserved names the bytes that stand for themselves in every part of a URL.
func unreserved(c byte) bool {
	switch {
	case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		return true
	}
	return c == '-' || c == '.' || c == '_' || c == '~'
}

// applied is the query with the changes: what was asked for is put after own or left out, parameters that are set or
// removed are taken away, and those that are set follow in the order of their names.
func (e *queryEdit) applied(q *request, own, asked string) (query, why string) {
	query = own
	if e.preserve && asked != "" {
		if query != "" {
			query += "&"
		}
		query += asked
	}
	if len(e.remove) == 0 {
		return query, ""
	}
	query = without(query, e.remove)
	if len(e.set) == 0 {
		return query, ""
	}
	b := append(make([]byte, 0, len(query)+64), query...)
	for i := range e.set {
		p := &e.set[i]
		text, why := p.value.of(q)
		if why != "" {
			return "", why
		}
		if len(b) > 0 {
			b = append(b, '&')
		}
		b = exchange.AppendEncoded(append(append(b, p.name...), '='), text, unreserved)
	}
	return string(b), ""
}

// without is the query without the parameters of these names, which stand before the first "=".
func without(query string, names []string) string {
	named := func(part string) bool {
		name, _, _ := strings.Cut(part, "=")
		return slices.Contains(names, name)
	}
	if query == "" {
		return ""
	}
	parts := strings.Split(query, "&")
	if !slices.ContainsFunc(parts, named) {
		return query
	}
	return strings.Join(slices.DeleteFunc(parts, named), "&")
}

// location is the target of a redirect with its query changed; a fragment stays last, and no "?" without a query is left.
func (e *queryEdit) location(q *request, target, asked string) (location, why string) {
	target, fragment, hasFragment := strings.Cut(target, "#")
	path, own, _ := strings.Cut(target, "?")
	query, why := e.applied(q, own, asked)
	if why != "" {
		return "", why
	}
	b := exchange.AppendEncoded(make([]byte, 0, len(path)+len(query)+len(fragment)+16), path, visible)
	if query != "" {
		b = exchange.AppendEncoded(append(b, '?'), query, visibleInQuery)
	}
	if hasFragment {
		b = exchange.AppendEncoded(append(b, '#'), fragment, visible)
	}
	if len(b) > maxTargetBytes {
		return "", expr.ResultTooLong.String()
	}
	return string(b), ""
}

// visible names the bytes that can be in a header as they are. Others stand in what was asked for, or were computed.
func visible(c byte) bool { return c > ' ' && c < 0x7f }

func visibleInQuery(c byte) bool { return visible(c) && c != '#' }

func (c *compiler) redirect(m *configv1.RedirectAction) (action, error) {
	target, err := c.value(m.GetTarget(), expr.ForRedirect)
	if err != nil {
		return nil, err
	}
	query, err := c.query(m.GetQuery())
	if err != nil {
		return nil, err
	}
	status := int(m.GetStatus())
	return func(q *request, r *rule) verdict {
		to, why := target.of(q)
		if why == "" {
			to, why = query.location(q, to, q.x.Target().Query)
		}
		if why != "" {
			return q.fail(r, why)
		}
		q.note(r, exchange.RuleRedirected)
		q.end(outcome{status: status, location: to})
		return stop
	}, oneOf("status", m.GetStatus(), 301, 302, 303, 307, 308)
}

// rewrite changes the target that rules after this one see, and the origin gets: an encoded path, brought into the form in
// which all paths are compared, so that what rules see is what the origin reads.
func (c *compiler) rewrite(m *configv1.RewriteAction) (action, error) {
	target, err := c.value(m.GetTarget(), expr.ForRewrite)
	if err != nil {
		return nil, err
	}
	if strings.ContainsAny(m.GetTarget().GetText(), "?#") {
		// Who writes them there means a query; a computed path may have them.
		return nil, errValue
	}
	query, err := c.query(m.GetQuery())
	if err != nil {
		return nil, err
	}
	return func(q *request, r *rule) verdict {
		to, why := target.of(q)
		asked := ""
		if why == "" {
			asked, why = query.applied(q, "", q.x.Target().Query)
		}
		if why != "" {
			return q.fail(r, why)
		}
		next := exchange.RewrittenTarget(to, asked)
		switch {
		case len(next.Raw) > maxTargetBytes:
			return q.fail(r, expr.ResultTooLong.String())
		case next.Reserved():
			// Nothing under the reserved prefix reaches an origin.
			return q.fail(r, expr.UnusableResult.String())
		}
		q.x.Out.Target = next
		return q.applied(r)
	}, nil
}
