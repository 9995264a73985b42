// Package ruletest builds rules and their expressions as the console sends them, for tests.
package ruletest

import (
	"strings"

	"google.golang.org/protobuf/proto"

	configv1 "edge.svc/caddy/gen/svc/config/v1"
)

// Node is a part of an expression.
type Node = *configv1.ExpressionNode

// Encode is an expression as rules carry it.
func Encode(root Node) []byte {
	encoded, err := proto.MarshalOptions{Deterministic: true}.Marshal(&configv1.Expression{Version: 1, Root: root})
	if err != nil {
		panic(err)
	}
	return encoded
}

// True always holds.
func True() Node { return Literal(true) }

// Literal is a string, whole number or boolean.
func Literal(v any) Node {
	return &configv1.ExpressionNode{Op: configv1.ExpressionOp_EXPRESSION_OP_LITERAL, Values: []*configv1.ExpressionValue{valueOf(v)}}
}

// Field is a field by its name, as "http.host" or "http.request.headers[x-a]".
func Field(name string) Node { return named(configv1.ExpressionOp_EXPRESSION_OP_FIELD, name) }

func named(op configv1.ExpressionOp, name string) Node {
	field, of, _ := strings.Cut(strings.TrimSuffix(name, "]"), "[")
	return &configv1.ExpressionNode{Op: op, Field: field, Name: of}
}

// Compare compares a field with a value, a CIDR where the field is an address.
func Compare(op configv1.ExpressionOp, field string, v any) Node {
	n := named(op, field)
	if text, ok := v.(string); ok && strings.HasPrefix(field, "ip.") && !strings.HasPrefix(field, "ip.geoip") {
		n.Values = []*configv1.ExpressionValue{{Value: &configv1.ExpressionValue_Cidr{Cidr: text}}}
	} else {
		n.Values = []*configv1.ExpressionValue{valueOf(v)}
	}
	return n
}

// Eq compares a field with a value for equality.
func Eq(field string, v any) Node { return Compare(configv1.ExpressionOp_EXPRESSION_OP_EQ, field, v) }

// InList finds an address on a list by the list's id.
func InList(field, list string) Node {
	return &configv1.ExpressionNode{Op: configv1.ExpressionOp_EXPRESSION_OP_IN_LIST, Field: field, ListId: list}
}

// Not is true where the other is not.
func Not(n Node) Node {
	return &configv1.ExpressionNode{Op: configv1.ExpressionOp_EXPRESSION_OP_NOT, Children: []Node{n}}
}

// And holds where all do.
func And(all ...Node) Node {
	return &configv1.ExpressionNode{Op: configv1.ExpressionOp_EXPRESSION_OP_AND, Children: all}
}

// Or holds where one does.
func Or(all ...Node) Node {
	return &configv1.ExpressionNode{Op: configv1.ExpressionOp_EXPRESSION_OP_OR, Children: all}
}

// Call calls a function; strings are literals.
func Call(function string, arguments ...any) Node {
	n := &configv1.ExpressionNode{Op: configv1.ExpressionOp_EXPRESSION_OP_CALL, Function: function}
	for _, argument := range arguments {
		node, ok := argument.(Node)
		if !ok {
			node = Literal(argument)
		}
		n.Children = append(n.Children, node)
	}
	return n
}

func valueOf(v any) *configv1.ExpressionValue {
	switch v := v.(type) {
	case string:
		return &configv1.ExpressionValue{Value: &configv1.ExpressionValue_Text{Text: []byte(v)}}
	case int:
		return &configv1.ExpressionValue{Value: &configv1.ExpressionValue_Number{Number: int64(v)}}
	case bool:
		return &configv1.ExpressionValue{Value: &configv1.ExpressionValue_Truth{Truth: v}}
	}
	panic("no value of the language")
}
