package expr

import (
	"errors"
	"fmt"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

// Of the language; a newer one may mean something else by the same tree.
const version = 1

// Numbers of fields in svc.config.v1.
const (
	expressionVersion protowire.Number = 1
	expressionRoot    protowire.Number = 2

	nodeOp       protowire.Number = 1
	nodeField    protowire.Number = 2
	nodeName     protowire.Number = 3
	nodeFunction protowire.Number = 4
	nodeListID   protowire.Number = 5
	nodeChildren protowire.Number = 6
	nodeValues   protowire.Number = 7

	valueText   protowire.Number = 1
	valueNumber protowire.Number = 2
	valueTruth  protowire.Number = 3
	valueCidr   protowire.Number = 4
)

// Tree is a decoded expression: within the bounds, of known words, its types not yet checked.
type Tree struct {
	// The root, then every node before its children.
	nodes  []node
	values []value
}

// node names its first child and the sibling after it by their indices; 0 is none.
type node struct {
	op          configOp
	field       Field
	function    function
	first, next uint16
	// Its values, in the tree's.
	valueAt, valueEnd uint32
	// Name of a header, cookie or parameter, or id of a list.
	name string
}

type configOp = uint8

// value is a literal: text of a string or CIDR, a number, or a boolean as 0 or 1.
type value struct {
	kind   kind
	number int64
	text   string
}

var (
	errMalformed = errors.New("the expression is malformed")
	errDepth     = fmt.Errorf("the expression is more than %d nodes deep", maxDepth)
	errNodes     = fmt.Errorf("the expression has more than %d nodes", maxNodes)
	errLong      = fmt.Errorf("the expression has a string of more than %d bytes", maxStringBytes)
	errSet       = fmt.Errorf("the expression has a set of more than %d values", maxSetValues)
	errVersion   = errors.New("the expression has a version that this node does not know")
	errOp        = errors.New("the expression has an operation that this node does not know")
	errField     = errors.New("the expression has a field that this node does not know")
	errFunction  = errors.New("the expression has a function that this node does not know")
)

// Decode reads the encoding of svc.config.v1.Expression as the console writes it: fields in the order of their numbers,
// none that is not known. The input is measured before anything is built, and is not kept.
func Decode(input []byte) (*Tree, error) {
	d := decoder{}
	if err := d.expression(input); err != nil {
		return nil, err
	}
	tree := &Tree{nodes: make([]node, 0, d.countedNodes), values: make([]value, 0, d.countedValues)}
	d = decoder{tree: tree}
	if err := d.expression(input); err != nil {
		return nil, err
	}
	return tree, nil
}

// decoder goes over the input twice: first it only checks and counts, then it has a tree to fill.
type decoder struct {
	tree          *Tree
	countedNodes  int
	countedValues int
}

func (d *decoder) expression(input []byte) error {
	known, rooted := false, false
	err := eachField(input, func(number protowire.Number, v uint64, content []byte) error {
		switch {
		case number == expressionVersion && content == nil:
			if v != version {
				return errVersion
			}
			known = true
			return nil
		case number == expressionRoot && content != nil && known && !rooted:
			rooted = true
			_, err := d.node(content, 1)
			return err
		}
		return errMalformed
	})
	if err == nil && !rooted {
		err = errMalformed
		if !known {
			err = errVersion
		}
	}
	return err
}

// node reads a node and answers its index in the tree that is filled.
func (d *decoder) node(input []byte, depth int) (uint16, error) {
	if depth > maxDepth {
		return 0, errDepth
	}
	if d.countedNodes++; d.countedNodes > maxNodes {
		return 0, errNodes
	}
	var n node
	index := uint16(d.countedNodes - 1)
	if d.tree != nil {
		d.tree.nodes = append(d.tree.nodes, node{})
	}
	last := uint16(0)
	values := 0
	n.valueAt = uint32(d.countedValues)
	err := eachField(input, func(number protowire.Number, v uint64, content []byte) error {
		if (number == nodeOp) != (content == nil) {
			return errMalformed
		}
		switch number {
		case nodeOp:
			if v == 0 || v >= uint64(opEnd) {
				return errOp
			}
			n.op = configOp(v)
			return nil
		case nodeField:
			n.field = fieldByName[string(content)]
			return unless(n.field != noField, errField)
		case nodeFunction:
			n.function = functionByName[string(content)]
			return unless(n.function != noFunction, errFunction)
		case nodeName, nodeListID:
			if len(content) == 0 || len(content) > max(maxName, maxListID) || n.name != "" {
				return errMalformed
			}
			if (number == nodeListID) != (n.op == opInList) || !utf8.Valid(content) {
				return errMalformed
			}
			if d.tree == nil {
				// Known to be there is enough to refuse a second one.
				n.name = "-"
				return nil
			}
			n.name = string(content)
			return nil
		case nodeChildren:
			child, err := d.node(content, depth+1)
			if err != nil || d.tree == nil {
				return err
			}
			if last == 0 {
				n.first = child
			} else {
				d.tree.nodes[last].next = child
			}
			last = child
			n.valueAt = uint32(d.countedValues)
			return nil
		case nodeValues:
			if values++; values > maxSetValues {
				return errSet
			}
			return d.value(content)
		}
		return errMalformed
	})
	if err != nil {
		return 0, err
	}
	if n.op == 0 {
		return 0, errOp
	}
	n.valueEnd = uint32(d.countedValues)
	if d.tree != nil {
		d.tree.nodes[index] = n
	}
	return index, nil
}

func (d *decoder) value(input []byte) error {
	d.countedValues++
	var read value
	err := eachField(input, func(number protowire.Number, v uint64, content []byte) error {
		if read.kind != 0 || (number == valueText || number == valueCidr) != (content != nil) {
			return errMalformed
		}
		switch number {
		case valueText, valueCidr:
			if len(content) > maxStringBytes {
				return errLong
			}
			read.kind = textKind
			if number == valueCidr {
				read.kind = addressKind
				if len(content) > maxName {
					return errMalformed
				}
			}
			if d.tree != nil {
				read.text = string(content)
			}
		case valueNumber:
			read.kind, read.number = numberKind, protowire.DecodeZigZag(v)
			if read.number < -maxNumber || read.number > maxNumber {
				return errMalformed
			}
		case valueTruth:
			read.kind, read.number = truthKind, int64(v)
			if v > 1 {
				return errMalformed
			}
		default:
			return errMalformed
		}
		return nil
	})
	if err == nil && read.kind == 0 {
		err = errMalformed
	}
	if err == nil && d.tree != nil {
		d.tree.values = append(d.tree.values, read)
	}
	return err
}

// eachField calls take for every field of a message in turn, with a number, or with bytes, which then are not nil. Field
// numbers never fall, and only those of children and values come again: readers see to that.
func eachField(input []byte, take func(number protowire.Number, v uint64, content []byte) error) error {
	previous := protowire.Number(0)
	for len(input) > 0 {
		number, wire, n := protowire.ConsumeTag(input)
		if n < 0 || number < previous || number == previous && number != nodeChildren && number != nodeValues {
			return errMalformed
		}
		previous, input = number, input[n:]
		var v uint64
		var content []byte
		switch wire {
		case protowire.VarintType:
			v, n = protowire.ConsumeVarint(input)
		case protowire.BytesType:
			if content, n = protowire.ConsumeBytes(input); content == nil {
				content = []byte{}
			}
		default:
			return errMalformed
		}
		if n < 0 {
			return errMalformed
		}
		input = input[n:]
		if err := take(number, v, content); err != nil {
			return err
		}
	}
	return nil
}

func unless(ok bool, err error) error {
	if ok {
		return nil
	}
	return err
}
