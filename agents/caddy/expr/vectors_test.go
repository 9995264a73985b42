package expr

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	configv1 "edge.svc/caddy/gen/svc/config/v1"
)

// row is one of test/vectors/expression-trees.json, of expression-values.json, or a pair that the console's own evaluation
// has a result for.
type row struct {
	Kind   string         `json:"kind"`
	Source string         `json:"source"`
	Tree   string         `json:"tree"`
	Fields map[string]any `json:"fields"`
	Expect struct {
		Value   any    `json:"value"`
		Failure string `json:"failure"`
	} `json:"expect"`
}

// given are the values of a row: strings have a character for each byte, names stand in brackets.
type given struct {
	texts     map[string]string
	numbers   map[string]int64
	truths    map[string]bool
	addresses map[string]netip.Addr
	lists     map[string][]netip.Prefix
}

func (g *given) Text(field Field, name string) string {
	key := field.String()
	if name != "" {
		if fields[field].naming == headerName {
			name = strings.ToLower(name)
		}
		key += "[" + name + "]"
	}
	return g.texts[key]
}

func (g *given) Number(field Field) int64 { return g.numbers[field.String()] }

func (g *given) Truth(field Field) bool { return g.truths[field.String()] }

func (g *given) Address(field Field) netip.Addr { return g.addresses[field.String()] }

func (g *given) Contains(list string, address netip.Addr) bool {
	return slices.ContainsFunc(g.lists[list], func(p netip.Prefix) bool { return p.Contains(address) })
}

func givenOf(t testing.TB, of map[string]any, lists map[string][]netip.Prefix) *given {
	g := &given{map[string]string{}, map[string]int64{}, map[string]bool{}, map[string]netip.Addr{}, lists}
	for key, value := range of {
		name, _, _ := strings.Cut(key, "[")
		switch value := value.(type) {
		case string:
			if fields[fieldByName[name]].kind == addressKind {
				g.addresses[key], _ = netip.ParseAddr(value)
			} else {
				g.texts[key] = bytesOf(t, value)
			}
		case float64:
			g.numbers[key] = int64(value)
		case bool:
			g.truths[key] = value
		}
	}
	return g
}

// bytesOf takes a character for each byte.
func bytesOf(t testing.TB, s string) string {
	var bytes []byte
	for _, r := range s {
		if r > 0xff {
			t.Fatalf("%q has more than bytes", s)
		}
		bytes = append(bytes, byte(r))
	}
	return string(bytes)
}

func readVectors(t testing.TB, name string, into any) {
	content, err := os.ReadFile(filepath.Join("..", "..", "..", "test", "vectors", name))
	if err == nil {
		err = json.Unmarshal(content, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func treeOf(t testing.TB, encoded string) *Tree {
	tree, err := Decode(rawTree(t, encoded))
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func rawTree(t testing.TB, encoded string) []byte {
	raw, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// message is the tree as it was sent.
func message(tree *Tree) *configv1.Expression {
	return &configv1.Expression{Version: version, Root: nodeMessage(tree, &tree.nodes[0])}
}

func nodeMessage(tree *Tree, n *node) *configv1.ExpressionNode {
	m := &configv1.ExpressionNode{Op: configv1.ExpressionOp(n.op), Field: fields[n.field].name, Function: functions[n.function].name}
	if n.op == opInList {
		m.ListId = n.name
	} else {
		m.Name = n.name
	}
	for at := n.first; at != 0; at = tree.nodes[at].next {
		m.Children = append(m.Children, nodeMessage(tree, &tree.nodes[at]))
	}
	for _, literal := range tree.values[n.valueAt:n.valueEnd] {
		v := &configv1.ExpressionValue{}
		switch literal.kind {
		case textKind:
			v.Value = &configv1.ExpressionValue_Text{Text: []byte(literal.text)}
		case numberKind:
			v.Value = &configv1.ExpressionValue_Number{Number: literal.number}
		case truthKind:
			v.Value = &configv1.ExpressionValue_Truth{Truth: literal.number == 1}
		case addressKind:
			v.Value = &configv1.ExpressionValue_Cidr{Cidr: literal.text}
		}
		m.Values = append(m.Values, v)
	}
	return m
}

func TestEveryTreeOfTheVectorsIsAccepted(t *testing.T) {
	var vectors struct{ Rows []row }
	readVectors(t, "expression-trees.json", &vectors)
	if len(vectors.Rows) < 100 {
		t.Fatalf("%d rows", len(vectors.Rows))
	}
	for _, row := range vectors.Rows {
		raw := rawTree(t, row.Tree)
		tree, err := Decode(raw)
		if err != nil {
			t.Errorf("%s: %v", row.Source, err)
			continue
		}
		again, err := proto.MarshalOptions{Deterministic: true}.Marshal(message(tree))
		if err != nil || string(again) != string(raw) {
			t.Errorf("%s: encoded again it is another one: %v", row.Source, err)
		}
		if row.Kind == "value" {
			_, err = CompileValue(tree)
		} else {
			_, err = CompileCondition(tree)
		}
		if err != nil {
			t.Errorf("%s: %v", row.Source, err)
		}
	}
}

// result is what a row comes to, a boolean or bytes, or the name of a failure; and what it reads.
func (r *row) result(t testing.TB, lists map[string][]netip.Prefix) (any, string, *Reads) {
	tree, values := treeOf(t, r.Tree), givenOf(t, r.Fields, lists)
	if r.Kind == "value" {
		compiled, err := CompileValue(tree)
		if err != nil {
			t.Fatalf("%s: %v", r.Source, err)
		}
		bytes, failure := compiled.Bytes(values)
		return bytes, failure.String(), &compiled.Reads
	}
	compiled, err := CompileCondition(tree)
	if err != nil {
		t.Fatalf("%s: %v", r.Source, err)
	}
	holds, failure := compiled.Holds(values)
	return holds, failure.String(), &compiled.Reads
}

// problem says how the result differs from what is expected; "" when it does not.
func (r *row) problem(t testing.TB, lists map[string][]netip.Prefix) string {
	want := r.Expect.Value
	if text, ok := want.(string); ok {
		want = bytesOf(t, text)
	}
	got, failure, reads := r.result(t, lists)
	if failure == r.Expect.Failure && (failure != "" || got == want) {
		return ""
	}
	read := maps.Clone(r.Fields)
	maps.DeleteFunc(read, func(key string, _ any) bool {
		name, _, _ := strings.Cut(key, "[")
		return !reads.Field(fieldByName[name])
	})
	return fmt.Sprintf("%s\nof %q\nis %q %q, expected %q %q\ntree %s", r.Source, read, got, failure, want, r.Expect.Failure, r.Tree)
}

func listsOf(of map[string][]string) map[string][]netip.Prefix {
	lists := map[string][]netip.Prefix{}
	for name, cidrs := range of {
		for _, cidr := range cidrs {
			lists["id-of-"+name] = append(lists["id-of-"+name], netip.MustParsePrefix(cidr))
		}
	}
	return lists
}

func TestEveryVectorHasItsValue(t *testing.T) {
	var vectors struct {
		Lists map[string][]string
		Rows  []row
	}
	readVectors(t, "expression-values.json", &vectors)
	if len(vectors.Rows) < 100 {
		t.Fatalf("%d rows", len(vectors.Rows))
	}
	lists := listsOf(vectors.Lists)
	for _, row := range vectors.Rows {
		if problem := row.problem(t, lists); problem != "" {
			t.Error(problem)
		}
	}
}

// The console writes random pairs, a row in each line: test/integration/expression-pairs.test.ts. A few are kept here.
func TestEveryPairOfTheConsoleHasItsValue(t *testing.T) {
	file := os.Getenv("SVC_EXPRESSION_PAIRS")
	if file == "" {
		file = filepath.Join("testdata", "pairs.jsonl")
	}
	opened, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	decoder := json.NewDecoder(opened)
	var head struct{ Lists map[string][]string }
	if err := decoder.Decode(&head); err != nil {
		t.Fatal(err)
	}
	lists, compared, different, smallest := listsOf(head.Lists), 0, 0, ""
	for ; decoder.More(); compared++ {
		var r row
		if err := decoder.Decode(&r); err != nil {
			t.Fatal(err)
		}
		if problem := r.problem(t, lists); problem != "" {
			different++
			if smallest == "" || len(problem) < len(smallest) {
				smallest = problem
			}
		}
	}
	t.Logf("%d pairs", compared)
	if different > 0 {
		t.Errorf("%d of %d pairs differ, the smallest:\n%s", different, compared, smallest)
	}
}

func TestResultsCanBeUsedWhereTheVectorsSay(t *testing.T) {
	var vectors struct {
		Rows []struct {
			Use    string
			Result string
			Usable bool
		}
	}
	readVectors(t, "value-results.json", &vectors)
	uses := map[string]Use{"redirect": ForRedirect, "rewrite": ForRewrite, "header": ForHeader, "query": ForQuery}
	for _, row := range vectors.Rows {
		if got := uses[row.Use].Accepts(bytesOf(t, row.Result)); got != row.Usable {
			t.Errorf("%s %q: %v", row.Use, row.Result, got)
		}
	}
}
