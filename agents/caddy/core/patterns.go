package core

import (
	"cmp"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"sync"

	"edge.svc/caddy/exchange"
	"edge.svc/caddy/internal/pmap"
)

const (
	maxPatternBytes = 256
	// Longest literal end or start of a pattern that is used as a key.
	maxPatternKey = 24
	minPatternKey = 2
)

// pattern is one domain of the pattern form.
type pattern struct {
	// Of the site, once it has it.
	number      uint32
	createdAtMs int64
	siteID      string

	order int
	text  string
	// Literal text a matching host must have at its end, at its start, or anywhere.
	suffix, prefix, infix string

	once sync.Once
	re   *regexp.Regexp
}

// compilePattern checks an expression and finds its literal parts. The automaton is built when a host first reaches it,
// because of many patterns few are ever tried.
func compilePattern(text string, order int) (*pattern, error) {
	if text == "" || len(text) > maxPatternBytes {
		return nil, fmt.Errorf("a pattern has %d bytes; it must have 1 to %d", len(text), maxPatternBytes)
	}
	if _, err := regexp.Compile(anchored(text)); err != nil {
		return nil, fmt.Errorf("pattern %q: %w", text, err)
	}
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, fmt.Errorf("pattern %q: %w", text, err)
	}
	p := &pattern{order: order, text: text}
	parts := literalParts(tree.Simplify(), nil)
	for i, part := range parts {
		if part == "" {
			continue
		}
		if i == 0 {
			p.prefix = part[:min(len(part), maxPatternKey)]
		}
		if i == len(parts)-1 {
			p.suffix = part[max(0, len(part)-maxPatternKey):]
		}
		if len(part) > len(p.infix) {
			p.infix = part
		}
	}
	return p, nil
}

func anchored(text string) string { return `^(?:` + text + `)$` }

// literalParts flattens the top-level sequence of an expression: literal text as it is, "" for everything else.
func literalParts(re *syntax.Regexp, parts []string) []string {
	switch re.Op {
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			parts = literalParts(sub, parts)
		}
		return parts
	case syntax.OpCapture:
		return literalParts(re.Sub[0], parts)
	case syntax.OpEmptyMatch:
		return parts
	case syntax.OpLiteral:
		if re.Flags&syntax.FoldCase == 0 {
			if n := len(parts); n > 0 && parts[n-1] != "" {
				parts[n-1] += string(re.Rune)
				return parts
			}
			return append(parts, string(re.Rune))
		}
	}
	return append(parts, "")
}

// belongTo says whose pattern it is. The pattern of a site that serves is that site's already, and stays untouched.
func (p *pattern) belongTo(s *site) {
	if p.number != s.plan.Number {
		p.number, p.createdAtMs, p.siteID = s.plan.Number, s.createdAtMs, s.plan.SiteID
	}
}

func (p *pattern) matches(host string) bool {
	if !strings.Contains(host, p.infix) {
		return false
	}
	p.once.Do(func() { p.re = regexp.MustCompile(anchored(p.text)) })
	return p.re.MatchString(host)
}

// Patterns are tried by creation time of their site, then by their place in it.
func comparePatterns(a, b *pattern) int {
	return cmp.Or(compareSites(a.createdAtMs, b.createdAtMs, a.siteID, b.siteID), cmp.Compare(a.order, b.order))
}

// patternIndex finds the few patterns that a host can match at all: they hang on their literal end, else on their
// literal start. Only patterns with neither are tried against every host that no other domain form matched.
type patternIndex struct {
	size       int
	ends       pmap.Map[[]*pattern]
	starts     pmap.Map[[]*pattern]
	endSizes   [maxPatternKey + 1]int32
	startSizes [maxPatternKey + 1]int32
	rest       []*pattern
}

func (x *patternIndex) add(e *exchange.Owner, p *pattern) {
	x.size++
	switch {
	case len(p.suffix) >= minPatternKey:
		list, _ := x.ends.Get(p.suffix)
		x.ends = x.ends.Set(e, p.suffix, withPattern(list, p))
		x.endSizes[len(p.suffix)]++
	case len(p.prefix) >= minPatternKey:
		list, _ := x.starts.Get(p.prefix)
		x.starts = x.starts.Set(e, p.prefix, withPattern(list, p))
		x.startSizes[len(p.prefix)]++
	default:
		x.rest = withPattern(x.rest, p)
	}
}

func (x *patternIndex) remove(e *exchange.Owner, p *pattern) {
	x.size--
	switch {
	case len(p.suffix) >= minPatternKey:
		x.ends = dropPattern(x.ends, e, p.suffix, p)
		x.endSizes[len(p.suffix)]--
	case len(p.prefix) >= minPatternKey:
		x.starts = dropPattern(x.starts, e, p.prefix, p)
		x.startSizes[len(p.prefix)]--
	default:
		x.rest = withoutPattern(x.rest, p)
	}
}

func dropPattern(m pmap.Map[[]*pattern], e *exchange.Owner, key string, p *pattern) pmap.Map[[]*pattern] {
	list, _ := m.Get(key)
	if list = withoutPattern(list, p); len(list) == 0 {
		return m.Delete(e, key)
	}
	return m.Set(e, key, list)
}

// withPattern and withoutPattern copy: readers may hold the list.
func withPattern(list []*pattern, p *pattern) []*pattern {
	i, _ := slices.BinarySearchFunc(list, p, comparePatterns)
	next := make([]*pattern, 0, len(list)+1)
	next = append(next, list[:i]...)
	next = append(next, p)
	return append(next, list[i:]...)
}

func withoutPattern(list []*pattern, p *pattern) []*pattern {
	next := make([]*pattern, 0, len(list))
	for _, other := range list {
		if other != p {
			next = append(next, other)
		}
	}
	return next
}

// find returns the number of the site with the first pattern, in the order of trying, that matches host; 0 for none.
func (x *patternIndex) find(host string) uint32 {
	if x.size == 0 {
		return 0
	}
	var best *pattern
	for n := minPatternKey; n <= min(maxPatternKey, len(host)); n++ {
		if x.endSizes[n] > 0 {
			list, _ := x.ends.Get(host[len(host)-n:])
			best = firstMatch(list, host, best)
		}
		if x.startSizes[n] > 0 {
			list, _ := x.starts.Get(host[:n])
			best = firstMatch(list, host, best)
		}
	}
	if best = firstMatch(x.rest, host, best); best == nil {
		return 0
	}
	return best.number
}

// firstMatch returns the first of list that matches and comes before best, else best.
func firstMatch(list []*pattern, host string, best *pattern) *pattern {
	for _, p := range list {
		if best != nil && comparePatterns(p, best) >= 0 {
			return best
		}
		if p.matches(host) {
			return p
		}
	}
	return best
}
