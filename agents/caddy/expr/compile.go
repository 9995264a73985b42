package expr

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	configv1 "edge.svc/caddy/gen/svc/config/v1"
)

type (
	predicate func(Values) (bool, Failure)
	text      func(Values) (string, Failure)
	number    func(Values) (int64, Failure)
)

const (
	opAnd            = configOp(configv1.ExpressionOp_EXPRESSION_OP_AND)
	opOr             = configOp(configv1.ExpressionOp_EXPRESSION_OP_OR)
	opNot            = configOp(configv1.ExpressionOp_EXPRESSION_OP_NOT)
	opLiteral        = configOp(configv1.ExpressionOp_EXPRESSION_OP_LITERAL)
	opField          = configOp(configv1.ExpressionOp_EXPRESSION_OP_FIELD)
	opCall           = configOp(configv1.ExpressionOp_EXPRESSION_OP_CALL)
	opEq             = configOp(configv1.ExpressionOp_EXPRESSION_OP_EQ)
	opNe             = configOp(configv1.ExpressionOp_EXPRESSION_OP_NE)
	opLt             = configOp(configv1.ExpressionOp_EXPRESSION_OP_LT)
	opLe             = configOp(configv1.ExpressionOp_EXPRESSION_OP_LE)
	opGt             = configOp(configv1.ExpressionOp_EXPRESSION_OP_GT)
	opGe             = configOp(configv1.ExpressionOp_EXPRESSION_OP_GE)
	opContains       = configOp(configv1.ExpressionOp_EXPRESSION_OP_CONTAINS)
	opMatches        = configOp(configv1.ExpressionOp_EXPRESSION_OP_MATCHES)
	opWildcard       = configOp(configv1.ExpressionOp_EXPRESSION_OP_WILDCARD)
	opStrictWildcard = configOp(configv1.ExpressionOp_EXPRESSION_OP_STRICT_WILDCARD)
	opIn             = configOp(configv1.ExpressionOp_EXPRESSION_OP_IN)
	opInList         = configOp(configv1.ExpressionOp_EXPRESSION_OP_IN_LIST)
	// One more than the last.
	opEnd = opInList + 1
)

var (
	errCondition = errors.New("the expression lacks a condition where one must be")
	errValue     = errors.New("the expression lacks a string where one must be")
	errChildren  = errors.New("the expression has an operation with wrong children, names or values")
	errName      = errors.New("the expression has a name that its field cannot have")
	errType      = errors.New("the expression compares values that its operator cannot compare")
	errSorted    = errors.New("the expression has a set that is empty, unsorted, or has a value twice")
	errArgument  = errors.New("the expression has a function with wrong arguments")
	errNesting   = fmt.Errorf("the expression nests functions more than %d deep", maxFunctionNesting)
	errValueOnly = errors.New("the expression has a function where it is not allowed, or a second time")
)

// compiler checks the tree while it makes closures. How deep it calls itself is bounded by the decoder.
type compiler struct {
	tree *Tree
	// Whether functions that stand in value expressions only may be there.
	value bool
	reads Reads
	// Bit per function that stands once in an expression.
	once uint32
}

// operand is what a comparison or function takes; what its kind names is there.
type operand struct {
	kind kind
	// Of a field as it is; conditions that rules often have ask for it at once instead of by another closure.
	field   Field
	name    string
	text    text
	number  number
	truth   predicate
	address func(Values) netip.Addr
}

func (c *compiler) valuesOf(n *node) []value { return c.tree.values[n.valueAt:n.valueEnd] }

func (c *compiler) children(n *node) []*node {
	var children []*node
	for at := n.first; at != 0; at = c.tree.nodes[at].next {
		children = append(children, &c.tree.nodes[at])
	}
	return children
}

// has reports whether a node has what its operation needs, and nothing besides.
func (n *node) has(fielded, called bool, children bool, values int) bool {
	named := n.op == opInList || n.field != noField && fields[n.field].naming != unnamed
	return (n.field != noField) == fielded && (n.function != noFunction) == called &&
		(n.first != 0) == children && int(n.valueEnd-n.valueAt) == values && (n.name != "") == named
}

func (c *compiler) condition(n *node) (predicate, error) {
	switch n.op {
	case opAnd, opOr:
		return c.logic(n)
	case opNot:
		if !n.has(false, false, true, 0) || c.tree.nodes[n.first].next != 0 {
			return nil, errChildren
		}
		child, err := c.condition(&c.tree.nodes[n.first])
		return func(v Values) (bool, Failure) {
			holds, failure := child(v)
			return !holds, failure
		}, err
	case opLiteral:
		if !n.has(false, false, false, 1) || c.valuesOf(n)[0].kind != truthKind {
			return nil, errCondition
		}
		holds := c.valuesOf(n)[0].number != 0
		return func(Values) (bool, Failure) { return holds, 0 }, nil
	case opCall:
		called, err := c.call(n, 1)
		if err == nil && called.kind != truthKind {
			err = errCondition
		}
		return called.truth, err
	case opField:
		return nil, errCondition
	}
	return c.comparison(n)
}

func (c *compiler) logic(n *node) (predicate, error) {
	if !n.has(false, false, true, 0) || c.tree.nodes[n.first].next == 0 {
		return nil, errChildren
	}
	var children []predicate
	for _, child := range c.children(n) {
		made, err := c.condition(child)
		if err != nil {
			return nil, err
		}
		children = append(children, made)
	}
	// What decides without looking at the rest.
	decides := n.op == opOr
	return func(v Values) (bool, Failure) {
		for _, child := range children {
			if holds, failure := child(v); failure != 0 || holds == decides {
				return holds, failure
			}
		}
		return !decides, 0
	}, nil
}

func (c *compiler) valueExpression(n *node) (text, error) {
	if n.op == opLiteral {
		if !n.has(false, false, false, 1) || c.valuesOf(n)[0].kind != textKind {
			return nil, errValue
		}
		literal := c.valuesOf(n)[0].text
		return func(Values) (string, Failure) { return literal, 0 }, nil
	}
	made, err := c.operandOf(n, 1)
	if err == nil && made.kind != textKind {
		err = errValue
	}
	return made.text, err
}

// operandOf makes a field, or a call that is so deep in others.
func (c *compiler) operandOf(n *node, depth int) (operand, error) {
	switch n.op {
	case opField:
		if !n.has(true, false, false, 0) {
			return operand{}, errChildren
		}
		return c.field(n)
	case opCall:
		return c.call(n, depth)
	}
	return operand{}, errArgument
}

// fieldKey is the name in the brackets of a field, as Values are asked for it.
func fieldKey(n *node) string {
	if fields[n.field].naming == headerName {
		return http.CanonicalHeaderKey(n.name)
	}
	return n.name
}

func (c *compiler) field(n *node) (operand, error) {
	field, name, spec := n.field, fieldKey(n), fields[n.field]
	if !spec.naming.accepts(n.name) {
		return operand{}, errName
	}
	c.reads.fields |= 1 << field
	made := operand{kind: spec.kind, field: field, name: name}
	switch spec.kind {
	case textKind:
		made.text = func(v Values) (string, Failure) { return v.Text(field, name), 0 }
	case numberKind:
		made.number = func(v Values) (int64, Failure) { return v.Number(field), 0 }
	case truthKind:
		made.truth = func(v Values) (bool, Failure) { return v.Truth(field), 0 }
	case addressKind:
		made.address = func(v Values) netip.Addr { return v.Address(field) }
	}
	return made, nil
}

// subject makes the field that a comparison names, or the call below it.
func (c *compiler) subject(n *node, values int) (operand, error) {
	if n.has(true, false, false, values) {
		return c.field(n)
	}
	if !n.has(false, false, true, values) || c.tree.nodes[n.first].op != opCall || c.tree.nodes[n.first].next != 0 {
		return operand{}, errChildren
	}
	return c.call(&c.tree.nodes[n.first], 1)
}

func (c *compiler) comparison(n *node) (predicate, error) {
	literals := c.valuesOf(n)
	if n.op == opInList {
		return c.inList(n)
	}
	if n.op == opIn && len(literals) == 0 {
		return nil, errSorted
	}
	if n.op != opIn && len(literals) != 1 {
		return nil, errChildren
	}
	subject, err := c.subject(n, len(literals))
	if err != nil {
		return nil, err
	}
	for _, literal := range literals {
		if literal.kind != subject.kind {
			return nil, errType
		}
	}
	switch n.op {
	case opEq, opNe, opIn:
		return equality(n.op, subject, literals)
	case opLt, opLe, opGt, opGe:
		if subject.kind != numberKind {
			return nil, errType
		}
		return ordered(n.op, subject.number, literals[0].number), nil
	}
	if subject.kind != textKind {
		return nil, errType
	}
	return ofStrings(n.op, subject.text, literals[0].text)
}

func (c *compiler) inList(n *node) (predicate, error) {
	if !n.has(true, false, false, 0) || fields[n.field].kind != addressKind || len(n.name) > maxListID {
		return nil, errChildren
	}
	field, list := n.field, n.name
	c.reads.fields |= 1 << field
	if !slices.Contains(c.reads.lists, list) {
		c.reads.lists = append(c.reads.lists, list)
	}
	return func(v Values) (bool, Failure) {
		address := v.Address(field)
		return address.IsValid() && v.Contains(list, address), 0
	}, nil
}

// call makes a function that is so deep in others.
func (c *compiler) call(n *node, depth int) (operand, error) {
	if depth > maxFunctionNesting {
		return operand{}, errNesting
	}
	if !n.has(false, true, true, 0) {
		return operand{}, errChildren
	}
	spec := functions[n.function]
	if spec.valueOnly {
		if !c.value || c.once&(1<<n.function) != 0 {
			return operand{}, errValueOnly
		}
		c.once |= 1 << n.function
	}
	args := c.children(n)
	if len(args) < spec.least || len(args) > spec.most {
		return operand{}, errArgument
	}
	switch n.function {
	case lenFunction, startsWithFunction, endsWithFunction:
		return c.measuring(n.function, args, depth)
	}
	made, err := c.making(n.function, args, depth)
	if err != nil {
		return operand{}, err
	}
	return operand{kind: textKind, text: func(v Values) (string, Failure) {
		result, failure := made(v)
		if failure == 0 && len(result) > maxResultBytes {
			return "", ResultTooLong
		}
		return result, failure
	}}, nil
}

// measuring makes the functions whose result is no string.
func (c *compiler) measuring(f function, args []*node, depth int) (operand, error) {
	s, err := c.textArgument(args[0], depth)
	if err != nil {
		return operand{}, err
	}
	if f == lenFunction {
		return operand{kind: numberKind, number: func(v Values) (int64, Failure) {
			of, failure := s(v)
			return int64(len(of)), failure
		}}, nil
	}
	part, err := c.textArgument(args[1], depth)
	if err != nil {
		return operand{}, err
	}
	if literal, ok := c.literal(args[1], textKind); ok && args[0].op == opField {
		return operand{kind: truthKind, truth: borderedField(f, args[0], literal.text)}, nil
	}
	has := strings.HasPrefix
	if f == endsWithFunction {
		has = strings.HasSuffix
	}
	return operand{kind: truthKind, truth: func(v Values) (bool, Failure) {
		of, failure := s(v)
		if failure != 0 {
			return false, failure
		}
		sought, failure := part(v)
		return failure == 0 && has(of, sought), failure
	}}, nil
}

// borderedField makes starts_with and ends_with of a checked field and a literal, which rules often have.
func borderedField(f function, n *node, literal string) predicate {
	field, name := n.field, fieldKey(n)
	if f == endsWithFunction {
		return func(v Values) (bool, Failure) { return strings.HasSuffix(v.Text(field, name), literal), 0 }
	}
	return func(v Values) (bool, Failure) { return strings.HasPrefix(v.Text(field, name), literal), 0 }
}

// making makes the functions whose result is a string.
func (c *compiler) making(f function, args []*node, depth int) (text, error) {
	if f == concatFunction {
		return c.concat(args, depth)
	}
	if f == toStringFunction {
		return c.toString(args[0], depth)
	}
	s, err := c.textArgument(args[0], depth)
	if err != nil {
		return nil, err
	}
	var change func(string) (string, Failure)
	switch f {
	case substringFunction:
		change, err = c.cutting(args)
	case regexReplaceFunction:
		change, err = c.regexReplace(args)
	case wildcardReplaceFunction:
		change, err = c.wildcardReplace(args)
	default:
		made := plain[f]
		change = func(s string) (string, Failure) { return made(s), 0 }
	}
	return func(v Values) (string, Failure) {
		of, failure := s(v)
		if failure != 0 {
			return "", failure
		}
		return change(of)
	}, err
}

// textArgument makes a string: a literal, a field, or a call one deeper.
func (c *compiler) textArgument(n *node, depth int) (text, error) {
	if literal, ok := c.literal(n, textKind); ok {
		return func(Values) (string, Failure) { return literal.text, 0 }, nil
	}
	made, err := c.operandOf(n, depth+1)
	if err == nil && made.kind != textKind {
		err = errArgument
	}
	return made.text, err
}

func (c *compiler) literal(n *node, kind kind) (value, bool) {
	if n.op != opLiteral || !n.has(false, false, false, 1) || c.valuesOf(n)[0].kind != kind {
		return value{}, false
	}
	return c.valuesOf(n)[0], true
}

func (c *compiler) concat(args []*node, depth int) (text, error) {
	var parts []text
	for _, arg := range args {
		part, err := c.textArgument(arg, depth)
		if err != nil {
			return nil, err
		}
		parts = append(parts, part)
	}
	return func(v Values) (string, Failure) {
		var all [8]string
		for i, part := range parts {
			var failure Failure
			if all[i], failure = part(v); failure != 0 {
				return "", failure
			}
		}
		return strings.Join(all[:len(parts)], ""), 0
	}, nil
}

func (c *compiler) toString(arg *node, depth int) (text, error) {
	if _, ok := c.literal(arg, textKind); ok {
		return c.textArgument(arg, depth)
	}
	of, err := c.operandOf(arg, depth+1)
	if err != nil {
		return nil, err
	}
	switch of.kind {
	case numberKind:
		return func(v Values) (string, Failure) {
			n, failure := of.number(v)
			return fmt.Sprint(n), failure
		}, nil
	case truthKind:
		return func(v Values) (string, Failure) {
			truth, failure := of.truth(v)
			return fmt.Sprint(truth), failure
		}, nil
	case addressKind:
		return func(v Values) (string, Failure) {
			if address := of.address(v); address.IsValid() {
				return address.String(), 0
			}
			return "", 0
		}, nil
	}
	return of.text, nil
}

func (c *compiler) cutting(args []*node) (func(string) (string, Failure), error) {
	start, ok := c.literal(args[1], numberKind)
	length := value{number: maxNumber}
	if len(args) == 3 {
		var third bool
		length, third = c.literal(args[2], numberKind)
		ok = ok && third && length.number >= 0 && length.number <= maxSubstring
	}
	if !ok || start.number < -maxSubstring || start.number > maxSubstring {
		return nil, errArgument
	}
	return func(s string) (string, Failure) { return substring(s, int(start.number), int(length.number)), 0 }, nil
}

func (c *compiler) regexReplace(args []*node) (func(string) (string, Failure), error) {
	source, ok := c.literal(args[1], textKind)
	with, okToo := c.literal(args[2], textKind)
	if !ok || !okToo {
		return nil, errArgument
	}
	p, err := patternOf(source.text)
	if err != nil {
		return nil, err
	}
	put, err := parseReplacement(with.text, p.groups)
	return func(s string) (string, Failure) { return p.replace(s, put) }, err
}

func (c *compiler) wildcardReplace(args []*node) (func(string) (string, Failure), error) {
	glob, ok := c.literal(args[1], textKind)
	with, okToo := c.literal(args[2], textKind)
	if !ok || !okToo {
		return nil, errArgument
	}
	if len(args) == 4 {
		if flags, ok := c.literal(args[3], textKind); !ok || flags.text != "s" {
			return nil, errArgument
		}
	}
	w, err := parseWildcard(glob.text, len(args) == 4)
	if err != nil {
		return nil, err
	}
	put, err := parseReplacement(with.text, len(w.parts)-1)
	return func(s string) (string, Failure) { return w.replace(s, put) }, err
}
