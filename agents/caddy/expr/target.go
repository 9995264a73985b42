package expr

import (
	"strings"
)

// A value that becomes a target is computed together with a mark for each byte: what came out of a decoded path is
// percent-encoded in the end (RFC 3986, sections 2.4 and 3.3), and what was written in the rule is not.
const (
	// plainMark is of what is written in a rule, or made by a function that leaves nothing of its subject.
	plainMark = '.'
	// decodedMark is of a decoded path.
	decodedMark = 'd'
	// rawMark is of a path that is encoded already.
	rawMark = 'r'
)

// marked computes a text and its marks, of the same length.
type marked func(Values) (text, marks string, failure Failure)

// marksOf are the same mark for each byte of a text.
func marksOf(text string, mark byte) string { return strings.Repeat(string(mark), len(text)) }

// markedValue makes a node of a value that was compiled before. It knows the functions that keep bytes of their subject.
func (c *compiler) markedValue(n *node) (marked, error) {
	switch {
	case n.op == opField && isOfPath(n.field):
		return c.markedField(n)
	case n.op == opCall:
		args := c.children(n)
		switch n.function {
		case concatFunction:
			return c.markedConcat(args)
		case lowerFunction, upperFunction, urlDecodeFunction, toStringFunction, substringFunction, regexReplaceFunction, wildcardReplaceFunction:
			if _, literal := c.literal(args[0], textKind); !literal && c.isText(args[0]) {
				return c.markedCall(n.function, args)
			}
		}
	}
	made, err := c.textArgument(n, 0)
	return func(v Values) (string, string, Failure) {
		text, failure := made(v)
		return text, marksOf(text, plainMark), failure
	}, err
}

func isOfPath(f Field) bool { return f == Path || f == PathExtension || f == RawPath }

// isText reports whether a field or call is a string.
func (c *compiler) isText(n *node) bool {
	if n.op == opField {
		return fields[n.field].kind == textKind
	}
	return n.op == opCall && functions[n.function].returns == textKind
}

func (c *compiler) markedField(n *node) (marked, error) {
	field := n.field
	mark := byte(decodedMark)
	if field == RawPath {
		mark = rawMark
	}
	return func(v Values) (string, string, Failure) {
		text := v.Text(field, "")
		return text, marksOf(text, mark), 0
	}, nil
}

func (c *compiler) markedConcat(args []*node) (marked, error) {
	var parts []marked
	for _, arg := range args {
		part, err := c.markedValue(arg)
		if err != nil {
			return nil, err
		}
		parts = append(parts, part)
	}
	return func(v Values) (string, string, Failure) {
		var text, marks strings.Builder
		for _, part := range parts {
			t, m, failure := part(v)
			if failure != 0 {
				return "", "", failure
			}
			text.WriteString(t)
			marks.WriteString(m)
		}
		return withinLimit(text.String(), marks.String(), 0)
	}, nil
}

func withinLimit(text, marks string, failure Failure) (string, string, Failure) {
	if failure == 0 && len(text) > maxResultBytes {
		return "", "", ResultTooLong
	}
	return text, marks, failure
}

// markedCall makes a function of one string that keeps bytes of it.
func (c *compiler) markedCall(f function, args []*node) (marked, error) {
	subject, err := c.markedValue(args[0])
	if err != nil {
		return nil, err
	}
	change, err := c.markedChange(f, args)
	if err != nil {
		return nil, err
	}
	return func(v Values) (string, string, Failure) {
		text, marks, failure := subject(v)
		if failure != 0 {
			return "", "", failure
		}
		return withinLimit(change(text, marks))
	}, nil
}

func (c *compiler) markedChange(f function, args []*node) (func(text, marks string) (string, string, Failure), error) {
	switch f {
	case substringFunction:
		cut, err := c.cutting(args)
		return func(text, marks string) (string, string, Failure) {
			text, failure := cut(text)
			marks, _ = cut(marks)
			return text, marks, failure
		}, err
	case regexReplaceFunction:
		source, _ := c.literal(args[1], textKind)
		with, _ := c.literal(args[2], textKind)
		p, err := patternOf(source.text)
		if err != nil {
			return nil, err
		}
		put, err := parseReplacement(with.text, p.groups)
		marksPut := put.marks()
		return func(text, marks string) (string, string, Failure) {
			e := p.affordable(len(text))
			if e == nil {
				return "", "", PatternBudget
			}
			at := e.find(text)
			if at == nil {
				return text, marks, 0
			}
			made, failure := put.inPlaceOf(text, at)
			madeMarks, _ := marksPut.inPlaceOf(marks, at)
			return made, madeMarks, failure
		}, err
	case wildcardReplaceFunction:
		glob, _ := c.literal(args[1], textKind)
		with, _ := c.literal(args[2], textKind)
		w, err := parseWildcard(glob.text, len(args) == 4)
		if err != nil {
			return nil, err
		}
		put, err := parseReplacement(with.text, len(w.parts)-1)
		marksPut := put.marks()
		return func(text, marks string) (string, string, Failure) {
			var found stars
			if !w.match(text, &found) {
				return text, marks, 0
			}
			made, failure := put.ofStars(text, &found)
			madeMarks, _ := marksPut.ofStars(marks, &found)
			return made, madeMarks, failure
		}, err
	case urlDecodeFunction:
		return func(text, marks string) (string, string, Failure) {
			decoded := urlDecode(text)
			if strings.ContainsAny(marks, string([]byte{decodedMark, rawMark})) {
				return decoded, marksOf(decoded, decodedMark), 0
			}
			return decoded, marksOf(decoded, plainMark), 0
		}, nil
	}
	made := plain[f]
	if made == nil {
		made = func(s string) string { return s }
	}
	return func(text, marks string) (string, string, Failure) { return made(text), marks, 0 }, nil
}

// marks is the replacement of the marks: each text of it is plain.
func (r replacement) marks() replacement {
	marks := make(replacement, len(r))
	for i, part := range r {
		marks[i] = replacementPart{text: marksOf(part.text, plainMark), capture: part.capture}
	}
	return marks
}

// TargetFor computes the target of a redirect, or the encoded path of a rewrite. What comes of a decoded path is
// percent-encoded; one that cannot be used fails.
func (e *Value) TargetFor(use Use, v Values) (string, Failure) {
	var text, marks string
	var failure Failure
	if e.marked != nil {
		text, marks, failure = e.marked(v)
	} else if text, failure = e.text(v); failure == 0 {
		marks = marksOf(text, plainMark)
	}
	if failure != 0 {
		return "", failure
	}
	return encodedTarget(use, text, marks)
}

// EncodedTarget is a target that is written in a rule, as TargetFor has it.
func EncodedTarget(use Use, text string) (string, Failure) {
	return encodedTarget(use, text, marksOf(text, plainMark))
}

func encodedTarget(use Use, text, marks string) (string, Failure) {
	b := make([]byte, 0, len(text)+16)
	inQuery := false
	for i := range len(text) {
		c := text[i]
		switch mark := marks[i]; {
		case mark == plainMark && use == ForRedirect:
			if notInTarget(c) {
				return "", UnusableResult
			}
			inQuery = c != '#' && (inQuery || c == '?')
			b = append(b, c)
		case mark == plainMark && (isControl(c) || c == '\\'):
			return "", UnusableResult
		case mark == rawMark && c == '%', isPathByte(c) && !(mark == decodedMark && inQuery && dividesQuery(c)):
			b = append(b, c)
		default:
			const digits = "0123456789ABCDEF"
			b = append(b, '%', digits[c>>4], digits[c&15])
		}
	}
	encoded := string(b)
	if !isPath(encoded) && (use == ForRewrite || !isURL(encoded)) {
		return "", UnusableResult
	}
	return encoded, 0
}

// isPathByte names the bytes that stand for themselves in a path (RFC 3986, section 3.3).
func isPathByte(c byte) bool {
	return isPlainByte(c) || strings.IndexByte("!$&'()*+,;=:@/", c) >= 0
}

func isPlainByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-._~", c) >= 0
}

// dividesQuery names the bytes that end or divide a parameter of a query, or stand for another byte there.
func dividesQuery(c byte) bool { return strings.IndexByte("&;=+", c) >= 0 }
