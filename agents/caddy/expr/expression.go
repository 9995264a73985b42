package expr

import "net/netip"

// Values are what a request is, for the fields of the language. Strings are bytes, UTF-8 or not. What is missing is "", 0,
// false, or the zero address, which is in no range and in no list.
type Values interface {
	// Text is asked for fields of strings. The name of a header is in the form that net/http has for its keys; names of
	// cookies and parameters are as they were written; other fields have none.
	Text(field Field, name string) string
	Number(field Field) int64
	Truth(field Field) bool
	// Address answers one without a zone, and an IPv4 one never in the form of an IPv6 one.
	Address(field Field) netip.Addr
	Lists
}

// Lists are the IP lists that rules name.
type Lists interface {
	// Contains reports whether the list of this id has the address.
	Contains(list string, address netip.Addr) bool
}

// Failure says why an evaluation has no result; 0 when it has one.
type Failure uint8

const (
	// ResultTooLong: a function made more than 8192 bytes.
	ResultTooLong Failure = iota + 1
	// PatternBudget: a pattern costs too much on this value, or in memory.
	PatternBudget
	// UnusableResult: the value cannot be put where it is for.
	UnusableResult
)

// String is the name that the console has for a failure.
func (f Failure) String() string {
	switch f {
	case ResultTooLong:
		return "result_too_long"
	case PatternBudget:
		return "pattern_budget"
	case UnusableResult:
		return "unusable_result"
	}
	return ""
}

// Reads is what an expression asks of a request.
type Reads struct {
	fields uint64
	lists  []string
}

// Field reports whether the expression reads a field, evaluated or not.
func (r *Reads) Field(field Field) bool { return r.fields&(1<<field) != 0 }

// Response reports whether it reads what only a response has.
func (r *Reads) Response() bool {
	for field, spec := range fields {
		if spec.response && r.Field(Field(field)) {
			return true
		}
	}
	return false
}

// Lists are the ids of the IP lists it names, each once.
func (r *Reads) Lists() []string { return r.lists }

// Condition is true or false for a request.
type Condition struct {
	Reads
	holds predicate
}

// Holds evaluates the condition from left to right, as far as needed.
func (c *Condition) Holds(v Values) (bool, Failure) { return c.holds(v) }

// Value is a string of bytes for a request.
type Value struct {
	Reads
	text text
	// marked is nil where nothing of a path is in the value.
	marked marked
}

// Bytes computes the value.
func (e *Value) Bytes(v Values) (string, Failure) { return e.text(v) }

// BytesFor computes the value for its use; one that cannot be used there fails.
func (e *Value) BytesFor(use Use, v Values) (string, Failure) {
	result, failure := e.text(v)
	if failure == 0 && !use.Accepts(result) {
		return "", UnusableResult
	}
	return result, failure
}

// CompileCondition checks a tree and makes a condition of it.
func CompileCondition(tree *Tree) (*Condition, error) {
	c := compiler{tree: tree}
	holds, err := c.condition(&tree.nodes[0])
	if err != nil {
		return nil, err
	}
	return &Condition{c.reads, holds}, nil
}

// CompileValue checks a tree and makes a value expression of it.
func CompileValue(tree *Tree) (*Value, error) {
	c := compiler{tree: tree, value: true}
	made, err := c.valueExpression(&tree.nodes[0])
	if err != nil {
		return nil, err
	}
	value := &Value{c.reads, made, nil}
	if value.Field(Path) || value.Field(PathExtension) || value.Field(RawPath) {
		again := compiler{tree: tree, value: true}
		value.marked, err = again.markedValue(&tree.nodes[0])
	}
	return value, err
}
