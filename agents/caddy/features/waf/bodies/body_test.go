package bodies

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// collected are the arguments that a reader gives.
type collected struct{ names, values []string }

func (c *collected) add(name, value string) {
	c.names, c.values = append(c.names, name), append(c.values, value)
}

func (c *collected) String() string {
	pairs := make([]string, len(c.names))
	for i := range c.names {
		pairs[i] = c.names[i] + "=" + c.values[i]
	}
	return strings.Join(pairs, "|")
}

func (c *collected) has(text string) bool {
	return slices.ContainsFunc(c.values, func(v string) bool { return strings.Contains(v, text) })
}

func readsJSON(body string, whole bool) (*collected, error) {
	c := new(collected)
	return c, ReadJSON(strings.NewReader(body), whole, &Arguments{Add: c.add})
}

func TestJSONBecomesArguments(t *testing.T) {
	for _, c := range []struct {
		body, want string
		wrong      bool
	}{
		{body: `{"a":"x","b":[1,"y",{"c":null}],"d":true}`, want: "json.a=x|json.b.0=1|json.b.1=y|json.b.2.c=|json.d=true"},
		{body: ` "x" `, want: "json=x"},
		{body: `[]`, want: ""},
		{body: `{"a":{},"b":[],"c":[{"d":{}}]}`, want: "=a\nb\nc\nd"},
		{body: `{"ab":{},"cd":[{"wget x":{}}]}`, want: "=ab\nx cd\nwget x"},
		{body: `[[["x"],["y"]],"z"]`, want: "json.0.0.0=x|json.0.1.0=y|json.1=z"},
		{body: `{"a":"1","a":"2","A":"3"}`, want: "json.a=1|json.a=2|json.A=3"},
		{body: `{"a.b":"x"}`, want: "json.a.b=x"},
		{body: `{"":"x"}`, want: "json.=x"},
		{body: "\ufeff{\"a\":\"x\"}", want: "json.a=x"},
		{body: `{"\u003c":"\ud83d\ude00\n\/\u0027"}`, want: "json.<=😀\n/'"},
		{body: `-1.5e3`, want: "json=-1.5e3"},
		{body: `{"a":"x"`, want: "json.a=x", wrong: true},
		{body: `{"a":"x`, want: "json.a=x", wrong: true},
		{body: `{"a":"x"}}`, want: "json.a=x|=}", wrong: true},
		{body: `{"a":"x"} {"b":"y"}`, want: "json.a=x|json.b=y", wrong: true},
		{body: `{'a':'x'}`, want: "='a':'x'}", wrong: true},
		{body: `{"a":x"y"}`, want: "=x\"y\"}\na", wrong: true},
		{body: `{"a":"x",}`, want: "json.a=x|=}", wrong: true},
		{body: `["x",]`, want: "json.0=x|=]", wrong: true},
		{body: `["x"}`, want: "json.0=x|=}", wrong: true},
		{body: `{"a" "\u0027"}`, want: "=\"'\"}\na", wrong: true},
		{body: `{"a":"\q"}`, want: `json.a=\q`, wrong: true},
		{body: `{"a":"\u00"}`, want: `json.a=\u00`, wrong: true},
		{body: ``, want: "", wrong: true},
		{body: `nul`, want: "json=nul", wrong: true},
	} {
		got, err := readsJSON(c.body, true)
		// What is joined begins with the newline that ends what was before it.
		text := strings.ReplaceAll(got.String(), "=\n", "=")
		if text != c.want || (err != nil) != c.wrong {
			t.Errorf("%s: %q %v", c.body, text, err)
		}
	}
}

// A body that was cut at the limit is not wrong for it, and nothing of it is lost.
func TestCutJSON(t *testing.T) {
	whole := `{"a":["x",{"b":"\u0027needle"}],"c":12}`
	for n := range len(whole) {
		if _, err := readsJSON(whole[:n], false); err != nil {
			t.Errorf("%s: %v", whole[:n], err)
		}
	}
	if got, _ := readsJSON(`{"a":"needle`, false); !got.has("needle") {
		t.Error(got)
	}
}

// Beyond the limits text stays, numbers go.
func TestTextBeyondTheLimitsOfJSON(t *testing.T) {
	var many strings.Builder
	for i := range 300 {
		fmt.Fprintf(&many, `"k%d":7%03d,`, i, i)
	}
	deep := strings.Repeat(`{"a":`, 64) + `{"nameat65":"needle"}` + strings.Repeat("}", 64)
	for name, c := range map[string]struct{ body, needle string }{
		"leaf 300":               {"{" + many.String() + `"k":"needle"}`, "needle"},
		"a name beyond":          {"{" + many.String() + `"needle":1}`, "needle"},
		"depth 65":               {deep, "needle"},
		"a name at depth 65":     {deep, "nameat65"},
		"very deep":              {strings.Repeat("[", 100_000) + `"needle"` + strings.Repeat("]", 100_000), "needle"},
		"below a long name":      {`{"` + strings.Repeat("n", 2000) + `":{"b":["needle"]}}`, "needle"},
		"a long string":          {`["` + strings.Repeat("n", maxString+4000) + `needle"]`, "needle"},
		"across a border":        {"{" + many.String() + `"k":"` + strings.Repeat("n", MaxJoined-4) + `needle"}`, "needle"},
		"after a mistake":        {`{"a":1,,"b":"\u006eeedle"}`, "needle"},
		"long after a mistake":   {`{"a":1,,"b":"` + strings.Repeat("n", 100_000) + `needle"}`, "needle"},
		"after another document": {`{} {"b":"needle"}`, "needle"},
	} {
		got, err := readsJSON(c.body, true)
		if !got.has(c.needle) {
			t.Errorf("%s: %v", name, err)
		}
		for i, v := range got.values {
			if len(v) > MaxJoined && got.names[i] == joinedName && name != "a long string" {
				t.Errorf("%s: a joined value of %d bytes", name, len(v))
			}
		}
		if strings.Contains(name, "mistake") != (err != nil) && name != "after another document" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got, _ := readsJSON("{"+many.String()+`"k":1}`, true); len(got.values) < MaxArguments || got.has("7299") || !got.has("k299") {
		t.Errorf("%d values", len(got.values))
	}
}

func TestArgumentsBeyondTheLimitAreJoined(t *testing.T) {
	for _, c := range []struct {
		pairs int
		want  int
	}{{10, 10}, {256, 256}, {257, 257}, {5000, 274}} {
		got := new(collected)
		a := &Arguments{Add: got.add}
		ReadPairs(strings.Repeat("na=%6eeedle&", c.pairs), a)
		a.End()
		if len(got.values) != c.want || !got.has("needle") {
			t.Errorf("%d pairs: %d values", c.pairs, len(got.values))
		}
	}
	// A piece neither ends nor begins with what is only part of a word.
	pieces := new(collected)
	joined := &Arguments{Add: pieces.add, count: MaxArguments}
	joined.Join(strings.Repeat("watch who will write ", 1000))
	joined.End()
	for i, v := range pieces.values {
		first, last := i == 0, i == len(pieces.values)-1
		if len(v) > MaxJoined || strings.HasPrefix(v, plainWord) == first || strings.HasSuffix(v, plainEnd) == last {
			t.Errorf("piece %d of %d bytes: %q to %q", i, len(v), v[:9], v[len(v)-9:])
		}
	}
	if len(pieces.values) < 5 {
		t.Errorf("%d pieces", len(pieces.values))
	}
	got := new(collected)
	ReadPairs("a=1&a=%3C2+3&&b&=x&c=%zz", &Arguments{Add: got.add})
	if got.String() != "a=1|a=<2 3|b=|=x|c=%zz" {
		t.Error(got)
	}
}

func TestNamesOfFiles(t *testing.T) {
	for raw, want := range map[string]struct {
		name, files string
		ambiguous   bool
	}{
		`form-data; name="a"`:                                             {"a", "", false},
		`form-data; name="a"; filename="b.txt"`:                           {"a", "b.txt", false},
		`form-data; name="a"; filename=""`:                                {"a", "", false},
		`form-data; name="a"; filename="b.txt"; filename*=utf-8''c%2Ephp`: {"a", "c.php,b.txt", false},
		`form-data; name="a"; filename*=utf-8''c.php`:                     {"a", "c.php", true},
		`form-data; name="a"; filename="b.txt"; filename="c.php"`:         {"a", "b.txt,c.php", true},
		`form-data; name="a"; filename*0="c.p"; filename*1="hp"`:          {"a", "c.php,c.p,hp", true},
		`attachment; name="a"`:                                            {"a", "", true},
		``:                                                                {"", "", true},
	} {
		d := readDisposition(map[string][]string{"Content-Disposition": {raw}})
		got := slices.Clone(d.files)
		for _, name := range strings.Split(want.files, ",") {
			if name != "" && !slices.Contains(got, name) {
				t.Errorf("%s: %q", raw, d.files)
			}
		}
		if d.name != want.name || d.ambiguous != want.ambiguous || want.files == "" && len(got) > 0 {
			t.Errorf("%s: %+v", raw, d)
		}
	}
}

func TestXMLBecomesTexts(t *testing.T) {
	for _, c := range []struct {
		body, texts, values string
		whole, wrong        bool
	}{
		{`<a b="1">x<c>y</c><![CDATA[z]]></a>`, "=x|=y|=z", "=1", true, false},
		{`<?xml version="1.0" encoding="gbk"?><a>x</a>`, "=x", "", true, false},
		{`<a>x`, "=x", "", true, true},
		{`<a>x`, "=x", "", false, false},
		{`<a>x</a><b c=">`, `=x|=<a>x</a><b c=">`, "", true, true},
		{`x`, "=x", "", true, true},
	} {
		texts, values := new(collected), new(collected)
		err := ReadXML(strings.NewReader(c.body), c.whole, &Arguments{Add: texts.add}, &Arguments{Add: values.add})
		if !strings.HasPrefix(texts.String(), strings.SplitN(c.texts, "|=<", 2)[0]) || values.String() != c.values || (err != nil) != c.wrong {
			t.Errorf("%s: %v %v %v", c.body, texts, values, err)
		}
	}
}
