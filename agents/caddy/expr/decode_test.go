package expr

import (
	"runtime"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	configv1 "edge.svc/caddy/gen/svc/config/v1"
)

const (
	and    = configv1.ExpressionOp_EXPRESSION_OP_AND
	not    = configv1.ExpressionOp_EXPRESSION_OP_NOT
	is     = configv1.ExpressionOp_EXPRESSION_OP_LITERAL
	read   = configv1.ExpressionOp_EXPRESSION_OP_FIELD
	run    = configv1.ExpressionOp_EXPRESSION_OP_CALL
	eq     = configv1.ExpressionOp_EXPRESSION_OP_EQ
	gt     = configv1.ExpressionOp_EXPRESSION_OP_GT
	has    = configv1.ExpressionOp_EXPRESSION_OP_CONTAINS
	find   = configv1.ExpressionOp_EXPRESSION_OP_MATCHES
	glob   = configv1.ExpressionOp_EXPRESSION_OP_WILDCARD
	oneOf  = configv1.ExpressionOp_EXPRESSION_OP_IN
	listed = configv1.ExpressionOp_EXPRESSION_OP_IN_LIST
)

type (
	n = configv1.ExpressionNode
	v = configv1.ExpressionValue
)

func textValue(s string) *v  { return &v{Value: &configv1.ExpressionValue_Text{Text: []byte(s)}} }
func numberValue(i int64) *v { return &v{Value: &configv1.ExpressionValue_Number{Number: i}} }
func truthValue(b bool) *v   { return &v{Value: &configv1.ExpressionValue_Truth{Truth: b}} }
func cidrValue(s string) *v  { return &v{Value: &configv1.ExpressionValue_Cidr{Cidr: s}} }

func compare(op configv1.ExpressionOp, field, name string, values ...*v) *n {
	return &n{Op: op, Field: field, Name: name, Values: values}
}

func called(function string, children ...*n) *n {
	return &n{Op: run, Function: function, Children: children}
}

func literal(value *v) *n { return &n{Op: is, Values: []*v{value}} }

func encode(t testing.TB, root *n) []byte {
	raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(&configv1.Expression{Version: version, Root: root})
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// compiled is a condition or the reason why it is none.
func compiled(t testing.TB, root *n) (*Condition, error) {
	tree, err := Decode(encode(t, root))
	if err != nil {
		return nil, err
	}
	return CompileCondition(tree)
}

func compiledValue(t testing.TB, root *n) (*Value, error) {
	tree, err := Decode(encode(t, root))
	if err != nil {
		return nil, err
	}
	return CompileValue(tree)
}

func mustCompile(t testing.TB, root *n) *Condition {
	c, err := compiled(t, root)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func truths(count int) []*n {
	nodes := make([]*n, count)
	for i := range nodes {
		nodes[i] = literal(truthValue(true))
	}
	return nodes
}

func nested(depth int) *n {
	node := literal(truthValue(true))
	for range depth - 1 {
		node = &n{Op: not, Children: []*n{node}}
	}
	return node
}

func functionsDeep(depth int) *n {
	node := &n{Op: read, Field: "http.host"}
	for range depth {
		node = called("lower", node)
	}
	return &n{Op: eq, Children: []*n{node}, Values: []*v{textValue("a")}}
}

func TestTreesUpToTheLimitsAreAccepted(t *testing.T) {
	for name, root := range map[string]*n{
		"64 deep":          nested(64),
		"256 nodes":        {Op: and, Children: truths(255)},
		"16384 bytes":      compare(eq, "http.host", "", textValue(strings.Repeat("a", 16_384))),
		"4 functions":      functionsDeep(4),
		"a pattern of 256": compare(find, "http.host", "", textValue(strings.Repeat("a", 256))),
	} {
		if _, err := compiled(t, root); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTreesThatAreNoExpressionsAreRefused(t *testing.T) {
	sorted := func(values ...*v) *n { return compare(oneOf, "ip.src", "", values...) }
	for name, root := range map[string]*n{
		"65 deep":              nested(65),
		"257 nodes":            {Op: and, Children: truths(256)},
		"16385 bytes":          compare(eq, "http.host", "", textValue(strings.Repeat("a", 16_385))),
		"5 functions":          functionsDeep(5),
		"no operation":         {},
		"unknown operation":    {Op: 19},
		"unknown field":        compare(eq, "http.hosts", "", textValue("a")),
		"unknown function":     {Op: eq, Children: []*n{called("trim", literal(textValue("a")))}, Values: []*v{textValue("a")}},
		"one child":            {Op: and, Children: truths(1)},
		"not of two":           {Op: not, Children: truths(2)},
		"not of nothing":       {Op: not},
		"string as condition":  literal(textValue("a")),
		"field as condition":   {Op: read, Field: "ssl"},
		"call of a string":     called("lower", literal(textValue("a"))),
		"missing name":         compare(eq, "http.request.headers", "", textValue("a")),
		"upper case header":    compare(eq, "http.request.headers", "A", textValue("a")),
		"name of 65":           compare(eq, "http.request.cookies", strings.Repeat("a", 65), textValue("a")),
		"name of nothing":      compare(eq, "http.host", "a", textValue("a")),
		"bad argument":         compare(eq, "http.request.uri.args", "a&b", textValue("a")),
		"other type":           compare(eq, "http.host", "", numberValue(1)),
		"ordered strings":      compare(gt, "http.host", "", textValue("a")),
		"part of a number":     compare(has, "edge.server_port", "", numberValue(1)),
		"two values":           compare(eq, "http.host", "", textValue("a"), textValue("b")),
		"no value":             compare(eq, "http.host", ""),
		"empty set":            compare(oneOf, "http.host", ""),
		"unsorted strings":     compare(oneOf, "http.host", "", textValue("b"), textValue("a")),
		"repeated number":      compare(oneOf, "edge.server_port", "", numberValue(1), numberValue(1)),
		"repeated boolean":     compare(oneOf, "ssl", "", truthValue(true), truthValue(true)),
		"unsorted addresses":   sorted(cidrValue("10.0.0.0/8"), cidrValue("9.0.0.0/8")),
		"host bits":            sorted(cidrValue("10.0.0.1/8")),
		"no length":            sorted(cidrValue("10.0.0.1")),
		"mapped address":       sorted(cidrValue("::ffff:10.0.0.1/128")),
		"large hex":            sorted(cidrValue("2001:DB8::/32")),
		"zone":                 sorted(cidrValue("fe80::1%a/128")),
		"list of a string":     {Op: listed, Field: "http.host", ListId: "a"},
		"list without id":      {Op: listed, Field: "ip.src"},
		"list with a value":    {Op: listed, Field: "ip.src", ListId: "a", Values: []*v{cidrValue("10.0.0.0/8")}},
		"id of no list":        {Op: eq, Field: "http.host", ListId: "a", Values: []*v{textValue("a")}},
		"field and function":   {Op: eq, Field: "http.host", Children: []*n{called("lower", literal(textValue("a")))}, Values: []*v{textValue("a")}},
		"no operand":           {Op: eq, Values: []*v{textValue("a")}},
		"field as operand":     {Op: eq, Children: []*n{{Op: read, Field: "http.host"}}, Values: []*v{textValue("a")}},
		"too few arguments":    called("starts_with", literal(textValue("a"))),
		"too many arguments":   called("starts_with", literal(textValue("a")), literal(textValue("a")), literal(textValue("a"))),
		"number argument":      called("starts_with", literal(textValue("a")), literal(numberValue(1))),
		"boolean argument":     called("starts_with", literal(textValue("a")), literal(truthValue(true))),
		"condition argument":   called("starts_with", literal(textValue("a")), compare(eq, "http.host", "", textValue("a"))),
		"value function":       {Op: eq, Children: []*n{called("regex_replace", literal(textValue("a")), literal(textValue("a")), literal(textValue("a")))}, Values: []*v{textValue("a")}},
		"computed start":       {Op: eq, Children: []*n{called("substring", literal(textValue("a")), called("len", literal(textValue("a"))))}, Values: []*v{textValue("a")}},
		"far start":            {Op: eq, Children: []*n{called("substring", literal(textValue("a")), literal(numberValue(65_537)))}, Values: []*v{textValue("a")}},
		"group repeated":       compare(find, "http.host", "", textValue("(a)*")),
		"nine stars":           compare(glob, "http.host", "", textValue("*********")),
		"number beyond 2^53-1": compare(eq, "edge.server_port", "", numberValue(1<<53)),
	} {
		if _, err := compiled(t, root); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	for name, root := range map[string]*n{
		"condition":        literal(truthValue(true)),
		"number":           called("len", literal(textValue("a"))),
		"number field":     {Op: read, Field: "edge.server_port"},
		"function twice":   called("concat", replace("a", "b"), replace("a", "b")),
		"unknown group":    replace("a", "${1}"),
		"computed pattern": called("regex_replace", literal(textValue("a")), &n{Op: read, Field: "http.host"}, literal(textValue("a"))),
		"unknown flag":     called("wildcard_replace", literal(textValue("a")), literal(textValue("a")), literal(textValue("a")), literal(textValue("i"))),
		"comparison":       compare(eq, "http.host", "", textValue("a")),
	} {
		if _, err := compiledValue(t, root); err == nil {
			t.Errorf("%s is accepted as a value", name)
		}
	}
}

func replace(pattern, with string) *n {
	return called("regex_replace", literal(textValue("a")), literal(textValue(pattern)), literal(textValue(with)))
}

func TestEncodingsThatTheConsoleDoesNotWriteAreRefused(t *testing.T) {
	whole := encode(t, compare(eq, "http.host", "", textValue("a")))
	node := protowire.AppendVarint(protowire.AppendTag(nil, nodeOp, protowire.VarintType), uint64(is))
	rooted := func(node []byte) []byte {
		raw := protowire.AppendVarint(protowire.AppendTag(nil, expressionVersion, protowire.VarintType), version)
		return protowire.AppendBytes(protowire.AppendTag(raw, expressionRoot, protowire.BytesType), node)
	}
	for name, raw := range map[string][]byte{
		"nothing":        {},
		"no version":     whole[2:],
		"version 2":      append([]byte{8, 2}, whole[2:]...),
		"no root":        whole[:2],
		"two roots":      append(append([]byte{}, whole...), whole[2:]...),
		"cut":            whole[:len(whole)-1],
		"unknown field":  append(append([]byte{}, whole...), 0x18, 1),
		"op twice":       rooted(append(append([]byte{}, node...), node...)),
		"other order":    rooted(append([]byte{0x12, 3, 's', 's', 'l'}, node...)),
		"wrong wire":     rooted(append(append([]byte{}, node...), 0x10, 1)),
		"empty value":    rooted(append(append([]byte{}, node...), 0x3a, 0)),
		"two of a value": rooted(append(append([]byte{}, node...), 0x3a, 4, 0x10, 0, 0x18, 1)),
		"boolean 2":      rooted(append(append([]byte{}, node...), 0x3a, 2, 0x18, 2)),
	} {
		if _, err := Decode(raw); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

// allocated is how many bytes decoding takes.
func allocated(input []byte) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	tree, _ := Decode(input)
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(tree)
	return after.TotalAlloc - before.TotalAlloc
}

// What may be allocated besides: by the tree itself, and by whatever else the process does.
const allocatedBesides = 512

func TestDecodingTakesAtMostTenTimesItsInput(t *testing.T) {
	values := make([]*v, maxSetValues)
	for i := range values {
		values[i] = truthValue(true)
	}
	texts := make([]*v, maxSetValues)
	for i := range texts {
		texts[i] = textValue("ab")
	}
	var smallest []*n
	for range maxNodes - 1 {
		smallest = append(smallest, &n{Op: not})
	}
	for name, root := range map[string]*n{
		"nodes":   {Op: and, Children: smallest},
		"values":  {Op: oneOf, Values: values},
		"texts":   {Op: oneOf, Values: texts},
		"literal": {Op: and, Children: truths(200)},
	} {
		raw := encode(t, root)
		// What else runs allocates now and then, never each time.
		least := ^uint64(0)
		for range 20 {
			least = min(least, allocated(raw))
		}
		if least > uint64(10*len(raw)+allocatedBesides) {
			t.Errorf("%s: %d bytes for %d", name, least, len(raw))
		}
	}
}

// Whatever a tree holds, decoding it and compiling ends without a panic and takes little, what is accepted is encoded again
// to the same, and what compiles can be evaluated for a request that has nothing and for one that has something.
func FuzzDecode(f *testing.F) {
	for _, root := range []*n{
		compare(eq, "http.host", "", textValue("a\xff")),
		compare(oneOf, "ip.src", "", cidrValue("10.0.0.0/8"), cidrValue("2001:db8::/32")),
		compare(find, "http.request.headers", "a", textValue(`^(a|[^b-d]{2,3}?)\x00$`)),
		compare(glob, "http.request.cookies", "A", textValue(`a*\*b`)),
		{Op: listed, Field: "ip.peer", ListId: "office"},
		{Op: and, Children: []*n{called("starts_with", called("url_decode", &n{Op: read, Field: "http.request.uri"}), literal(textValue("/"))), nested(3)}},
		replace("(a)", "${1}$"),
		called("wildcard_replace", &n{Op: read, Field: "http.host"}, literal(textValue("*.a")), literal(textValue("${1}")), literal(textValue("s"))),
		called("substring", called("to_string", &n{Op: read, Field: "ssl"}), literal(numberValue(-3)), literal(numberValue(2))),
	} {
		f.Add(encode(f, root))
	}
	full := &given{texts: map[string]string{}, numbers: map[string]int64{}, truths: map[string]bool{}}
	for field, spec := range fields {
		full.texts[spec.name], full.numbers[spec.name], full.truths[spec.name] = "/a\xffB%41=", int64(field), true
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		limit := uint64(10*len(input) + allocatedBesides)
		tries := 0
		for allocated(input) > limit {
			if tries++; tries == 20 {
				t.Fatalf("%d bytes take more than %d", len(input), limit)
			}
		}
		tree, err := Decode(input)
		if err != nil {
			return
		}
		if condition, err := CompileCondition(tree); err == nil {
			condition.Holds(&given{})
			condition.Holds(full)
		}
		if value, err := CompileValue(tree); err == nil {
			value.Bytes(&given{})
			if result, failure := value.Bytes(full); failure == 0 && len(result) > maxStringBytes {
				t.Fatalf("%d bytes", len(result))
			}
		}
	})
}
